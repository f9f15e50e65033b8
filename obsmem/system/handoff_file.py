"""The handoff that waits for the next fresh session of a workspace, as a file that a hook can take without a database.

Invariants: one session gets it, whoever starts at the same time; taken, it is the delivery of that session, whose parts
are handed out like those of any block; nobody takes one that is older than a day. On the hook path: built-in modules only.
"""

from __future__ import annotations

import os
import time

from obsmem.system.blockfile import CURRENT, HANDOFFS, write_block
from obsmem.system.files import make_folder, read_bytes, remove, write_atomic
from obsmem.system.paths import crc32

EXPIRES_SECONDS = 86_400  # a mark that nobody came for is forgotten then
RENEWING_SECONDS = 0.05  # a renewal takes some microseconds
_RENEWED = ".old"
LIMIT = 1 << 20


def handoff_path(home: str, harness: str, workspace: str) -> str:
    """Where a handoff waits for a session of this harness in this workspace."""
    return os.path.join(home, HANDOFFS, f"{harness}-{crc32(os.fsencode(workspace)):08x}")


def leave_handoff(path: str, delivery: str, parts: tuple[str, ...]) -> None:
    """Leave a handoff for the next fresh session."""
    make_folder(os.path.dirname(path))
    _write(f"{path}.new", delivery, parts)
    os.replace(f"{path}.new", path)
    remove(path + _RENEWED)


def renew_handoff(path: str, delivery: str, parts: tuple[str, ...]) -> bool:
    """Put a newer rendering in the place of the one that waits, which keeps its age; False where none waits any more."""
    _write(f"{path}.new", delivery, parts)
    try:
        os.replace(path, path + _RENEWED)  # from here on nobody else takes that one
    except OSError:
        remove(f"{path}.new")
        return False
    began = os.stat(path + _RENEWED).st_mtime
    os.utime(f"{path}.new", (began, began))
    os.replace(f"{path}.new", path)
    remove(path + _RENEWED)
    return True


def _write(path: str, delivery: str, parts: tuple[str, ...]) -> None:
    write_block(path, delivery, parts)
    head, newline, rest = read_bytes(path, LIMIT).partition(b"\n")
    write_atomic(path, head + f" {time.time_ns():x}".encode() + newline + rest, durable=False)


def drop(path: str) -> None:
    """Take a handoff away, and the folder with the last one: where there is none, a session's start looks no further."""
    for name in (path, path + _RENEWED, f"{path}.new"):
        remove(name)
    try:
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # others wait


def waits(path: str) -> bool:
    """True where a handoff waits, and is not too old."""
    try:
        return time.time() - os.stat(path).st_mtime <= EXPIRES_SECONDS
    except OSError:
        return os.path.exists(path + _RENEWED)


def take_handoff(path: str, folder: str, name: str = CURRENT) -> bool:
    """Make the handoff that waits the delivery of the session whose folder is given, by one rename. False where none
    waits, or another session was faster."""
    for attempt in (path, path, path + _RENEWED):
        try:
            if time.time() - os.stat(attempt).st_mtime > EXPIRES_SECONDS:
                return False  # it stays, so that the maintainer can tell one too old from one that was taken
            make_folder(folder)
            os.utime(attempt)  # the delivery begins now
            os.replace(attempt, os.path.join(folder, name))
            return True
        except OSError:
            if not os.path.exists(path + _RENEWED):
                return False
            time.sleep(RENEWING_SECONDS)  # a newer one is just being put there; whoever does may have died
    return False
