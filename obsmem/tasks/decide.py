"""Writing down what was decided about a session, with the place in its record at which that was.

Invariants: what is written holds numbers and short words, nothing that anybody said; a store that is only read is not written
to. Inside a transaction of the notes the decision stands or falls with what was decided.
"""

from __future__ import annotations

from typing import Any

from obsmem.core.decisions import BLOCK, DELIVER, DROP, OBSERVE, REDUCE, REFLECT, THIN, WAIT
from obsmem.store.archive import StoredSession
from obsmem.tasks.store import Store

DECISION_DAYS = 90  # days that decisions are kept
# Kinds of decisions that nothing but an explanation needs: what was warned of, offered, rotated or tried stays.
_PRUNED = (BLOCK, DELIVER, DROP, OBSERVE, REDUCE, REFLECT, THIN, WAIT)
DAY = 86_400_000  # milliseconds

# How a run of the passes goes about it: what is due, everything, everything by rule alone, what a fork needs of its parent.
DUE, EVERYTHING, FAST, FORK = "due", "everything", "fast", "fork"
NOT_DUE, NOTHING_LEFT, NO_TIME_LEFT = "not due", "nothing is left", "no time is left"


def decide(store: Store, stored: StoredSession, what: str, why: str, *, routine: bool = False, **numbers: Any) -> None:
    """Write down a decision about a session as far as its record goes now (``seq``, and how often its live path changed). See
    ``record_decision``."""
    if not store.readonly:
        where = {"seq": stored.last_seq, **({"rewinds": stored.rewinds} if stored.rewinds else {})}
        store.memory.record_decision(stored.session.handle, what, why, {**where, **numbers}, routine=routine)


def prune(store: Store, now: int) -> int:
    """Remove decisions older than DECISION_DAYS at ``now`` (milliseconds), but for those that say what must not be done
    again; returns how many."""
    return store.memory.prune_decisions(now - DECISION_DAYS * DAY, _PRUNED)
