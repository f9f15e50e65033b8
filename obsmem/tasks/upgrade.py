"""Letting a model observe again what only the extractive worker had observed (config: ``upgrade``).

Invariants: what stands is replaced only by an answer with at least one verified note, in one transaction that writes the
new notes and the tombstones of the old ones; coverage never moves; a stretch that a model could not better is not tried
again.
"""

from __future__ import annotations

import time
from typing import Any

from obsmem.core.clock import Clock
from obsmem.core.decisions import UPGRADE
from obsmem.core.errors import StoreError, WorkerError
from obsmem.memory.repair import judge
from obsmem.store.archive import StoredSession
from obsmem.store.memory_coverage import Stretch
from obsmem.store.schema import transaction
from obsmem.tasks.ask import cascade
from obsmem.tasks.cards import cards_of
from obsmem.tasks.decide import decide
from obsmem.tasks.observe import Done, ask_about, next_chunk, shown_hash
from obsmem.tasks.store import Store

EXTRACTIVE = "extractive"


def upgrade(store: Store, stored: StoredSession, clock: Clock, deadline: float) -> Done:
    """Have models observe again, the newest stretch first, until ``deadline`` (of time.monotonic) or nothing is left."""
    done = Done()
    team = cascade(store, model=stored.session.model)[:-1]
    if not store.config["upgrade"] or not team:
        return done
    cards = cards_of(store, stored)
    for stretch in reversed(_extractive(store, stored.session.handle)):
        if time.monotonic() >= deadline:
            break
        chunk = next_chunk(
            store, stored, stretch.first_seq - 1, int(stretch.shown.partition(":")[0] or 0), clock, stretch.last_seq
        )
        if chunk is None or shown_hash(chunk) != stretch.shown:
            continue  # it cannot be shown again as it was (bytes are gone, an older version)
        name = f"{stretch.first_seq}-{stretch.last_seq}"
        if store.memory.decided(stored.session.handle, UPGRADE, name):
            continue
        try:
            bounds, old = (stretch.first_seq, stretch.last_seq), store.memory.notes_of(stretch.call)
            accepted, call = ask_about(store, stored, cards, bounds, chunk, team, clock, old)
        except (WorkerError, StoreError):
            break  # nobody can be asked now; the next run tries again
        if judge(accepted).good:
            with transaction(store.memory.connection):
                replaced = store.memory.replace_stretch(call, stretch, accepted.notes)
                numbers: dict[str, Any] = {"notes": len(accepted.notes), "before": len(old), "worker": call.worker}
                decide(store, stored, UPGRADE, name, outcome="replaced" if replaced else "late", **numbers)
            if replaced:
                done = done.plus(Done(1, len(accepted.notes), len(accepted.rejected)))
        else:
            store.memory.record_call(call)
            decide(store, stored, UPGRADE, name, outcome="no better", before=len(old), worker=call.worker)
    return done


def _extractive(store: Store, handle: str) -> list[Stretch]:
    """The covered stretches of a session whose notes were made by rule."""
    calls = store.memory.workers_of(handle)
    return [one for one in store.memory.stretches(handle) if calls.get(one.call) == EXTRACTIVE and ":" in one.shown]
