"""What became of the block after the newest compaction, and what hooks are to do about it.

Invariants: a delivery counts as received only by the marks of its parts that stand in the transcript behind the
compaction; a second try is decided once for each compaction, and gives the text of the delivery that was lost; hooks
learn all this from files alone (``block.retry``, ``block.resume``, ``block.open``), and where nothing is known there
is no file.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import DELIVER, SECOND_TRY
from obsmem.harnesses import load
from obsmem.memory.render import CLOSE, PART_BYTES
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES, SPEAKER_CODES
from obsmem.system import blockfile
from obsmem.system.blockfile import CURRENT, DUE, DUE_SECONDS, KEPT, NEXT, RESUME, RETRIED, RETRY, make_due, occasion_of
from obsmem.system.files import read_bytes, remove, write_atomic
from obsmem.system.state import OPEN_FILE
from obsmem.tasks.called import command
from obsmem.tasks.decide import decide
from obsmem.tasks.store import Store

_ANSWERED = (
    f"speaker={SPEAKER_CODES['agent']} AND kind IN ({KIND_CODES['assistant']}, {KIND_CODES['tool_call']}) AND active=1"
)


class Delivery(NamedTuple):
    """The block after the newest compaction of a session.

    ``compaction`` counts from 1 (0: there was none), ``boundary`` is its seq. ``state``: none | waiting (nothing
    answered yet) | whole | partial | missing | given (a harness whose transcripts do not show what hooks gave). ``parts``
    of ``of`` were received, the last one at ``at`` (milliseconds). ``offered`` and ``tried`` are when a second try was
    decided and given, 0 for never.
    """

    compaction: int = 0
    boundary: int = -1
    state: str = "none"
    delivery: str = ""
    parts: tuple[int, ...] = ()
    of: int = 0
    at: int = 0
    offered: int = 0
    tried: int = 0


def newest_delivery(store: Store, stored: StoredSession) -> Delivery:
    """What became of the newest block of a session, from its receipts and files. Writes nothing."""
    folder = store.folder_of(stored)
    if not shows_receipts(stored.session.harness):
        return _handed_out(folder)
    boundaries = store.archive.boundaries(stored.no)
    if not boundaries:
        return Delivery()
    boundary = boundaries[-1]
    offered = store.memory.decided(stored.session.handle, SECOND_TRY, _about(boundary))
    given = _changed(os.path.join(folder, RETRIED))
    found = Delivery(
        len(boundaries), boundary, offered=offered, tried=given if offered and given >= offered else 0
    )  # fmt: skip
    received = _received(store, stored, boundary)
    if received is not None:
        delivery, parts, of, at = received
        state = "whole" if len(parts) == of else "partial"
        return found._replace(state=state, delivery=delivery, parts=parts, of=of, at=at)
    answered = any(True for _ in store.archive.entries(stored.no, boundary + 1, where=_ANSWERED))
    return found._replace(state="missing" if answered else "waiting")


def shows_receipts(harness: str) -> bool:
    """True if a harness's transcripts hold what hooks gave to the model."""
    return load(harness).SHOWS_RECEIPTS


def _received(store: Store, stored: StoredSession, boundary: int) -> tuple[str, tuple[int, ...], int, int] | None:
    """(delivery, parts, of, at) of the most complete delivery behind a boundary, the newest of equals."""
    deliveries: dict[str, tuple[set[int], int, int]] = {}
    for delivery, part, seq, at in store.memory.receipts(stored.session.handle):
        if seq > boundary:
            number, _, of = part.partition("/")
            numbers, _, _ = deliveries.pop(delivery, (set[int](), 0, 0))
            deliveries[delivery] = ({*numbers, int(number)}, int(of), at)
    best: tuple[str, tuple[int, ...], int, int] | None = None
    for delivery, (found, count, last) in deliveries.items():
        if best is None or len(found) / count >= len(best[1]) / best[2]:
            best = delivery, tuple(sorted(found)), count, last
    return best


def _handed_out(folder: str) -> Delivery:
    for path in (os.path.join(folder, CURRENT), os.path.join(folder, KEPT)):
        delivery, parts = blockfile.read(path)
        if parts:
            numbers = tuple(range(1, len(parts) + 1))
            return Delivery(0, -1, "given", delivery, numbers, len(parts), _changed(path))
    return Delivery()


def open_delivery(store: Store, stored: StoredSession) -> None:
    """A compaction is about to come, and its block is due: end what waited for an earlier one, and have the next turn's
    end start the maintainer, which looks whether the block arrived."""
    folder = store.folder_of(stored)
    for name in (RETRY, RESUME):
        remove(os.path.join(folder, name))
    last = newest_delivery(store, stored)
    # Where a start after the compaction had the block made, the compaction stands in the transcript already.
    since = last.boundary - 1 if last.state == "waiting" else last.boundary
    # A session start that waits for the block may have taken it in the meantime.
    occasion = occasion_of(os.path.join(folder, DUE)) or occasion_of(os.path.join(folder, CURRENT))
    _write_open(folder, since, occasion)


def settle(store: Store, stored: StoredSession) -> Delivery:
    """Look whether the block arrived after the newest compaction, and leave what hooks must know. Call it after the
    newest rendering was left."""
    folder = store.folder_of(stored)
    mark = os.path.join(folder, OPEN_FILE)
    found = newest_delivery(store, stored)
    since, occasion = _read_open(folder)
    long_ago = time.time() * 1000 - _changed(mark) > DUE_SECONDS * 1000
    if not shows_receipts(stored.session.harness):
        if long_ago or not os.path.exists(os.path.join(folder, DUE)):
            remove(mark)
        return found
    if occasion and found.boundary <= since:  # the compaction did not come yet, or was refused
        if long_ago:
            remove(mark)
        return found
    if found.state in ("none", "whole"):
        if os.path.exists(mark):
            _decide_arrival(store, stored, found)
        for name in (mark, os.path.join(folder, RETRY), os.path.join(folder, RESUME)):
            remove(name)
        return found
    leave_for_resume(folder)
    _decide_arrival(store, stored, found)
    if found.state == "missing" and not found.offered:
        _offer(store, stored, found, occasion)
    elif found.state == "partial":
        remove(os.path.join(folder, RETRY))
    if found.state == "waiting" or os.path.exists(os.path.join(folder, RETRY)):
        if not os.path.exists(mark):
            _write_open(folder, found.boundary - 1, "")
    else:
        remove(mark)
    return newest_delivery(store, stored)


def _decide_arrival(store: Store, stored: StoredSession, found: Delivery) -> None:
    """Write down, once for each compaction, whether its block was found in the transcript."""
    arrived = {"whole": "arrived whole", "partial": "arrived in part", "missing": "did not arrive"}.get(found.state)
    why = f"{arrived} behind {_about(found.boundary)}"
    if arrived is not None and not store.memory.decided(stored.session.handle, DELIVER, why):
        decide(
            store, stored, DELIVER, why, compaction=found.compaction, delivery=found.delivery, found=len(found.parts),
            of=found.of,
        )  # fmt: skip


def leave_for_resume(folder: str) -> None:
    """Leave the newest rendering for a resumed session, once for each rendering."""
    if blockfile.read(os.path.join(folder, NEXT))[1]:
        make_due(folder, RESUME)


def _offer(store: Store, stored: StoredSession, found: Delivery, occasion: str) -> None:
    """Leave part 1 of the lost delivery for the next prompt."""
    folder = store.folder_of(stored)
    delivery, parts = _lost(folder, occasion)
    # Decided before it is offered: killed in between, the second try is lost, and never given twice.
    decide(
        store, stored, SECOND_TRY, _about(found.boundary), compaction=found.compaction, delivery=delivery,
        parts=len(parts),
    )  # fmt: skip
    if parts:
        text = first_part(parts, f"`{command()} block {stored.session.handle}` prints the other parts.")
        blockfile.write_block(os.path.join(folder, RETRY), delivery, (text,))
    remove(os.path.join(folder, DUE))


def _lost(folder: str, occasion: str) -> tuple[str, list[str]]:
    """The delivery that did not arrive: as it was frozen, as it was due, or, where nobody made one, as it would be now."""
    for name in (CURRENT, DUE):
        path = os.path.join(folder, name)
        if occasion and occasion_of(path) == occasion:
            return blockfile.read(path)
    return blockfile.read(os.path.join(folder, NEXT))


def first_part(parts: list[str], hint: str) -> str:
    """Part 1 with a line on how to get the others; of its own lines, as many of the last ones go as that line needs."""
    if len(parts) == 1:
        return parts[0]
    body, _, _ = parts[0].rpartition(CLOSE)
    lines = body.rstrip("\n").split("\n")
    while len(lines) > 1 and len("\n".join([*lines, hint, CLOSE]).encode()) > PART_BYTES:
        lines.pop()
    return "\n".join([*lines, hint, CLOSE])


def recent_deliveries(store: Store, most: int = 5) -> list[tuple[StoredSession, Delivery]]:
    """The newest block of the main sessions that hooks ever had a block made for, newest session first: of the last
    ``most``, and of as many more whose block did not arrive whole."""
    found: list[tuple[StoredSession, Delivery]] = []
    counts = {True: 0, False: 0}
    for stored in store.archive.sessions():
        if stored.session.role != "main" or not store.memory.had_block(stored.session.handle):
            continue
        delivery = newest_delivery(store, stored)
        arrived = delivery.state in ("whole", "given")
        if delivery.state != "none" and counts[arrived] < most:
            counts[arrived] += 1
            found.append((stored, delivery))
    return found


def describe(found: Delivery, clock: Clock) -> str:
    """What became of a delivery, in words: ``delivered 4/4 at 2026-03-01 14:02 after compaction 3``; '' for nothing."""
    after = f"after compaction {found.compaction}"
    if found.state == "none":
        return ""
    if found.state == "given":
        return f"handed out at {clock(found.at)}"
    if found.state == "waiting":
        return f"not seen yet {after}"
    if found.state == "whole":
        said = f"delivered {len(found.parts)}/{found.of} at {clock(found.at)} {after}"
        return f"{said}, at the second try" if found.tried else said
    missing = [str(number) for number in range(1, found.of + 1) if number not in found.parts]
    said = f"part {', '.join(missing)} of {found.of} missing {after}" if missing else f"not delivered {after}"
    if found.tried:
        return f"{said}; part 1 given with the prompt at {clock(found.tried)}"
    return f"{said}; part 1 comes with the next prompt" if found.offered else said


def _about(boundary: int) -> str:
    return f"boundary {boundary}"


def _write_open(folder: str, since: int, occasion: str) -> None:
    write_atomic(os.path.join(folder, OPEN_FILE), f"{since} {occasion}\n".encode(), durable=False)


def _read_open(folder: str) -> tuple[int, str]:
    """(seq of the newest boundary when the delivery was opened, its occasion); (-1, "") where none is open."""
    since, _, occasion = (
        read_bytes(os.path.join(folder, OPEN_FILE), 200).decode("utf-8", "replace").strip().partition(" ")
    )
    try:
        return int(since), occasion
    except ValueError:
        return -1, ""


def _changed(path: str) -> int:
    """When a file was last written (ms); 0 where there is none."""
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError:
        return 0
