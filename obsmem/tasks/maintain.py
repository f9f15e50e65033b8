"""The maintainer: what runs in the background after a turn, and before a compaction under a deadline.

Invariants: at most one a session and two a machine; one that finds its session taken leaves a wish (``system.seats``),
and whoever holds it looks again before ending. Killed at any instant it leaves the old state or the new one.
"""

from __future__ import annotations

import os
import time

from obsmem.core.errors import NotFound, StoreError
from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.system import log, seats
from obsmem.system.files import free_bytes, remove
from obsmem.system.indexfile import index_path
from obsmem.system.local_time import local_clock
from obsmem.system.lock import hold, try_hold, try_slot
from obsmem.system.notice import clear_trouble, leave_trouble
from obsmem.system.paths import safe_name, session_folder
from obsmem.system.state import DEFAULT_RATE, State, switched_off, write_state
from obsmem.system.warningfile import drop_warning
from obsmem.system.workspace import workspace_of
from obsmem.tasks.compactions import hear, learn_from
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.deliveries import open_delivery, settle
from obsmem.tasks.drain import drain
from obsmem.tasks.facts import learn_reported, leave_facts
from obsmem.tasks.ingest import ingest, is_database, known_session
from obsmem.tasks.observe import Done, run_passes
from obsmem.tasks.raw_outputs import take_journal
from obsmem.tasks.rotation import link_rotation, renew_rotation
from obsmem.tasks.rule_files import clear_rule_files, fill_rule_file
from obsmem.tasks.store import Store
from obsmem.tasks.upgrade import upgrade
from obsmem.tasks.warn import leave_warning, until_warning
from obsmem.tasks.workspace_index import leave_index

LOWEST_DISK = 64 << 20  # bytes free below which nothing is written
COMPACT_SECONDS = 18.0  # the hook kills us at 20
LOCK_SECONDS = 2.0  # a reader that is stopped must not hold up a compaction
NICENESS = 10
UPGRADE_SECONDS = 120.0  # a maintainer goes on to the next session then
ENDED = "--ended"  # of a wish: the session has ended


def maintain(
    store: Store, harness: str, transcript: str, session_id: str, cwd: str, *, before_compact: bool = False
) -> Done:
    """Bring one session up to date: archive, observe, reflect, drop, render; then the same again if asked meanwhile.

    ``before_compact`` never waits for a maintainer that is running, observes everything to the end, and renders.
    """
    if before_compact:
        return catch_up(store, harness, transcript, session_id, cwd) or Done()
    return look_after(store, harness, transcript, session_id, cwd) or Done()


def look_after(
    store: Store, harness: str, transcript: str, session_id: str, cwd: str, *, ended: bool = False
) -> Done | None:
    """The background's part of ``maintain``; None where somebody else has the session or all the slots. ``ended``: so
    has the session, for now."""
    folder = session_folder(store.home, harness, transcript, session_id)
    name = seats.name_of(folder)
    if not _may_work(store, folder, cwd):
        remove(seats.wish_path(store.home, name))
        return Done()
    work = [harness, "--transcript", transcript, "--session", session_id, "--cwd", cwd, *[ENDED] * ended]
    source = Source(transcript, session_id if is_database(transcript) else "")
    wished = seats.wish_path(store.home, name)
    done: Done | None = None
    # The wish stands before the lock is tried, and is looked for once more after it is free: so it is never missed.
    if not os.path.exists(wished):  # one that came meanwhile may say more
        seats.wish(store.home, name, work)
    while os.path.exists(wished):
        with try_slot(store.home) as slot, try_hold(store.home, f"maintain-{name}") as held:
            if not (slot and held):
                return done
            done = done or Done()
            lower_priority()
            while os.path.exists(wished):
                ended = ENDED in seats.wish_of(store.home, name)
                remove(wished)
                done = done.plus(_look(store, harness, source, ended))
    store.memory.back_up(os.path.join(store.home, "backups"))
    return done


def catch_up(
    store: Store, harness: str, transcript: str, session_id: str, cwd: str, *, seconds: float = COMPACT_SECONDS,
    announced: str = "",
) -> Done | None:  # fmt: skip
    """Before a compaction: archive and observe everything within ``seconds``, and make the block due.

    With less than COMPACT_SECONDS (a session start waits) no configured worker is asked. ``announced`` is what the hook
    said of it (``hear``). None where another call does the same right now (a hook that is registered twice).
    """
    deadline = time.monotonic() + seconds
    folder = session_folder(store.home, harness, transcript, session_id)
    if not _may_work(store, folder, cwd):
        return Done()
    source = Source(transcript, session_id if is_database(transcript) else "")
    with try_hold(store.home, f"compact-{seats.name_of(folder)}") as held:
        if not held:
            return None
        stored = read(store, harness, source, seconds=LOCK_SECONDS)
        if stored is None:
            return Done()
        hear(store, stored, announced)
        done = drain(store, stored, local_clock, deadline, workers=seconds >= COMPACT_SECONDS)
        write_hook_state(store, stored, source.path)
        _tell_window(store, stored, ends=True)
        link_rotation(store, stored)
        block = leave_block(store, stored, local_clock, fresh=True)
        if block.parts:
            open_delivery(store, stored)
            fill_rule_file(store.home, stored, cwd, block)
        clear_trouble(store.home)
    return done


def _may_work(store: Store, folder: str, cwd: str) -> bool:
    if switched_off(store.home, cwd) or store.config["off"]:
        write_state(folder, State(off=bool(store.config["off"])))
        remove(index_path(store.home, workspace_of(cwd)))
        return False
    if free_bytes(store.home) < LOWEST_DISK:
        log.write(store.home, "maintain", outcome="disk-full")
        leave_trouble(store.home, "the disk is full")
        return False
    return True


def _look(store: Store, harness: str, source: Source, ended: bool) -> Done:
    """Archive what is new, observe what is due, and leave state and block for the hooks."""
    stored = read(store, harness, source)
    if stored is None:
        return Done()
    done = run_passes(store, stored, local_clock)
    done = done.plus(upgrade(store, stored, local_clock, time.monotonic() + UPGRADE_SECONDS))
    write_hook_state(store, stored, source.path)
    link_rotation(store, stored)
    leave_block(store, stored, local_clock)
    renew_rotation(store, stored, local_clock)
    settle(store, stored)
    _tell_window(store, stored)
    if ended:
        clear_rule_files(store.home, [stored])
    _tell_workspace(store, stored)
    clear_trouble(store.home)
    return done


def _tell_workspace(store: Store, stored: StoredSession) -> None:
    """Leave what session starts here are told; that it cannot be made must not stop anything else."""
    try:
        leave_index(store, stored.session.workspace, stored.session.cwd)
    except (StoreError, OSError) as error:
        log.write(store.home, "index", harness=stored.session.harness, outcome=type(error).__name__)


def _tell_window(store: Store, stored: StoredSession, *, ends: bool = False) -> None:
    """Leave what a status line shows, and the warning that is due; ``ends``: a compaction comes, so none is any more. That it
    cannot be done must not stop anything else."""
    try:
        if ends:
            drop_warning(store.folder_of(stored))
        else:
            learn_from(store, stored)
            leave_warning(store, stored)
        leave_facts(store, stored, local_clock, ends=ends)
    except (StoreError, OSError) as error:
        log.write(store.home, "window", harness=stored.session.harness, outcome=type(error).__name__)


def read(store: Store, harness: str, source: Source, *, seconds: float = 10.0) -> StoredSession | None:
    """Archive what is new in a source and leave the state file for the turn-end hook; None where nothing is kept.

    One process at a time reads a source: the lock is held for as long as the new bytes take. Whoever does not get it
    within ``seconds`` goes on with what is archived.
    """
    name = safe_name(f"{harness}-{source.path}-{source.session_id}")
    try:
        with hold(store.home, f"ingest-{name}", seconds=seconds):
            result = ingest(store, harness, source)
    except TimeoutError as error:
        log.write(store.home, "ingest", harness=harness, outcome=type(error).__name__)
        return _archived(store, harness, source)
    except FileNotFoundError:
        # No trouble: a session in which nothing was said has no transcript, nor has the trial of an installation.
        log.write(store.home, "ingest", harness=harness, outcome="no-transcript")
        return None
    except OSError as error:
        log.write(store.home, "ingest", harness=harness, outcome=type(error).__name__)
        return None
    if result.stored is None:
        return None
    stored = learn_reported(store, _with_parent(store, harness, source, result.stored))
    take_journal(store, stored)
    write_hook_state(store, stored, source.path)
    return stored


def _with_parent(store: Store, harness: str, source: Source, stored: StoredSession) -> StoredSession:
    """Archive the parent of a fork, too, where nobody has: a fork that only refers to it has its history nowhere else."""
    if not stored.parent_id or stored.session.parent is not None or stored.session.role != "main":
        return stored
    wanted = stored.parent_id
    found = (one for one in load(harness).find(os.path.expanduser("~")) if wanted in (one.session_id or one.path))
    parent = next(found, None)
    if parent is None or parent == source:
        return stored
    try:
        ingest(store, harness, parent)
        ingest(store, harness, source)  # it has nothing new, and now finds where it branched off
    except OSError as error:
        log.write(store.home, "ingest", harness=harness, outcome=type(error).__name__)
    return store.archive.by_handle(stored.session.handle)


def _archived(store: Store, harness: str, source: Source) -> StoredSession | None:
    if source.session_id:
        return store.archive.by_id(harness, source.session_id)
    try:
        return known_session(store, source.path)
    except NotFound:
        return None


def write_hook_state(store: Store, stored: StoredSession, path: str) -> None:
    """Tell the turn-end hook how far the transcript was read, and how many tokens a byte of it holds."""
    rows = [row for row in store.archive.sources(stored.no) if row.path == path and row.kind == "file"]
    offset = rows[-1].offset if rows else 0
    tokens = store.archive.observable_tokens(stored.no, -1)
    rate = tokens / offset if offset > 20_000 else DEFAULT_RATE
    waiting = store.archive.observable_tokens(stored.no, store.memory.covered_to(stored.session.handle))
    # What is archived but not yet observed counts too: the hook sees only bytes.
    after = max(1, min(store.config["observe_after_tokens"] - waiting, until_warning(store, stored)))
    write_state(store.folder_of(stored), State(offset, max(rate, 0.01), after))


def lower_priority() -> None:
    """Stand behind the user's own programs."""
    if hasattr(os, "nice"):
        os.nice(max(0, NICENESS - os.nice(0)))
