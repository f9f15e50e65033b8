"""Who wants the maintainer, and who is one: small files, so that a storm of hooks starts two processes and not sixty.

Invariants: whoever wants a look says so before it looks for a free seat, and whoever gives up a seat looks for such
marks afterwards, so that no wish is missed; a seat whose owner is dead is free. Seats are looked at, taken and signed by
one process at a time: without that, one that has read who sits there would clear the seat that was handed on meanwhile.
The locks of ``system.lock`` remain the truth about who may work. On the hook path: ``os`` and ``time`` and our own
``files`` only.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import PRIVATE_FILE, make_folder, read_bytes, remove, write_atomic

SEATS = 2
WAITING = "waiting"
SEAT = "seat-"
GUARD = ".guard"
GUARD_SECONDS = 0.5  # what is done meanwhile takes a millisecond; a hook has no longer
PATIENT_SECONDS = 5.0  # a maintainer has
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
    """Take a free seat for a session. None where there is none, or where somebody looks after this session already; also
    where others kept us from looking, one of whom then starts somebody who sees our wish."""
    guard = _go_first(home)
    if guard is None:
        return None
    try:
        owners = [_owner(home, number) for number in range(SEATS)]
        if name in owners or "" not in owners:
            return None
        number = owners.index("")
        write_atomic(seat_path(home, number), _signature(os.getpid(), name), durable=False)
        return number
    finally:
        os.close(guard)


def hand_on(home: str, number: int, name: str, pid: int) -> None:
    """Sign the seat that we took for a process that we started, unless it has signed or even left the seat itself."""
    guard = _go_first(home)
    if guard is None:
        return  # it signs for itself
    try:
        path = seat_path(home, number)
        if read_bytes(path, 4096) == _signature(os.getpid(), name):
            write_atomic(path, _signature(pid, name), durable=False)
    finally:
        os.close(guard)


def sign(home: str, number: int, name: str) -> None:
    """Write down that this process sits here, and for which session."""
    guard = _go_first(home, PATIENT_SECONDS)
    try:
        write_atomic(seat_path(home, number), _signature(os.getpid(), name), durable=False)
    finally:
        if guard is not None:
            os.close(guard)


def leave_seat(home: str, number: int) -> None:
    """Make our seat free, if it is still ours."""
    guard = _go_first(home)
    _clear(home, number)
    if guard is not None:
        os.close(guard)


def end_service(home: str, number: int, passed: set[str]) -> bool:
    """Make our seat free unless somebody wants a look whom we have not ``passed``. True: this process has to end now, and
    until it has, nobody else takes a seat, so that a storm of hooks never sees three maintainers."""
    guard = _go_first(home, PATIENT_SECONDS)
    if any(name not in passed for name in wishes(home)):
        if guard is not None:
            os.close(guard)
        return False
    _clear(home, number)
    return True


def wait_until_free(home: str, seconds: float) -> None:
    """Wait until nobody has a seat and whoever had one is gone, at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and os.path.isdir(os.path.join(home, WAITING)):
        guard = _go_first(home)
        is_free = guard is not None and not any(_owner(home, number) for number in range(SEATS))
        if guard is not None:
            os.close(guard)
        if is_free:
            return
        time.sleep(0.02)


def _clear(home: str, number: int) -> None:
    path = seat_path(home, number)
    if read_bytes(path, 4096).startswith(_signature(os.getpid(), "")):
        remove(path)


def _signature(pid: int, name: str) -> bytes:
    return f"{pid} {name}".encode()


def _go_first(home: str, seconds: float = GUARD_SECONDS) -> int | None:
    """Keep the others from the seats until the descriptor is closed, or we die; None where somebody does so for too long.
    ``os`` has the lock, where ``fcntl`` would have to be loaded."""
    path = os.path.join(home, WAITING, GUARD)
    make_folder(os.path.dirname(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    deadline = time.monotonic() + seconds
    while not _lock(descriptor):
        if time.monotonic() > deadline:
            os.close(descriptor)
            return None
        time.sleep(0.001)
    return descriptor


def _lock(descriptor: int) -> bool:
    """Lock an open file if nobody has it. A file system without locks stops nobody."""
    try:
        if hasattr(os, "lockf"):
            os.lockf(descriptor, os.F_TLOCK, 0)
        else:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass
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
