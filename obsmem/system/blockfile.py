"""The rendered block as a file that a hook can deliver without a database, part by part.

Invariants: the text that one delivery hands out never changes, however many hooks ask for its parts, in whatever
order and at the same time; it is never older than the compaction that it follows; a file that was cut short is no
block. On the hook path: ``os`` and our ``files`` only.

Format: ``obsmem-block 1 <delivery> <number of parts>``, newline, then for each part its length in bytes, newline, and
the part.
"""

from __future__ import annotations

import os

from obsmem.system.files import read_bytes, remove, write_atomic

NEXT = "block.next"
CURRENT = "block.current"
DUE = "block.due"
MAGIC = b"obsmem-block 1 "
HELD_SECONDS = 60  # the handlers of one session start all come within this time
DUE_SECONDS = 1800  # a compaction comes within this time, or never (a refused one has its hook, too)
LIMIT = 1 << 20


def write_next(folder: str, delivery: str, parts: tuple[str, ...]) -> None:
    """Leave the newest rendering for the next delivery."""
    pieces = [MAGIC + f"{delivery} {len(parts)}\n".encode()]
    for part in parts:
        data = part.encode("utf-8", "replace")
        pieces.append(f"{len(data)}\n".encode() + data)
    write_atomic(os.path.join(folder, NEXT), b"".join(pieces))


def make_due(folder: str) -> None:
    """Say that the newest rendering holds everything up to the compaction that is about to come: keep it as it is."""
    write_atomic(os.path.join(folder, DUE), read_bytes(os.path.join(folder, NEXT), LIMIT), durable=False)


def freeze(folder: str, now: float) -> list[str] | None:
    """The parts of the block that is being delivered; None where nothing is ready.

    A rendering that was made due becomes ``block.current`` by one rename, whoever comes first, and all that ask within
    HELD_SECONDS get that one. Where none is due, the newest rendering may be older than what the compaction took away,
    so it is not delivered: the caller has it made first.
    """
    due, current = os.path.join(folder, DUE), os.path.join(folder, CURRENT)
    try:
        if now - os.stat(due).st_mtime > DUE_SECONDS:
            remove(due)
        else:
            os.utime(due, (now, now))  # the delivery begins now, and never looks older
            os.replace(due, current)
    except OSError:
        pass  # none is due, or somebody else was faster
    try:
        held = abs(now - os.stat(current).st_mtime) <= HELD_SECONDS
    except OSError:
        held = False
    return read(current)[1] if held else None


def hold_nothing(folder: str) -> None:
    """Begin a delivery of nothing, so that the other handlers of this session start need not wait for one."""
    write_atomic(os.path.join(folder, CURRENT), b"", durable=False)


def read(path: str) -> tuple[str, list[str]]:
    """(delivery, parts) of a block file; ("", []) where it is missing or incomplete."""
    data = read_bytes(path, LIMIT)
    head, _, rest = data.partition(b"\n")
    if not head.startswith(MAGIC):
        return "", []
    try:
        name, count = head[len(MAGIC) :].split(b" ")
        parts = []
        for _ in range(int(count)):
            length, _, rest = rest.partition(b"\n")
            part, rest = rest[: int(length)], rest[int(length) :]
            if len(part) != int(length):
                return "", []
            parts.append(part.decode("utf-8", "replace"))
    except ValueError:
        return "", []
    return name.decode("ascii", "replace"), parts
