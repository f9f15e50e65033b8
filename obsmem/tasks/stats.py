"""What the requests of all sessions took: by session, day, model, harness or workspace.

Invariants: every request counts once, in the session whose transcript shows it; what a sub-agent took counts for the session
that it worked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from obsmem.core.pressure import Spend
from obsmem.store.archive import StoredSession
from obsmem.store.measures import Spent, spent_since
from obsmem.tasks.store import Store

NO_NAME = "unknown"


class Row(NamedTuple):
    """One line of the statistics. ``unknown`` requests were seen by an earlier version, which kept only their number."""

    name: str
    sessions: int
    spend: Spend
    unknown: int = 0


class _Group(NamedTuple):
    """What is added up to a line."""

    sessions: set[str]
    parts: list[Spent]


def stats(store: Store, since: int, by: str) -> tuple[list[Row], Row]:
    """What was spent since a time in milliseconds, the most first, by day the newest first; and all together. ``by`` is a key
    of BY."""
    sessions = {one.session.handle: one for one in store.archive.sessions()}
    groups: dict[str, _Group] = {}
    for one in spent_since(store.archive.connection, since):
        owner = _owner(sessions, one.session)
        group = groups.setdefault(BY[by](one, owner) or NO_NAME, _Group(set(), []))
        group.sessions.add(owner.session.handle)
        group.parts.append(one)
    rows = [
        Row(name, len(group.sessions), total(group.parts), sum(part.unknown for part in group.parts))
        for name, group in groups.items()
    ]
    everything = [part for group in groups.values() for part in group.parts]
    who = set().union(*(group.sessions for group in groups.values()))
    whole = Row("all", len(who), total(everything), sum(part.unknown for part in everything))
    return sorted(rows, key=lambda row: row.name if by == "day" else row.spend.tokens, reverse=True), whole


def total(parts: Iterable[Spent]) -> Spend:
    """The sum of what was spent."""
    spend = Spend()
    for one in parts:
        spend = spend.plus(Spend(one.requests, one.fresh, one.cached, one.written, one.output))
    return spend


def _owner(sessions: dict[str, StoredSession], handle: str) -> StoredSession:
    """The session that somebody worked for."""
    one, seen = sessions[handle], {handle}
    while one.session.role != "main" and one.session.parent is not None:
        above = one.session.parent[0]
        if above in seen or above not in sessions:
            break
        seen.add(above)
        one = sessions[above]
    return one


BY: dict[str, Callable[[Spent, StoredSession], str]] = {
    "session": lambda spent, owner: owner.session.handle,
    "day": lambda spent, owner: spent.day,
    "model": lambda spent, owner: spent.model,
    "harness": lambda spent, owner: owner.session.harness,
    "workspace": lambda spent, owner: owner.session.workspace or owner.session.cwd,
}
