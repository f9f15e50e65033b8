"""The two passes behind the observer: distilling reflections, and then retiring notes.

Invariants: the reflector runs when enough was observed since it last looked, and never twice over the same; the dropper
follows it, and takes no more than the excess over the target asks for. What was decided is written with what it changed.
"""

from __future__ import annotations

from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import DROP, REFLECT
from obsmem.core.errors import WorkerError
from obsmem.core.model import Card
from obsmem.memory import drop, reflect
from obsmem.memory.chunk import WINDOW_SHARE
from obsmem.memory.lines import pool
from obsmem.store.archive import StoredSession
from obsmem.store.schema import transaction
from obsmem.tasks.ask import ask, window_of
from obsmem.tasks.cards import split_cards
from obsmem.tasks.decide import decide
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.workers.base import Worker


class Done(NamedTuple):
    """What the passes did: stretches, notes, rejected proposals, gaps, reflections, drops."""

    stretches: int = 0
    notes: int = 0
    rejected: int = 0
    gaps: int = 0
    reflections: int = 0
    drops: int = 0

    def plus(self, other: Done) -> Done:
        """The sum, field by field."""
        return Done(*(a + b for a, b in zip(self, other, strict=True)))


def memory_cap(store: Store, team: list[Worker]) -> int:
    """The most tokens of earlier memory that a request holds: what the user says, and no more than a fifth of the window
    of whoever is asked."""
    most = int(store.config["memory_max_tokens"])
    window = window_of(store, team)
    return min(most, window // WINDOW_SHARE) if window else most


def reflect_and_drop(store: Store, stored: StoredSession, cards: list[Card], team: list[Worker], clock: Clock) -> Done:
    """Reflect when enough was observed since the last time, then drop when the pool is over its target."""
    handle = stored.session.handle
    covered = store.memory.covered_to(handle)
    examined = store.memory.progress(handle, "reflect")
    observed = store.archive.observable_tokens(stored.no, examined) - store.archive.observable_tokens(
        stored.no, covered
    )
    threshold = store.config["reflect_after_tokens"]
    if observed < threshold:
        return Done()
    due = {"observed": observed, "threshold": threshold, "examined": examined, "covered": covered}
    memory = remember(store, stored)
    if not memory.notes:
        decide(store, stored, REFLECT, "there is no note yet", routine=True, **due)
        return Done()
    seen, _ = split_cards(cards, covered + 1, covered)
    cap = memory_cap(store, team)
    try:
        reply, call = ask(store, team, reflect.build(memory, seen, handle, cap, clock), examined + 1, covered)
    except WorkerError:
        decide(store, stored, REFLECT, "nobody answered", routine=True, **due)
        return Done()
    accepted = reflect.accept(reply, memory.notes, memory.reflections)
    reflections = accepted.reflections
    with transaction(store.memory.connection):
        committed = store.memory.commit_reflections(
            call._replace(items=len(reflections)), reflections, covered, expected=examined, replaced=accepted.replaced
        )
        decide(
            store, stored, REFLECT, "the clock has reached its threshold", **due, worker=call.worker,
            notes=len(memory.notes), reflections=len(reflections), replaced=len(accepted.replaced),
            outcome="committed" if committed else "late", tokens_in=call.tokens_in, tokens_out=call.tokens_out,
        )  # fmt: skip
    if not committed:
        return Done()
    dropped = _drop(store, stored, seen, team, clock, covered, len(reflections))
    return Done(reflections=len(reflections), drops=dropped)


def _drop(
    store: Store, stored: StoredSession, seen: list[Card], team: list[Worker], clock: Clock, covered: int, fresh: int
) -> int:
    """Retire what is safe to retire; returns how many notes."""
    handle = stored.session.handle
    memory = remember(store, stored)
    target = store.config["pool_target_tokens"]
    tokens = pool(memory.notes)
    due = {"pool": tokens, "target": target, "notes": len(memory.notes), "reflections": fresh, "covered": covered}
    if not drop.should_run(tokens, target, fresh):
        over = "no reflection is new, and the pool is not far over its target"
        decide(store, stored, DROP, over if tokens > target else "the pool is within its target", **due, dropped=0)
        return 0
    tiers = reflect.tiers(memory.notes, memory.reflections)
    allowed = drop.droppable(memory.notes, tiers, strict=not fresh)
    most = min(len(allowed), drop.limit(len(memory.notes), tokens, target))
    due.update(may_go=len(allowed), most=most)
    if most <= 0:
        decide(store, stored, DROP, "no note may go", **due, dropped=0)
        return 0
    cap = memory_cap(store, team)
    request = drop.build(memory._replace(notes=allowed), handle, most, target, cap, clock)._replace(state=tuple(seen))
    try:
        reply, call = ask(store, team, request, 0, covered)
    except WorkerError:
        decide(store, stored, DROP, "nobody answered", **due, dropped=0)
        return 0
    chosen = drop.select(drop.accept(reply.items), allowed, tiers, most)
    with transaction(store.memory.connection):
        store.memory.commit_drops(call._replace(items=len(chosen)), chosen, "retired by the dropper", covered)
        decide(
            store, stored, DROP, "the pool is over its target", **due, worker=call.worker, dropped=len(chosen),
            tokens_in=call.tokens_in, tokens_out=call.tokens_out,
        )  # fmt: skip
    return len(chosen)
