"""Who wants the maintainer, and who is one: small files, so that a storm of hooks starts two processes and not sixty.

Invariants: whoever wants a look says so before it looks for a free seat, and whoever gives up a seat looks for such
marks afterwards, so that no wish is missed; a seat whose owner is dead is free. The locks of ``system.lock`` remain the
truth about who may work. On the hook path: ``os`` and ``time`` and our own ``files`` only.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import PRIVATE_FILE, make_folder, read_bytes, remove, write_atomic

SEATS = 2
WAITING = "waiting"
SEAT = "seat-"
OLDEST_SECONDS = 3600  # a process id is given again one day: so old a seat says nothing


def name_of(folder: str) -> str:
    """What a session is called here, by its folder of small files: ``<harness>-<folder>``."""
    return f"{os.path.basename(os.path.dirname(folder))}-{os.path.basename(folder)}"


def wish_path(home: str, name: str) -> str:
    """The file that says that a session wants a look."""
    return os.path.join(home, WAITING, name)


def wish(home: str, name: str, work: list[str]) -> None:
    """Say that a session wants a look; ``work`` are the arguments of its maintainer."""
    write_atomic(wish_path(home, name), "\n".join(work).encode("utf-8", "surrogateescape"), durable=False)


def wishes(home: str) -> list[str]:
    """The names of the sessions that want a look, those that wait longest first."""
    folder = os.path.join(home, WAITING)
    found = []
    try:
        for name in os.listdir(folder):
            if not name.startswith(".") and not name.endswith(".tmp"):
                found.append((os.stat(os.path.join(folder, name)).st_mtime_ns, name))
    except OSError:
        pass  # no folder, or one was taken while we looked
    return [name for _, name in sorted(found)]


def wish_of(home: str, name: str) -> list[str]:
    """The arguments of the maintainer that a session wants; [] where it wants none."""
    data = read_bytes(wish_path(home, name))
    return data.decode("utf-8", "surrogateescape").split("\n") if data else []


def seat_path(home: str, number: int) -> str:
    """The file of a seat: a session's name and the process that looks after it."""
    return os.path.join(home, WAITING, f".{SEAT}{number}")


def take_seat(home: str, name: str) -> int | None:
    """Take a free seat for a session. None where there is none, or where somebody looks after this session already."""
    for number in range(SEATS):
        if _owner(home, number) == name:
            return None
    for number in range(SEATS):
        if not _owner(home, number) and _sit(home, number, name):
            return number
        if _owner(home, number) == name:
            return None
    return None


def sign(home: str, number: int, name: str, pid: int) -> None:
    """Write down who sits here, and for which session."""
    write_atomic(seat_path(home, number), f"{pid} {name}".encode(), durable=False)


def leave_seat(home: str, number: int) -> None:
    """Make a seat free. Look for wishes afterwards."""
    remove(seat_path(home, number))


def _sit(home: str, number: int, name: str) -> bool:
    """Take a seat in one step, name and all; False where somebody was faster."""
    path = seat_path(home, number)
    mine = f"{path}.{os.getpid()}.tmp"
    make_folder(os.path.dirname(path))
    descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    os.write(descriptor, f"{os.getpid()} {name}".encode())
    os.close(descriptor)
    try:
        if hasattr(os, "link"):
            os.link(mine, path)
        else:
            os.rename(mine, path)  # fails on such a platform where the seat is taken
    except OSError:
        return False
    finally:
        remove(mine)
    return True


def _owner(home: str, number: int) -> str:
    """The session that a living process looks after in a seat; '' where the seat is free, which it then really is."""
    path = seat_path(home, number)
    data = read_bytes(path, 4096).decode("utf-8", "replace")
    pid, _, name = data.partition(" ")
    if pid.isdigit() and name and _is_alive(int(pid)):
        try:
            if abs(time.time() - os.stat(path).st_mtime) < OLDEST_SECONDS:
                return name
        except OSError:
            return ""
    if data:
        remove(path)
    return ""


def _is_alive(pid: int) -> bool:
    """True while a process runs (one that only waits to be reaped does not). Where nobody can tell, it does."""
    stat = read_bytes(f"/proc/{pid}/stat", 4096)
    if stat:
        return not stat.rpartition(b")")[2].startswith((b" Z", b" X"))
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
