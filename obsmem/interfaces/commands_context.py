"""Commands that say how full a session's window is, and what requests took: context, stats. None of them writes."""

from __future__ import annotations

import argparse
import time
from typing import Any

from obsmem.core.clock import Clock
from obsmem.core.ids import entry_id
from obsmem.core.pressure import Occupancy, Spend
from obsmem.interfaces.report import many, say, say_json, table
from obsmem.store.archive import StoredSession
from obsmem.store.measures import LOST, OLD, measures_of
from obsmem.system.local_time import local_clock
from obsmem.tasks.ask import midnight
from obsmem.tasks.called import command
from obsmem.tasks.compactions import trouble, trouble_words
from obsmem.tasks.here import find_here
from obsmem.tasks.occupancy import occupancy, own_spend, ratio, spend
from obsmem.tasks.resolve import find_session
from obsmem.tasks.stats import Row, stats
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.usage import DAY

HEAD = ("sessions", "requests", "fresh", "from cache", "to cache", "output", "all")


def run_context(arguments: argparse.Namespace) -> int:
    """``context [SESSION]``: occupancy, window, mark and spend, each with where it came from."""
    with open_store(readonly=True) as store:
        here = None if arguments.session else find_here(store).session
        stored = here or find_session(store, arguments.session)
        value = context_value(store, stored)
        lines = _context_lines(store, stored, local_clock)
    if arguments.json:
        say_json(value)
        return 0
    for line in lines:
        say(line)
    return 0


def context_value(store: Store, stored: StoredSession) -> dict[str, Any]:
    """What ``context`` says, as one JSON value."""
    now, own, whole = occupancy(store, stored), own_spend(store, stored), spend(store, stored)
    wrong = trouble(store, stored)
    return {
        "session": stored.session.handle,
        "harness": stored.session.harness,
        **now._asdict(),
        "tokens": now.tokens,
        "share": round(now.share, 4),
        "of_mark": round(now.of_mark, 4),
        "window": {**now.window._asdict(), "usable": now.window.usable},
        "ratio": round(_ratio(store, stored), 3),
        "spend": {**own._asdict(), "tokens": own.tokens},
        "spend_with_agents": {**whole._asdict(), "tokens": whole.tokens},
        "unknown_requests": _unknown(store, stored),
        "compactions": len(store.archive.boundaries(stored.no)),
        "trouble": wrong._asdict() if wrong else None,
    }


def _context_lines(store: Store, stored: StoredSession, clock: Clock) -> list[str]:
    now, session = occupancy(store, stored), stored.session
    lines = [
        f"session {session.handle}: {session.harness}, {now.model or 'model unknown'}",
        _held(session.handle, now, clock),
    ]
    window = now.window
    if window.size:
        usable = (
            f", {window.usable:,} of them usable ({window.reserve:,}: {window.reserve_source})"
            if window.reserve
            else ""
        )
        lines.append(f"window: {window.size:,} tokens ({window.size_source}){usable}; {now.share:.0%} of it is taken")
    else:
        lines.append("window: unknown")
    if window.mark:
        left = max(0, window.mark - now.tokens)
        lines.append(
            f"mark: {window.mark:,} tokens ({window.mark_source}); {now.of_mark:.0%} of the way, {left:,} tokens are left"
        )
    else:
        lines.append("mark: unknown until the harness compacts a window of this model")
    lines.append(f"estimates: times {_ratio(store, stored):.2f}, as its provider counted before")
    lines += _spend_lines(store, stored)
    wrong = trouble(store, stored)
    count = many(len(store.archive.boundaries(stored.no)), "compaction")
    lines.append(f"{count}; {trouble_words(wrong)}" if wrong else count)
    return lines


def _held(handle: str, now: Occupancy, clock: Clock) -> str:
    if not now.counted:
        return f"occupancy: about {now.tokens:,} tokens, all of them estimated: no request was counted since the window began"
    where = f" with {entry_id(handle, now.seq)}" if now.seq >= 0 else ""
    when = f" {clock(now.at)}" if now.at else ""
    return (
        f"occupancy: {now.tokens:,} tokens: {now.counted:,} counted by the provider{when}{where}, {now.estimated:,} estimated "
        "of what came after"
    )


def _spend_lines(store: Store, stored: StoredSession) -> list[str]:
    own, whole = own_spend(store, stored), spend(store, stored)
    lines = [f"spend: {_spent(own)}"]
    if whole != own:
        lines.append(f"with its sub-agents: {_spent(whole)}")
    unknown = _unknown(store, stored)
    if unknown:
        lines.append(
            f"  of {many(unknown, 'request')} only the number is known: an earlier version read them; "
            f"'{command()} index' counts them anew where the archive still holds the records"
        )
    return lines


def _spent(spent: Spend) -> str:
    return (
        f"{many(spent.requests, 'request')}, {spent.tokens:,} tokens as the provider counted: {spent.fresh:,} fresh, "
        f"{spent.cached:,} read from a cache, {spent.written:,} written to one, {spent.output:,} of output"
    )


def _ratio(store: Store, stored: StoredSession) -> float:
    return ratio(store, stored, measures_of(store.archive.connection, stored.no))


def _unknown(store: Store, stored: StoredSession) -> int:
    return sum(one.kind in (OLD, LOST) for one in measures_of(store.archive.connection, stored.no))


def run_stats(arguments: argparse.Namespace) -> int:
    """``stats [--days N] [--by WHAT]``: what the requests of all sessions took."""
    since = midnight(int(time.time() * 1000) - (arguments.days - 1) * DAY)
    with open_store(readonly=True) as store:
        rows, whole = stats(store, since, arguments.by)
    if arguments.json:
        say_json(
            {
                "days": arguments.days,
                "by": arguments.by,
                "rows": [_row_value(row) for row in rows],
                "all": _row_value(whole),
            }
        )
        return 0
    if not rows:
        say(f"No request was counted in the last {many(arguments.days, 'day')}.")
        return 0
    for line in table([_cells(row) for row in [*rows, whole]], (arguments.by, *HEAD)):
        say(line)
    if whole.unknown:
        say(
            f"Of {many(whole.unknown, 'request')} only the number is known: an earlier version read them; '{command()} index' counts "
            "them anew where the archive still holds the records."
        )
    return 0


def _cells(row: Row) -> tuple[str, ...]:
    spent = row.spend
    counts = (spent.requests, spent.fresh, spent.cached, spent.written, spent.output, spent.tokens)
    return (row.name, str(row.sessions), *(f"{count:,}" for count in counts))


def _row_value(row: Row) -> dict[str, Any]:
    return {**row._asdict(), "spend": {**row.spend._asdict(), "tokens": row.spend.tokens}}
