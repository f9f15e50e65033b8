"""Checks of the store: does it open, is it whole, when did the observer last work, did the last block arrive?

Invariant: everything is opened read-only; a check that costs more than a look is left to ``fsck``.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator

from obsmem.core.errors import StoreError
from obsmem.store.archive import StoredSession
from obsmem.store.schema import damage
from obsmem.system import config as configuration
from obsmem.system.local_time import local_clock
from obsmem.tasks.called import command
from obsmem.tasks.compactions import recent_trouble, trouble_words
from obsmem.tasks.deliveries import describe, recent_deliveries
from obsmem.tasks.finding import BROKEN, GOOD, WARNING, Check
from obsmem.tasks.store import ARCHIVE, INDEX, MEMORY, Store

RECENT_SECONDS = 7 * 86_400
LEAST_BYTES = 50_000  # a session that only began may hold nobody's words yet
QUICK = 64 << 20  # bytes; larger databases are looked through by fsck alone


def check_databases(home: str) -> Iterator[Check]:
    """Each database opens and says of itself that it is whole."""
    there = [name for name in (ARCHIVE, MEMORY, INDEX) if os.path.exists(os.path.join(home, name))]
    if not there:
        yield Check("store", GOOD, "empty: nothing has been kept yet")
        return
    wrong = []
    for name in there:
        path = os.path.join(home, name)
        if os.path.getsize(path) <= QUICK and (what := damage(path)):
            wrong.append(f"{name}: {what}")
    try:
        _open(home).close()
    except StoreError as error:
        wrong.append(str(error))
    if wrong:
        yield Check("store", BROKEN, "; ".join(wrong), f"run: {command()} fsck --repair")
    else:
        yield Check("store", GOOD, f"{', '.join(there)} open and are whole")


def check_reading(home: str) -> Iterator[Check]:
    """Whether anybody's words were found in the transcripts that grew lately: a harness may begin to write otherwise."""
    store = _opened(home)
    if store is None:
        return
    since = (time.time() - RECENT_SECONDS) * 1000
    try:
        silent = [one for one in store.archive.sessions() if one.updated_at >= since and _is_silent(store, one)]
        told = {one.session.handle: _reasons(store, one) for one in silent}
    finally:
        store.close()
    if not silent:
        yield Check("reading", GOOD, "somebody's words were found in each transcript that grew lately")
    for one in silent:
        what = f"session {one.session.handle}: nobody's words were found in it ({told[one.session.handle]})"
        yield Check("reading", WARNING, what, f"run: {command()} replay --parse-only {one.session.transcript}")


def _is_silent(store: Store, stored: StoredSession) -> bool:
    if sum(row.offset for row in store.archive.sources(stored.no)) < LEAST_BYTES:
        return False
    return not any(row.kind in ("user", "assistant") for row in store.archive.entries(stored.no))


def _reasons(store: Store, stored: StoredSession) -> str:
    """The most frequent reasons why records of a session gave nothing."""
    reasons: Counter[str] = Counter()
    for row in store.archive.sources(stored.no):
        reasons.update(json.loads(row.skipped))
    return ", ".join(f"{why} {count}" for why, count in reasons.most_common(3))


def check_workers(home: str) -> Iterator[Check]:
    """When the observer last worked, and how often it failed lately."""
    store = _opened(home)
    if store is None:
        return
    try:
        calls = [call for stored in store.archive.sessions() for call in store.memory.calls(stored.session.handle)]
    finally:
        store.close()
    if not calls:
        yield Check("worker", GOOD, "has not worked yet")
        return
    last = max(calls, key=lambda call: call.at)
    recent = [call for call in calls if call.at > (time.time() - 86_400) * 1000]
    failed = [call for call in recent if call.outcome.startswith("failed")]
    told = f"last: {last.task} by {last.worker}, {last.outcome}, {time.strftime('%Y-%m-%d %H:%M', time.localtime(last.at / 1000))}"
    if failed:
        yield Check(
            "worker",
            WARNING,
            f"{told}; {len(failed)} of {len(recent)} calls failed in a day",
            "see its key and address in config.yaml",
        )
    else:
        yield Check("worker", GOOD, told)


def check_deliveries(home: str) -> Iterator[Check]:
    """Whether the newest block of each session arrived: its parts come back in the transcript."""
    store = _opened(home)
    if store is None:
        return
    try:
        found = recent_deliveries(store, 1)
    finally:
        store.close()
    if not found:
        yield Check("delivery", GOOD, "no conversation has been compacted yet")
    for stored, delivery in found:
        told = f"session {stored.session.handle}: {describe(delivery, local_clock)}"
        if delivery.state in ("partial", "missing"):
            yield Check("delivery", WARNING, told, "see whether the harness cut or dropped a hook's output")
        else:
            yield Check("delivery", GOOD, told)


def check_compactions(home: str) -> Iterator[Check]:
    """Whether compactions did what they are for in the sessions that grew lately."""
    store = _opened(home)
    if store is None:
        return
    try:
        found = recent_trouble(store, int((time.time() - RECENT_SECONDS) * 1000))
    finally:
        store.close()
    if not found:
        yield Check("compaction", GOOD, "each one made room, and brought a summary")
    for stored, wrong in found:
        remedy = f"run: {command()} context {stored.session.handle}"
        yield Check("compaction", WARNING, f"session {stored.session.handle}: {trouble_words(wrong)}", remedy)


def _opened(home: str) -> Store | None:
    try:
        return _open(home) if os.path.exists(os.path.join(home, MEMORY)) else None
    except StoreError:
        return None  # told of by check_databases


def _open(home: str) -> Store:
    return Store(home, configuration.defaults(), readonly=True)
