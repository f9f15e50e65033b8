"""What the user is told once, in one line, when a session starts: that memory is on, or that it cannot work and why.

Each is a mark in the data folder, left by whoever knows and taken away by the hook that tells. Invariant: telling never
costs a hook more than two looks into the data folder, and a mark that cannot be taken away is not told of. On the hook
path: ``os`` and our own ``files`` only.
"""

from __future__ import annotations

import os
import sys

from obsmem.system.files import make_folder, write_atomic
from obsmem.system.paths import safe_name

WELCOME = "welcome"  # a folder: one mark for each harness that was installed for
LACKS_PACKAGES = "lacks-packages"
WELCOME_TEXT = "observational-memory is on: what a compaction leaves out of this conversation will come back."


def leave_welcome(home: str, harness: str) -> None:
    """Let the next session of a harness say that memory is on."""
    make_folder(os.path.join(home, WELCOME))
    write_atomic(os.path.join(home, WELCOME, safe_name(harness)), b"", durable=False)


def is_welcome(home: str, harness: str) -> bool:
    """True if the next session of a harness will say that memory is on."""
    return os.path.exists(os.path.join(home, WELCOME, safe_name(harness)))


def leave_lack(home: str, packages: list[str], interpreter: str) -> None:
    """Let the next session say which packages an interpreter lacks."""
    text = f"{interpreter} lacks {', '.join(packages)}"
    write_atomic(os.path.join(home, LACKS_PACKAGES), text.encode("utf-8", "replace"), durable=False)


def take_notice(home: str, harness: str) -> str:
    """What is to be told now; '' for nothing. The mark is gone afterwards: of several hooks at once one tells."""
    path = os.path.join(home, LACKS_PACKAGES)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lack = file.read(1000)
        os.unlink(path)
    except OSError:
        lack = ""
    if lack:
        script = os.path.join(os.path.abspath(__file__ + "/../../.."), "observational_memory.py")
        return f'observational-memory keeps nothing: {lack}. Run once: "{sys.executable}" "{script}" setup'
    try:
        os.unlink(os.path.join(home, WELCOME, safe_name(harness)))
    except OSError:
        return ""
    return WELCOME_TEXT
