"""The rendered block as a file that a hook can deliver without a database, part by part.

Invariants: the text that one delivery hands out never changes, however many hooks ask for its parts, in whatever
order and at the same time; a file that was cut short is no block. On the hook path: ``os`` and our ``files`` only.

Format: ``obsmem-block 1 <delivery> <number of parts>``, newline, then for each part its length in bytes, newline, and
the part.
"""

from __future__ import annotations

import os

from obsmem.system.files import read_bytes, remove, write_atomic

NEXT = "block.next"
CURRENT = "block.current"
MAGIC = b"obsmem-block 1 "
HELD_SECONDS = 60  # the handlers of one session start all come within this time
LIMIT = 1 << 20


def write_next(folder: str, delivery: str, parts: tuple[str, ...]) -> None:
    """Leave the newest rendering for the next delivery."""
    pieces = [MAGIC + f"{delivery} {len(parts)}\n".encode()]
    for part in parts:
        data = part.encode("utf-8", "replace")
        pieces.append(f"{len(data)}\n".encode() + data)
    write_atomic(os.path.join(folder, NEXT), b"".join(pieces))


def release(folder: str) -> None:
    """End the current delivery: the next session start freezes the newest rendering."""
    remove(os.path.join(folder, CURRENT))


def freeze(folder: str, now: float) -> tuple[str, list[str]]:
    """(delivery, parts) of the block that is being delivered, freezing the newest rendering if none is.

    The first caller links ``block.next`` to ``block.current``; all others within HELD_SECONDS find that one. ("", [])
    where nothing was rendered.
    """
    current = os.path.join(folder, CURRENT)
    try:
        if now - os.lstat(current).st_ctime > HELD_SECONDS:
            remove(current)
    except OSError:
        pass
    try:
        os.link(os.path.join(folder, NEXT), current)
    except FileExistsError:
        pass
    except OSError:
        # No hard links here, or nothing rendered: deliver the newest rendering as it is.
        return read(os.path.join(folder, NEXT))
    return read(current)


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
