"""The rendered block as a file that a hook can deliver without a database, part by part.

Invariants: the text that one delivery hands out never changes, however many hooks ask for its parts, in whatever
order and at the same time, and where it is kept it stays the same until the next compaction; it is never older than the
compaction that it follows; each part is handed out once, and so is a second try; a file that was cut short is no
block. On the hook path: ``os``, ``time`` and our ``files`` only.

Format: ``obsmem-block 1 <delivery> <number of parts>``, and behind it, where it waits to be delivered, ``<occasion>``;
newline, then for each part its length in bytes, newline, and the part.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import PRIVATE_FILE, make_folder, read_bytes, remove, write_atomic

NEXT = "block.next"
CURRENT = "block.current"
DUE = "block.due"
KEPT = "block.kept"  # until the next compaction
RESUME = "block.resume"  # the block for a resumed session: only there while its context lacks one
RETRY = "block.retry"  # part 1 once more, for the next prompt
RETRIED = "block.retried"
MAKING = "block.making"  # a session start has the block made
GIVEN = "block.given-"  # <occasion>-<part>: this part was handed out
HANDOFFS = "handoffs"  # of the data folder: what waits for fresh sessions
KEPT_HANDOFF = "handoff.kept"  # of a session whose block stands in every request
MAGIC = b"obsmem-block 1 "
HELD_SECONDS = 60  # the handlers of one session start all come within this time
DUE_SECONDS = 1800  # a compaction comes within this time, or never (a refused one has its hook, too)
MAKING_SECONDS = 15  # whoever makes a block has long been killed then
LIMIT = 1 << 20


def write_next(folder: str, delivery: str, parts: tuple[str, ...]) -> None:
    """Leave the newest rendering for the next delivery."""
    write_block(os.path.join(folder, NEXT), delivery, parts)


def write_block(path: str, delivery: str, parts: tuple[str, ...]) -> None:
    """Write a block file in one step."""
    pieces = [MAGIC + f"{delivery} {len(parts)}\n".encode()]
    for part in parts:
        data = part.encode("utf-8", "replace")
        pieces.append(f"{len(data)}\n".encode() + data)
    write_atomic(path, b"".join(pieces))


def make_due(folder: str, name: str = DUE) -> str:
    """Say that the newest rendering holds everything up to the compaction that is about to come: keep it as it is.

    Returns the occasion, which names this delivery even where its text was delivered before. With RESUME as ``name``
    it waits for the session to be resumed instead.
    """
    occasion = f"{time.time_ns():x}"
    head, newline, rest = read_bytes(os.path.join(folder, NEXT), LIMIT).partition(b"\n")
    _forget_given(folder)
    data = head + f" {occasion}".encode() + newline + rest if newline else b""
    write_atomic(os.path.join(folder, name), data, durable=False)
    return occasion


def _forget_given(folder: str) -> None:
    """Remove the marks of all deliveries but the current one."""
    kept = GIVEN + occasion_of(os.path.join(folder, CURRENT)) + "-"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(GIVEN) and not name.startswith(kept):
            remove(os.path.join(folder, name))


def freeze(folder: str, now: float) -> list[str] | None:
    """The parts of the block that is being delivered; None where nothing is ready.

    A rendering that was made due becomes ``block.current`` by one rename, whoever comes first, and all that ask within
    HELD_SECONDS get that one. Where none is due, the newest rendering may be older than what the compaction took away,
    so it is not delivered: the caller has it made first.
    """
    due = os.path.join(folder, DUE)
    try:
        if abs(now - os.stat(due).st_mtime) > DUE_SECONDS:
            remove(due)
        else:
            _move(due, os.path.join(folder, CURRENT), now)
    except OSError:
        pass  # none is due, or somebody else was faster
    return held(folder, now)


def freeze_for_resume(folder: str, now: float) -> list[str] | None:
    """The parts for a resumed session whose context holds no whole block; None where it does, or where nobody knows.

    Whatever else is handed out for the same start (a harness may have two reasons for one) is this delivery, too.
    """
    try:
        _move(os.path.join(folder, RESUME), os.path.join(folder, CURRENT), now)
    except OSError:
        pass  # none waits, or another part's handler was faster
    return held(folder, now)


def _move(path: str, to: str, now: float) -> None:
    os.utime(path, (now, now))  # it begins now, and never looks older
    os.replace(path, to)


def held(folder: str, now: float) -> list[str] | None:
    """The parts of the delivery that began within HELD_SECONDS; None where none did."""
    current = os.path.join(folder, CURRENT)
    try:
        is_new = abs(now - os.stat(current).st_mtime) <= HELD_SECONDS
    except OSError:
        is_new = False
    return read(current)[1] if is_new else None


def take_part(folder: str, number: int) -> bool:
    """Take a part of the current delivery to hand it out; False where somebody did (a hook that is registered twice)."""
    name = f"{GIVEN}{occasion_of(os.path.join(folder, CURRENT))}-{number}"
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    except FileExistsError:
        return False
    except OSError:
        pass  # better twice than not at all
    return True


def take_retry(folder: str, now: float) -> str:
    """The text of the second try, for whoever comes first; '' where none waits."""
    taken = os.path.join(folder, RETRIED)
    try:
        _move(os.path.join(folder, RETRY), taken, now)
    except OSError:
        return ""
    return "\n".join(read(taken)[1])


def end_waiting(folder: str) -> None:
    """Once a block is handed out, no second try and no resumed session gives another."""
    for name in (RETRY, RESUME, DUE):
        remove(os.path.join(folder, name))


def keep(folder: str, since: str = "") -> list[str]:
    """Make the rendering that is due the one that is kept until the next compaction, and give its parts; none are kept
    where none is due, since an older one would be older than the compaction. ``since`` (milliseconds) is when that was
    where it was before now: the file gets its time."""
    kept = os.path.join(folder, KEPT)
    try:
        os.replace(os.path.join(folder, DUE), kept)
        if since:
            os.utime(kept, (int(since) / 1000, int(since) / 1000))
    except OSError:
        remove(kept)
    return read(kept)[1]


def kept(folder: str, since: str) -> list[str]:
    """The parts of the block that is kept until the next compaction; none where none is, or where it is younger than the
    last compaction, at ``since`` (milliseconds): then it was made for one that was taken back, or that failed."""
    path = os.path.join(folder, KEPT)
    try:
        if since and os.stat(path).st_mtime * 1000 > int(since) + 1:  # its own is at most rounded down
            return []
    except OSError:
        pass  # nothing is kept
    return read(path)[1]


def begin_making(folder: str, now: float) -> bool:
    """Begin to have a block made for a session start; False where somebody else does. Call ``freeze`` once more then:
    it may just have been finished. ``end_making`` must follow."""
    path = os.path.join(folder, MAKING)
    try:
        if abs(now - os.stat(path).st_mtime) > MAKING_SECONDS:  # a clock may have been set back since
            remove(path)
    except OSError:
        pass  # nobody makes one
    try:
        make_folder(folder)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    except FileExistsError:
        return False
    return True


def end_making(folder: str) -> None:
    """Let others have a block made again. Call it after ``freeze``, or after ``hold_nothing``."""
    remove(os.path.join(folder, MAKING))


def hold_nothing(folder: str) -> None:
    """Begin a delivery of nothing, so that the other handlers of this session start need not wait for one."""
    write_atomic(os.path.join(folder, CURRENT), b"", durable=False)


def read(path: str) -> tuple[str, list[str]]:
    """(delivery, parts) of a block file; ("", []) where it is missing or incomplete."""
    data = read_bytes(path, LIMIT)
    head, _, rest = data.partition(b"\n")
    words = head[len(MAGIC) :].split(b" ") if head.startswith(MAGIC) else []
    if len(words) not in (2, 3) or not words[1].isdigit():
        return "", []
    parts = []
    try:
        for _ in range(int(words[1])):
            length, _, rest = rest.partition(b"\n")
            part, rest = rest[: int(length)], rest[int(length) :]
            if len(part) != int(length):
                return "", []
            parts.append(part.decode("utf-8", "replace"))
    except ValueError:
        return "", []
    return words[0].decode("ascii", "replace"), parts


def occasion_of(path: str) -> str:
    """What names the delivery of a block file; '' where it never waited for one."""
    words = read_bytes(path, 200).partition(b"\n")[0].split(b" ")
    return words[4].decode("ascii", "replace") if len(words) == 5 else ""
