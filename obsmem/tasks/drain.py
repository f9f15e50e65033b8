"""Observing everything before a compaction, within a time that is never passed.

Invariants: what the configured workers do runs in a process of its own, which is killed with all that it started when
its share of the time is over; what they did not finish goes to the extractive observer; where even that is too slow,
the oldest part becomes a gap, which the next maintainer fills, so that the newest words are always observed.
"""

from __future__ import annotations

import math
import os
import signal
import time

from obsmem.core.clock import Clock
from obsmem.store.archive import StoredSession
from obsmem.system import log, process
from obsmem.tasks.ask import has_workers
from obsmem.tasks.called import installed_script
from obsmem.tasks.decide import FAST
from obsmem.tasks.observe import Done, leave_gap, run_passes
from obsmem.tasks.store import Store

RESERVED_SECONDS = 3.0  # for the extractive observer, whatever the workers do
SAFE_SHARE = 0.7  # of what the time left should suffice for, judged by the speed so far
NO_TIME = "no time before the compaction"


def drain(store: Store, stored: StoredSession, clock: Clock, deadline: float, *, workers: bool) -> Done:
    """Observe a session to its end by ``deadline`` (of time.monotonic). ``workers`` asks the configured ones first."""
    if workers and has_workers(store):
        seconds = min(float(store.config["precompact_seconds"]), deadline - time.monotonic() - RESERVED_SECONDS)
        if seconds > 0 and _waiting(store, stored):
            _ask_workers(store, stored, seconds)
    started, before = time.monotonic(), _waiting(store, stored)
    halfway = started + (deadline - started) / 2
    done = run_passes(store, stored, clock, drain=True, fast=True, gaps=False, deadline=halfway)
    left = _waiting(store, stored)
    if left:
        speed = (before - left) / max(time.monotonic() - started, 0.001)
        skipped = skip_oldest(store, stored, int(speed * max(deadline - time.monotonic(), 0) * SAFE_SHARE))
        done = done.plus(Done(gaps=int(skipped)))
        done = done.plus(run_passes(store, stored, clock, drain=True, fast=True, gaps=False, deadline=deadline))
    return done


def skip_oldest(store: Store, stored: StoredSession, most: int) -> bool:
    """Make a gap of the oldest entries, so that at most ``most`` tokens wait behind it, and at least the last entry."""
    covered = store.memory.covered_to(stored.session.handle)
    left, last = _waiting(store, stored), -1
    for row in store.archive.observable(stored.no, covered + 1):
        if left <= most or left - row.tokens <= 0:
            break
        left -= row.tokens
        last = row.seq
    return last >= 0 and leave_gap(store, stored, covered, last, NO_TIME, NO_TIME, mode=FAST)


def _waiting(store: Store, stored: StoredSession) -> int:
    """Tokens that nobody observed yet."""
    return store.archive.observable_tokens(stored.no, store.memory.covered_to(stored.session.handle))


def _ask_workers(store: Store, stored: StoredSession, seconds: float) -> None:
    """Have another process observe with the configured workers, and end it with all its children when time is up."""
    session = stored.session
    arguments = [
        "maintain",
        session.harness,
        "--drain",
        session.handle,
        "--cwd",
        session.cwd,
        "--seconds",
        str(seconds),
    ]
    status: int | None = None
    try:
        status = process.run(store.home, installed_script(), arguments, seconds)
        outcome = "workers-killed" if status is None else f"workers-exit-{status}"
    except OSError as error:  # no process can be started (a limit, no memory): the rest goes on without workers
        outcome = f"workers-{type(error).__name__}"
    if status != 0:
        log.write(store.home, "maintain", harness=session.harness, outcome=outcome)


def drain_with_workers(store: Store, handle: str, clock: Clock, seconds: float) -> Done:
    """What that other process does. It ends itself, too, should nobody be left to end it."""
    if hasattr(signal, "SIGALRM") and os.getpgrp() == os.getpid():
        signal.signal(signal.SIGALRM, lambda number, frame: os.killpg(0, signal.SIGKILL))
        signal.alarm(math.ceil(seconds) + 1)
    return run_passes(store, store.archive.by_handle(handle), clock, drain=True, gaps=False)
