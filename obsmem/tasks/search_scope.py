"""Where a search looks, what it leaves out, and the token of a scan's next page (that of ranked hits: ``search_pages``).

Invariants: every filter of a query becomes a condition on candidates, never a sieve over an answer; a token holds the row
where a scan stopped, so that what arrives meanwhile moves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

from obsmem.core.clock import Clock
from obsmem.core.dates import Span, read_date
from obsmem.core.errors import UsageError
from obsmem.core.finds import Query
from obsmem.core.model import EntryKind
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive import StoredSession
from obsmem.store.archive_scan import Wanted
from obsmem.store.archive_schema import KIND_CODES, row_number
from obsmem.store.search import Filter
from obsmem.system.local_time import local_clock
from obsmem.tasks.scan import Context
from obsmem.tasks.sessions import find_session
from obsmem.tasks.store import Store

NOTE = "note"


class Scope(NamedTuple):
    """The sessions that are searched (the last grown first), the same as filters, whether entries and notes are, and all
    sessions that there are."""

    sessions: tuple[StoredSession, ...]
    filter: Filter
    wanted: Wanted
    entries: bool
    notes: bool
    everything: tuple[StoredSession, ...]

    def allows(self, context: Context) -> bool:
        """True if an entry that is part of this passes the filters which its row does not show."""
        if context.own and not self.filter.own:
            return False
        if self.filter.tools and context.tool.lower() not in [name.lower() for name in self.filter.tools]:
            return False
        named = [path.lower() for path in context.paths]
        return not self.filter.paths or any(want.lower() in path for want in self.filter.paths for path in named)


def read_bounds(since: str, until: str, now: int = 0, clock: Clock = local_clock) -> tuple[int, int]:
    """(since, until) of a query from what somebody gave as dates: from the beginning of the one up to the end of the other,
    in milliseconds, 0 for ''. ``now`` in milliseconds, this moment for 0. Raises UsageError for what is no date."""
    now = now or int(time.time() * 1000)
    first, last = _span("since", since, now, clock), _span("until", until, now, clock)
    return first.start if first else 0, last.end if last else 0


def _span(name: str, text: str, now: int, clock: Clock) -> Span | None:
    if not text:
        return None
    found = read_date(text, now, clock)
    if found is None:
        raise UsageError(
            f"{name!r} takes a date such as 2026-03-01, yesterday, 'last tuesday' or '3 days ago', not {text!r}."
        )
    return found


def make_scope(store: Store, query: Query) -> Scope:
    """Turn a query's filters into conditions. Raises NotFound for a session, UsageError for a kind, that there is not."""
    everything = store.archive.sessions()
    known = [one for one in everything if one.session.role != "worker"]
    chosen = known
    if query.sessions:
        handles = {find_session(store, name).session.handle for name in query.sessions}
        chosen = [one for one in known if one.session.handle in handles or _is_part_of(one, handles)]
    if query.harness:
        chosen = [one for one in chosen if one.session.harness == query.harness]
    if query.workspace:
        chosen = [one for one in chosen if one.session.workspace == query.workspace]
    kinds = tuple(kind for kind in query.kinds if kind != NOTE)
    wrong = [kind for kind in kinds if kind not in KIND_CODES]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is no kind of entry: there are {', '.join([*KIND_CODES, NOTE])}.")
    hidden = _hidden(store, query)
    filter_ = Filter(
        sessions=None if len(chosen) == len(everything) else frozenset(one.no for one in chosen),
        kinds=kinds,
        tools=query.tools,
        paths=_paths(query.path, chosen),
        since=query.since,
        until=query.until,
        hidden=hidden,
        own=query.own,
    )
    wanted = Wanted(cast("tuple[EntryKind, ...]", kinds), query.since, query.until, hidden)
    only_notes = bool(query.kinds) and not kinds
    notes = not query.tools and (not query.kinds or NOTE in query.kinds)
    return Scope(tuple(chosen), filter_, wanted, bool(chosen) and not only_notes, notes, tuple(everything))


def _is_part_of(stored: StoredSession, handles: set[str]) -> bool:
    """True for the sub-agents of the sessions that are named."""
    parent = stored.session.parent
    return stored.session.role == "subagent" and parent is not None and parent[0] in handles


def _hidden(store: Store, query: Query) -> tuple[int, int] | None:
    """The row numbers that stand in the asker's own context."""
    if query.live is None:
        return None
    handle, seq = query.live
    number = store.archive.by_handle(handle).no
    return row_number(number, max(0, seq)), row_number(number + 1, 0) - 1


def _paths(path: str, sessions: Sequence[StoredSession]) -> tuple[str, ...]:
    """A wanted path as records may name it: as it is, and as seen from the folders that sessions ran in."""
    plain = path.replace("\\", "/").removeprefix("./")
    if not plain:
        return ()
    folders = {one.session.cwd.replace("\\", "/").rstrip("/") + "/" for one in sessions if one.session.cwd}
    below = [
        plain[len(folder) :] for folder in sorted(folders) if plain.startswith(folder) and len(plain) > len(folder)
    ]
    return (plain, *dict.fromkeys(below))


def row_token(number: int) -> str:
    """A token for the page of entries under a row number."""
    return f"r{number:x}"


def read_row(token: str) -> int:
    """The row number that a token names, 0 for ''. Raises UsageError where it is none of ours."""
    if not token:
        return 0
    try:
        if not token.startswith("r") or len(token) > 20:
            raise ValueError(token)
        return int(token[1:], 16)
    except ValueError:
        raise no_token(token) from None


def no_token(token: str) -> UsageError:
    """What is said of a token that is none of ours."""
    return UsageError(
        f"{token[:40]!r} names no page of this search: give the 'more' of the page before, with the same words and options."
    )
