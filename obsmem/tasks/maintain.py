"""The maintainer: what runs in the background after a turn, and before a compaction under a deadline.

Invariants: at most one a session and two a machine; one that finds its session taken leaves a "look again" mark, and
whoever holds it looks again before ending. Killed at any instant it leaves the old state or the new one.
"""

from __future__ import annotations

import os
import time

from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.system import log
from obsmem.system.files import free_bytes, make_folder, remove, write_atomic
from obsmem.system.lock import hold, try_hold, try_slot
from obsmem.system.paths import safe_name, session_folder
from obsmem.system.state import AGAIN_FILE, DEFAULT_RATE, State, switched_off, write_state
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.ingest import ingest, is_database
from obsmem.tasks.observe import Done, local_clock, run_passes
from obsmem.tasks.store import Store

LOWEST_DISK = 64 << 20  # bytes free below which nothing is written
COMPACT_SECONDS = 18.0  # the hook kills us at 20
NICENESS = 10


def maintain(
    store: Store, harness: str, transcript: str, session_id: str, cwd: str, *, before_compact: bool = False
) -> Done:
    """Bring one session up to date: archive, observe, reflect, drop, render; then the same again if asked meanwhile.

    ``before_compact`` never waits for a maintainer that is running, observes everything to the end with the worker
    that always answers, and renders.
    """
    folder = session_folder(store.home, harness, transcript, session_id)
    if switched_off(store.home, cwd) or store.config["off"]:
        write_state(folder, State(off=bool(store.config["off"])))
        return Done()
    if free_bytes(store.home) < LOWEST_DISK:
        log.write(store.home, "maintain", outcome="disk-full")
        return Done()
    source = Source(transcript, session_id if is_database(transcript) else "")
    name = f"{harness}-{os.path.basename(folder)}"
    if before_compact:
        return _catch_up(store, harness, source, name)
    return _in_turns(store, harness, source, folder, name)


def _in_turns(store: Store, harness: str, source: Source, folder: str, name: str) -> Done:
    again = os.path.join(folder, AGAIN_FILE)
    done = Done()
    # The mark stands before the lock is tried, and is looked for once more after it is free: so it is never missed.
    make_folder(folder)
    write_atomic(again, b"", durable=False)
    while os.path.exists(again):
        with try_slot(store.home) as slot, try_hold(store.home, f"maintain-{name}") as held:
            if not (slot and held):
                return done
            lower_priority()
            while os.path.exists(again):
                remove(again)
                done = done.plus(_look(store, harness, source))
    store.memory.back_up(os.path.join(store.home, "backups"))
    return done


def _look(store: Store, harness: str, source: Source) -> Done:
    """Archive what is new, observe what is due, and leave state and block for the hooks."""
    stored = read(store, harness, source)
    if stored is None:
        return Done()
    done = run_passes(store, stored, local_clock)
    write_hook_state(store, stored, source.path)
    leave_block(store, stored, local_clock)
    return done


def _catch_up(store: Store, harness: str, source: Source, name: str) -> Done:
    deadline = time.monotonic() + COMPACT_SECONDS
    stored = read(store, harness, source)
    if stored is None:
        return Done()
    done = run_passes(store, stored, local_clock, drain=True, fast=True, deadline=deadline)
    write_hook_state(store, stored, source.path)
    leave_block(store, stored, local_clock, fresh=True)
    return done


def read(store: Store, harness: str, source: Source) -> StoredSession | None:
    """Archive what is new in a source and leave the state file for the turn-end hook; None where nothing is kept.

    One process at a time reads a source: the lock is held for as long as the new bytes take.
    """
    name = safe_name(f"{harness}-{source.path}-{source.session_id}")
    try:
        with hold(store.home, f"ingest-{name}", seconds=10.0):
            result = ingest(store, harness, source)
    except (OSError, TimeoutError) as error:
        log.write(store.home, "ingest", harness=harness, outcome=type(error).__name__)
        return None
    if result.stored is None:
        return None
    write_hook_state(store, result.stored, source.path)
    return result.stored


def write_hook_state(store: Store, stored: StoredSession, path: str) -> None:
    """Tell the turn-end hook how far the transcript was read, and how many tokens a byte of it holds."""
    rows = [row for row in store.archive.sources(stored.no) if row.path == path and row.kind == "file"]
    offset = rows[-1].offset if rows else 0
    tokens = store.archive.observable_tokens(stored.no, -1)
    rate = tokens / offset if offset > 20_000 else DEFAULT_RATE
    waiting = store.archive.observable_tokens(stored.no, store.memory.covered_to(stored.session.handle))
    # What is archived but not yet observed counts too: the hook sees only bytes.
    after = max(1, store.config["observe_after_tokens"] - waiting)
    write_state(store.folder_of(stored), State(offset, max(rate, 0.01), after))


def lower_priority() -> None:
    """Stand behind the user's own programs."""
    if hasattr(os, "nice"):
        os.nice(max(0, NICENESS - os.nice(0)))
