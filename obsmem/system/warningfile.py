"""The warning that waits for a session's next prompt: one small file, left by the maintainer and taken by a hook.

Invariants: it is given once, to whoever renames it first; it never makes what a hook gives longer than one part may be,
but waits where it would; what was given last is known by its name. On the hook path: ``os`` and our own ``files`` only.

Format: ``obsmem-warning 1 <name>``, newline, the line for the user, newline, the text for the agent.
"""

from __future__ import annotations

import os

from obsmem.system.files import read_bytes, remove, write_atomic
from obsmem.system.state import WARNING_FILE

GIVEN = "warning.given"
MAGIC = "obsmem-warning 1 "
GIVEN_BYTES = 9_500  # of all that one hook gives, as a part of the block
LIMIT = 1 << 14


def leave_warning_file(folder: str, name: str, notice: str, text: str) -> None:
    """Leave a warning for the next prompt, in the place of one that still waits. ``name`` has no blank, ``notice`` is one
    line."""
    write_atomic(
        os.path.join(folder, WARNING_FILE), f"{MAGIC}{name}\n{notice}\n{text}".encode("utf-8", "replace"), durable=False
    )


def take_warning(folder: str, room: int = GIVEN_BYTES) -> tuple[str, str]:
    """(line for the user, text for the agent) of the warning that waits; both '' where none does, somebody else was faster,
    or the text takes more than ``room`` bytes: then it goes on waiting."""
    path = os.path.join(folder, WARNING_FILE)
    name, notice, text = _read(path)
    if not name or len(text.encode("utf-8", "replace")) > room:
        return "", ""
    try:
        os.replace(path, os.path.join(folder, GIVEN))
    except OSError:
        return "", ""
    return notice, text


def waiting_warning(folder: str) -> str:
    """The name of the warning that waits; '' where none does."""
    return _read(os.path.join(folder, WARNING_FILE))[0]


def given_warning(folder: str) -> str:
    """The name of the warning that was given last; '' where none was."""
    return _read(os.path.join(folder, GIVEN))[0]


def drop_warning(folder: str) -> None:
    """Let nobody be given what waits: it is no longer so."""
    remove(os.path.join(folder, WARNING_FILE))


def _read(path: str) -> tuple[str, str, str]:
    """(name, notice, text) of a file; all '' where there is none, or a broken one."""
    head, _, rest = read_bytes(path, LIMIT).decode("utf-8", "replace").partition("\n")
    notice, newline, text = rest.partition("\n")
    if not head.startswith(MAGIC) or not newline:
        return "", "", ""
    return head[len(MAGIC) :], notice, text
