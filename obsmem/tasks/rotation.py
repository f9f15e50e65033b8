"""Rotation: a session is marked, and the next fresh window in its workspace goes on with its handoff.

Invariants: a mark is consumed by one session, or ends after a day; while it waits, the handoff is as new as the session's
last turn; the successor's memory holds its predecessor's notes, and neither copies an entry of the other.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import ROTATE
from obsmem.core.errors import NotFound, UsageError
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES, SPEAKER_CODES
from obsmem.store.memory_rotations import CANCELLED, EXPIRED, TAKEN, Rotation
from obsmem.system import blockfile
from obsmem.system.blockfile import CURRENT, KEPT_HANDOFF
from obsmem.system.handoff_file import drop, handoff_path, leave_handoff, renew_handoff, waits
from obsmem.tasks.decide import decide
from obsmem.tasks.handoff import handoff_block
from obsmem.tasks.reasons import keep_handoff_reasons
from obsmem.tasks.store import Store

LEAST_TURNS = 5  # a younger session has little to hand over, and its window is not full
LONGEST_CHAIN = 50
_HUMAN = f"kind={KIND_CODES['user']} AND speaker={SPEAKER_CODES['human']} AND active=1 AND replaced_by IS NULL"


class Chain(NamedTuple):
    """A session that hands over or was handed something, the newest of its chain. ``continues`` are the sessions that it
    goes on from, the nearest first; ``windows`` counts these and itself; ``marked`` is True while its own handoff waits."""

    session: str
    continues: tuple[str, ...]
    windows: int
    marked: bool

    def words(self) -> str:
        """The same for people."""
        waits_for = "is marked, and its handoff waits for the next fresh session"
        if not self.continues:
            return f"{self.session} {waits_for}"
        goes_on = f"{self.session} continues {self.continues[0]}: window {self.windows} of this work"
        return f"{goes_on}; it {waits_for}" if self.marked else goes_on


def rotate(store: Store, stored: StoredSession, style: str, clock: Clock, *, force: bool = False) -> Rotation:
    """Mark a session, and leave its handoff for the next fresh session of its harness in its workspace. A session that is
    marked already stays so, with a handoff as things are now. Raises UsageError for one that is too young (unless
    ``force``), NotFound where there is nothing to hand over."""
    handle = stored.session.handle
    if _waiting(store, stored) is None and not force:  # one that is marked stays so, whatever its age
        turns, changed = _turns_since(store, stored)
        if turns < LEAST_TURNS:
            decide(store, stored, ROTATE, "refused: too few turns", turns=turns, least=LEAST_TURNS)
            since = " since it last handed over or was handed something" if changed else ""
            raise UsageError(
                f"Session {handle} has {turns} of the {LEAST_TURNS} turns{since} after which rotating is worth it: a fresh "
                "window would know less. Add --force to do it all the same."
            )
    block = handoff_block(store, stored, style, clock)
    mark = store.memory.begin_rotation(handle, style)
    store.memory.add_delivery(mark.no, block.nonce)
    other = _owner(store, _path(store, stored))
    if other is not None and other.no != mark.no:  # one handoff waits in a workspace: the one that was asked for last
        store.memory.end_rotation(other.no, CANCELLED)
    leave_handoff(_path(store, stored), block.nonce, block.parts)
    keep_handoff_reasons(store.folder_of(stored), block)
    decide(
        store, stored, ROTATE, "marked: the next fresh session goes on", style=style, forced=force, least=LEAST_TURNS,
        turns=_turns_since(store, stored)[0], delivery=block.nonce, tokens=block.tokens,
    )  # fmt: skip
    return store.memory.waiting_rotation(handle) or mark


def _turns_since(store: Store, stored: StoredSession) -> tuple[int, bool]:
    """The turns of a session since its last change of windows, and whether there was one: what a handoff that it took, or
    that was taken from it, told of is not counted. Turns without a time count from the last handoff that it was given."""
    handle = stored.session.handle
    given = [
        seq for delivery, _, seq, _ in store.memory.receipts(handle) if store.memory.rotation_of_delivery(delivery)
    ]
    first, taken_at = max(given, default=-1) + 1, store.memory.handed_over(handle)
    rows = store.archive.entries(stored.no, first, where=f"{_HUMAN} AND copied=0")
    turns = sum(1 for row in rows if not row.at or row.at > taken_at)
    return turns, bool(given or taken_at)


def cancel_rotation(store: Store, stored: StoredSession) -> Rotation:
    """Take the mark back. Raises NotFound where none waits."""
    mark = store.memory.waiting_rotation(stored.session.handle)
    if mark is None:
        raise NotFound(f"Session {stored.session.handle} is not marked for rotation.")
    if _is_owner(store, stored, mark):
        drop(_path(store, stored))
    store.memory.end_rotation(mark.no, CANCELLED)
    decide(store, stored, ROTATE, "taken back")
    return mark


def _owner(store: Store, path: str) -> Rotation | None:
    """The mark whose handoff waits there."""
    delivery = blockfile.read(path)[0]
    return store.memory.rotation_of_delivery(delivery) if delivery else None


def _is_owner(store: Store, stored: StoredSession, mark: Rotation) -> bool:
    owner = _owner(store, _path(store, stored))
    return owner is not None and owner.no == mark.no


def drop_handoff(store: Store, stored: StoredSession) -> None:
    """Take a session's handoff away, since it may hold what is being forgotten; its mark ends."""
    mark = store.memory.waiting_rotation(stored.session.handle)
    path = _path(store, stored)
    delivery = blockfile.read(path)[0]
    owner = store.memory.rotation_of_delivery(delivery) if delivery else None
    if mark is not None or (delivery and owner is None) or (owner and owner.session == stored.session.handle):
        drop(path)
    if mark is not None:
        store.memory.end_rotation(mark.no, CANCELLED)


def renew_rotation(store: Store, stored: StoredSession, clock: Clock) -> None:
    """After a turn: bring the handoff of a marked session up to date, or note that it was taken or is too old."""
    mark = _waiting(store, stored)
    if mark is None:
        return
    block = handoff_block(store, stored, mark.style, clock)
    store.memory.add_delivery(mark.no, block.nonce)
    if renew_handoff(_path(store, stored), block.nonce, block.parts):
        keep_handoff_reasons(store.folder_of(stored), block)
    else:
        store.memory.end_rotation(mark.no, TAKEN)


def _waiting(store: Store, stored: StoredSession) -> Rotation | None:
    """The mark of a session whose handoff still waits; one that was taken, or is too old, ends here."""
    mark, path = store.memory.waiting_rotation(stored.session.handle), _path(store, stored)
    if mark is None or waits(path):
        return mark
    ended = EXPIRED if os.path.exists(path) else TAKEN
    store.memory.end_rotation(mark.no, ended)
    decide(store, stored, ROTATE, f"no longer waits: {ended}")
    drop(path)
    return None


def link_rotation(store: Store, stored: StoredSession) -> None:
    """Note that a session goes on where another stopped, if it was given a handoff."""
    handle = stored.session.handle
    if not store.memory.has_rotations() or store.memory.predecessor(handle):
        return
    folder = store.folder_of(stored)
    given = [blockfile.read(os.path.join(folder, name))[0] for name in (CURRENT, KEPT_HANDOFF)]
    given += [delivery for delivery, *_ in store.memory.receipts(handle)]
    for delivery in filter(None, given):
        mark = store.memory.rotation_of_delivery(delivery)
        if mark is not None and mark.session != handle and not mark.successor:
            store.memory.end_rotation(mark.no, TAKEN, handle)
            decide(store, stored, ROTATE, "goes on where another stopped", predecessor=mark.session, delivery=delivery)
            return


def lineage(store: Store, handle: str) -> list[str]:
    """The sessions that a session goes on from, the nearest first."""
    found: list[str] = []
    current = handle
    while len(found) < LONGEST_CHAIN:
        current = store.memory.predecessor(current)
        if not current or current in found or current == handle:
            break
        found.append(current)
    return found


def chains(store: Store) -> list[Chain]:
    """Every chain of windows, by the session that stands at its end, the last grown first; marked sessions too."""
    if not store.memory.has_rotations():
        return []
    pairs = store.memory.successors()
    gone_on, marked = {session for session, _ in pairs}, set(store.memory.waiting_sessions())
    ends = ({successor for _, successor in pairs} - gone_on) | marked
    found = []
    for stored in store.archive.sessions():
        handle = stored.session.handle
        if handle in ends:
            before = tuple(lineage(store, handle))
            found.append(Chain(handle, before, len(before) + 1, handle in marked))
    return found


def _path(store: Store, stored: StoredSession) -> str:
    return handoff_path(store.home, stored.session.harness, stored.session.workspace)
