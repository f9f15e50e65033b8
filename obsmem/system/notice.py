"""What the user is told once, in one line, when a session starts: that memory is on, or that it cannot work and why.

Each is a mark in the data folder, left by whoever knows and taken away by the hook that tells. Invariant: telling never
costs a hook more than three looks into the data folder, and a mark that cannot be taken away is not told of. On the hook
path: ``os``, ``time`` and our own ``files`` only.
"""

from __future__ import annotations

import os
import sys
import time

from obsmem.system.files import make_folder, read_bytes, remove, write_atomic
from obsmem.system.paths import safe_name

WELCOME = "welcome"  # a folder: one mark for each harness that was installed for
LACKS_PACKAGES = "lacks-packages"
TROUBLE, TROUBLE_TOLD = "trouble", "trouble-told"
DAY_SECONDS = 86_400
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


def leave_trouble(home: str, failure: str) -> None:
    """Let the next session say that the background could not work (``failure``: in a word), once a day. Never raises OSError."""
    try:
        if abs(time.time() - os.stat(os.path.join(home, TROUBLE_TOLD)).st_mtime) < DAY_SECONDS:
            return
    except OSError:
        pass  # it was never told
    try:
        write_atomic(os.path.join(home, TROUBLE), failure.encode("utf-8", "replace"), durable=False)
    except OSError:
        pass  # whoever cannot even write this has it in no log either: ``doctor`` finds it


def clear_trouble(home: str) -> None:
    """What the background could not do it can do again: nobody need be told."""
    remove(os.path.join(home, TROUBLE))


def take_notice(home: str, harness: str) -> str:
    """What is to be told now; '' for nothing. The mark is gone afterwards: of several hooks at once one tells."""
    script = os.path.join(os.path.abspath(__file__ + "/../../.."), "observational_memory.py")
    if lack := _take(os.path.join(home, LACKS_PACKAGES)):
        return f'observational-memory keeps nothing: {lack}. Run once: "{sys.executable}" "{script}" setup'
    if failure := _take(os.path.join(home, TROUBLE)):
        try:
            write_atomic(os.path.join(home, TROUBLE_TOLD), b"", durable=False)
        except OSError:
            pass
        return f'observational-memory kept nothing lately ({failure}). See: "{sys.executable}" "{script}" doctor'
    try:
        os.unlink(os.path.join(home, WELCOME, safe_name(harness)))
    except OSError:
        return ""
    return WELCOME_TEXT


def _take(path: str) -> str:
    """What a mark says, which is then gone; '' where there is none, or another hook was faster."""
    text = read_bytes(path, 1000).decode("utf-8", "replace")
    try:
        if text:
            os.unlink(path)
    except OSError:
        return ""
    return text
