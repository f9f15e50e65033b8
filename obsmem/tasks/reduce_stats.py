"""What shortening saved: bytes and tokens by rule and by command, and how often the whole was wanted afterwards.

Invariant: everything is counted from what is kept: rows of ``memory.db`` for what was shortened, the record itself for what
agents asked for again; nothing is counted while somebody waits for an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from obsmem.core.decisions import REDUCE
from obsmem.core.errors import NotFound
from obsmem.core.ids import entry_id
from obsmem.core.model import Entry
from obsmem.store.archive_schema import KIND_CODES
from obsmem.store.memory_reductions import Reduction
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store

CALL = KIND_CODES["tool_call"]
_ASKING = re.compile(r"\b(?:recall|get|tool)\b")  # what asks for an entry again, by whatever name of it


class Saved(NamedTuple):
    """Results that were shortened: how many, sizes before and after in bytes and estimated tokens, and how many of them an
    agent asked for again."""

    name: str
    outputs: int = 0
    whole_bytes: int = 0
    kept_bytes: int = 0
    whole_tokens: int = 0
    kept_tokens: int = 0
    recalled: int = 0

    @property
    def share(self) -> float:
        """The part of the tokens that was saved."""
        return 1 - self.kept_tokens / self.whole_tokens if self.whole_tokens else 0.0


class Stats(NamedTuple):
    """What was shortened since a time, all together and apart; ``left`` counts by reason what was left as it is."""

    total: Saved
    rules: tuple[Saved, ...]
    heads: tuple[Saved, ...]
    left: tuple[tuple[str, int], ...]


def reduce_stats(store: Store, since: int) -> Stats:
    """Count what was shortened since a time in milliseconds."""
    rows = store.memory.reductions(since)
    wanted = _recalled(store, rows)
    (total,) = _sums(rows, wanted, lambda one: "all") or (Saved("all"),)
    left: Counter[str] = Counter()
    for session in store.archive.sessions():
        for one in store.memory.decisions(session.session.handle, since):
            if one.what == REDUCE and one.why.startswith("left as it is: "):
                left[one.why.partition(": ")[2]] += 1
    rules = _sums(rows, wanted, lambda one: one.rule)
    return Stats(total, rules, _sums(rows, wanted, lambda one: one.head or "?"), tuple(left.most_common()))


def _sums(rows: Iterable[Reduction], wanted: set[str], name: Callable[[Reduction], str]) -> tuple[Saved, ...]:
    """The rows of each name added up, those that saved the most tokens first."""
    found: dict[str, Saved] = {}
    for one in rows:
        key = name(one)
        old = found.get(key, Saved(key))
        found[key] = Saved(
            key,
            old.outputs + 1,
            old.whole_bytes + one.whole_bytes,
            old.kept_bytes + one.kept_bytes,
            old.whole_tokens + one.whole_tokens,
            old.kept_tokens + one.kept_tokens,
            old.recalled + (one.id in wanted),
        )
    return tuple(sorted(found.values(), key=lambda one: (one.kept_tokens - one.whole_tokens, one.name)))


def _recalled(store: Store, rows: Iterable[Reduction]) -> set[str]:
    """The ids of the results that an agent asked for again later in the same session, by whatever name they have."""
    wanted: set[str] = set()
    by_session: dict[str, list[Reduction]] = {}
    for one in rows:
        by_session.setdefault(one.session, []).append(one)
    for handle, those in by_session.items():
        try:
            stored = store.archive.by_handle(handle)
        except NotFound:
            continue  # forgotten since
        first = min(one.seq for one in those)
        calls = store.archive.entries(stored.no, first, None, f"kind={CALL} AND copied=0 AND replaced_by IS NULL")
        for call in read_entries(store, stored, calls, lost=True):
            wanted.update(one.id for one in those if call.seq > one.seq and _asks_for(call, one))
    return wanted


def _asks_for(call: Entry, one: Reduction) -> bool:
    if one.id in call.text:
        return True
    names = (one.call_id, entry_id(one.session, one.seq))
    is_named = any(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\d)", call.text) for name in names if name)
    return is_named and _ASKING.search(call.text) is not None
