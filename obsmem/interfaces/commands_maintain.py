"""The command that hooks start: ``maintain``, in the background, before a compaction, or as the process of the workers.

Invariants: it prints nothing and leaves one line in the log for each session that it looked after; before it ends it
looks after every session that wants it and that nobody else has, so that of many hooks at once none is forgotten.
"""

from __future__ import annotations

import argparse
import os
import time

from obsmem.core.errors import ConfigError, NotFound
from obsmem.interfaces.hook_delivery import BUSY
from obsmem.system import config as configuration
from obsmem.system import log, seats
from obsmem.system.leftovers import sweep
from obsmem.system.local_time import local_clock
from obsmem.system.notice import leave_trouble
from obsmem.system.paths import data_home, session_folder
from obsmem.tasks.drain import drain_with_workers
from obsmem.tasks.forget import apply_retention
from obsmem.tasks.ingest import known_session
from obsmem.tasks.left_behind import wish_for_left_behind
from obsmem.tasks.maintain import COMPACT_SECONDS, catch_up, look_after
from obsmem.tasks.observe import Done
from obsmem.tasks.recount import recount
from obsmem.tasks.shortening import compile_settings
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.vectors import fill_vectors
from obsmem.tasks.words import index_all, index_words

INDEX_SECONDS = 60.0  # a background run of the maintainer indexes no longer than this


def run_maintain(arguments: argparse.Namespace) -> int:
    """``maintain HARNESS --transcript PATH``: what hooks start in the background. Prints nothing."""
    home = data_home()
    os.makedirs(home, mode=0o700, exist_ok=True)
    os.chdir(home)  # the working folder may be deleted under us
    code = _maintain(home, arguments)
    if arguments.before_compact or arguments.drain:
        return code
    code = 0 if code == BUSY else code
    _serve_wishes(home, arguments.seat, code)
    return code


def _maintain(home: str, arguments: argparse.Namespace) -> int:
    """Look after one session; the exit status, BUSY where somebody else does."""
    started = time.monotonic()
    raised: Exception | None = None
    try:
        with open_store(home, configuration.load(arguments.cwd)) as store:
            compile_settings(home, store.config)
            done = _work(store, arguments)
        outcome = "busy" if done is None else f"stretches-{done.stretches}-notes-{done.notes}"
        code = BUSY if done is None else 0
    except Exception as error:
        raised, outcome, code = error, f"failed-{type(error).__name__}", 1
        leave_trouble(home, type(error).__name__)
    named = arguments.transcript or arguments.session
    folders = [session_folder(home, arguments.harness, arguments.transcript, arguments.session)] if named else []
    ms = int((time.monotonic() - started) * 1000)
    log.write(home, "maintain", harness=arguments.harness, outcome=outcome, ms=ms, **log.session_field(folders))
    if raised is not None and arguments.verbose:
        raise raised
    return code


def _work(store: Store, arguments: argparse.Namespace) -> Done | None:
    session = (arguments.harness, arguments.transcript, arguments.session, arguments.cwd)
    if arguments.drain:
        return drain_with_workers(store, arguments.drain, local_clock, arguments.seconds or COMPACT_SECONDS)
    if arguments.before_compact:
        seconds = arguments.seconds or COMPACT_SECONDS
        return catch_up(store, *session, seconds=seconds, announced=arguments.announced)
    done = look_after(store, *session, ended=arguments.ended)
    if done is not None:
        _finish(store, arguments.transcript)
    return done


def _finish(store: Store, transcript: str) -> None:
    """What is not urgent: what killed writers left, sessions that were left behind, retention, full text."""
    sweep(store.home)
    wish_for_left_behind(store)
    apply_retention(store, int(time.time() * 1000))
    deadline = time.monotonic() + INDEX_SECONDS
    try:
        index_words(store, known_session(store, transcript), deadline)
    except NotFound:
        pass
    index_all(store, deadline)
    recount(store, deadline)
    try:
        fill_vectors(store, deadline)
    except ConfigError as error:
        log.write(store.home, "vectors", outcome=type(error).__name__)


def _serve_wishes(home: str, seat: int | None, code: int) -> None:
    """Look after the sessions that wait. Who has a seat gives it up in the end, and ends with ``code``."""
    passed: set[str] = set()  # somebody else has these, and looks at the wishes after giving them up
    while True:
        names = [name for name in seats.wishes(home) if name not in passed]
        if names and seat is None:
            seat = seats.take_seat(home, names[0])
        if seat is None:
            return
        if names and not _serve(home, seat, names[0]):
            passed.add(names[0])
        if not names and seats.end_service(home, seat, passed):
            os._exit(code)  # nothing is open; the interpreter's own end takes tens of milliseconds, and hooks wait


def _serve(home: str, seat: int, name: str) -> bool:
    """Look after one session; False where that could not be done, and the wish stays."""
    work = seats.wish_of(home, name)
    if not work:
        return True  # somebody took it in the meantime
    seats.sign(home, seat, name)
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("harness")
    for option in ("--transcript", "--session", "--cwd"):
        parser.add_argument(option, default="")
    parser.add_argument("--ended", action="store_true")
    parser.set_defaults(before_compact=False, drain="", seconds=0.0, verbose=False)
    try:
        arguments = parser.parse_args(work)
    except (argparse.ArgumentError, SystemExit):
        os.unlink(seats.wish_path(home, name))
        return False
    return _maintain(home, arguments) == 0
