"""What a status line shows of a session: worked out from the store, and left where it can be read without one.

Invariant: what the harness itself reported of its window is learned as such, and nothing else of a status line's payload.
"""

from __future__ import annotations

from obsmem.core.clock import Clock
from obsmem.store.archive import StoredSession
from obsmem.store.reported import set_window
from obsmem.system.factsfile import Facts, read_report, write_facts
from obsmem.tasks.deliveries import Delivery, newest_delivery
from obsmem.tasks.observe import observe_clock
from obsmem.tasks.occupancy import occupancy
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.tasks.windows import LARGEST, REPORTED, SMALLEST, bare_name, learn_window


def facts_of(store: Store, stored: StoredSession, clock: Clock) -> Facts:
    """What is known of a session now. Writes nothing."""
    handle = stored.session.handle
    now, memory, facts = occupancy(store, stored), remember(store, stored), Facts()
    facts.tokens, facts.mark = now.tokens, now.window.mark
    facts.window, facts.size = now.window.size, now.window.usable
    facts.notes, facts.pins = len(memory.notes), len(memory.pins)
    facts.observed = max((call.at for call in store.memory.calls(handle, "observe")), default=0)
    waiting = observe_clock(store, stored, store.memory.covered_to(handle))
    facts.next_in = max(1, store.config["observe_after_tokens"] - waiting)
    facts.delivery = _delivery(newest_delivery(store, stored), clock)
    return facts


def leave_facts(store: Store, stored: StoredSession, clock: Clock, *, ends: bool = False) -> None:
    """Leave what a status line shows of a session. ``ends``: a compaction comes, and nobody knows yet what it leaves."""
    facts = facts_of(store, stored, clock)
    if ends:
        facts.tokens = 0
    write_facts(store.folder_of(stored), facts)


def learn_reported(store: Store, stored: StoredSession) -> StoredSession:
    """Learn the window that the harness reported through its status line, if it did: that of this session, and of the model,
    unless the model's name tells of another window than its usual one (``name[1m]``)."""
    report = read_report(store.folder_of(stored))
    if report is None or not SMALLEST <= report.size <= LARGEST:
        return stored
    if report.model and report.model == bare_name(report.model):
        learn_window(store, stored.session.harness, report.model, report.size, REPORTED)
    if report.size == stored.session.window:
        return stored
    set_window(store.archive, stored.no, report.size)
    return store.archive.by_handle(stored.session.handle)


def _delivery(found: Delivery, clock: Clock) -> str:
    """What became of the last block, in the few words that a line has room for."""
    if found.state == "waiting":
        return "block not seen yet"
    if found.state == "missing":
        return "block did not arrive"
    if not found.at:
        return ""
    at = clock(found.at)[-5:]  # the time alone
    if found.state == "given":
        return f"block given {at}"
    return f"block {len(found.parts)}/{found.of} {at}"
