"""Who may work: locks that the operating system releases when their owner dies. Off the hook path (filelock is slow).

Three kinds: a session's maintainer (one at a time), the machine's maintainer slots (two), a session's commit lock
(milliseconds). Invariant: no lock is ever broken by another process, and none is held across a worker's call but the
maintainer's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from obsmem.system.files import make_folder, write_atomic
from obsmem.system.paths import safe_name

SLOTS = 2


def _folder(home: str) -> str:
    folder = os.path.join(home, "locks")
    make_folder(folder)
    return folder


@contextmanager
def try_hold(home: str, name: str) -> Iterator[bool]:
    """Hold a named lock if it is free; yields whether it is held. Never waits. The owner's pid stands beside it."""
    from filelock import FileLock, Timeout

    path = os.path.join(_folder(home), safe_name(name))
    lock = FileLock(path + ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        write_atomic(path + ".owner", str(os.getpid()).encode(), durable=False)
        yield True
    finally:
        lock.release()


@contextmanager
def hold(home: str, name: str, seconds: float = 30.0) -> Iterator[None]:
    """Hold a named lock, waiting up to ``seconds``. Raises TimeoutError when it stays taken."""
    from filelock import FileLock, Timeout

    lock = FileLock(os.path.join(_folder(home), safe_name(name) + ".lock"))
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise TimeoutError(f"Another process holds the lock {name!r} for more than {seconds:g} s.") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def try_slot(home: str) -> Iterator[bool]:
    """Take one of the machine's maintainer slots; yields whether one was free."""
    for number in range(SLOTS):
        with try_hold(home, f"maintainer-slot-{number}") as held:
            if held:
                yield True
                return
    yield False


def owner(home: str, name: str) -> int:
    """The pid that last took a lock, for status lines; 0 where none is known."""
    try:
        with open(os.path.join(home, "locks", safe_name(name) + ".owner"), "rb") as file:
            return int(file.read(20) or b"0")
    except (OSError, ValueError):
        return 0
