"""What a status line shows, where there is none: the command ``statusline``, and ``status --watch``. Neither writes.

Invariants: the same words as in the status line itself; nothing but plain lines goes to what is no terminal; the store is
open only while a picture is made of it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from obsmem.interfaces.commands_windows import meant
from obsmem.interfaces.hook_statusline import line
from obsmem.interfaces.report import age, say, say_json
from obsmem.store.archive import StoredSession
from obsmem.system.factsfile import Facts, read_report
from obsmem.system.local_time import local_clock
from obsmem.tasks.facts import facts_of
from obsmem.tasks.here import find_here
from obsmem.tasks.store import Store, open_store

SHOWN = 8  # sessions
RECENT_SECONDS = 86_400  # of a session that is shown; the newest one always is
CLEAR = "\x1b[H\x1b[2J"


def run_statusline(arguments: argparse.Namespace) -> int:
    """``statusline [SESSION]``: what a status line shows of a session."""
    with open_store(readonly=True) as store:
        value = _value(store, meant(store, arguments.session))
    if arguments.json:
        say_json(value)
    else:
        say(value["line"])
    return 0


def watch(arguments: argparse.Namespace) -> int:
    """``status --watch``: the same of the sessions of this workspace, again and again until Ctrl-C."""
    try:
        while True:
            with open_store(readonly=True) as store:
                values = _sessions_here(store)
            _show(values, as_json=arguments.json)
            time.sleep(arguments.every)
    except KeyboardInterrupt:
        return 0


def _sessions_here(store: Store) -> list[dict[str, Any]]:
    """The main sessions of this workspace that grew within a day, the newest first; of all where it has none."""
    here = find_here(store)
    main = [one for one in store.archive.sessions() if one.session.role == "main"]
    main = [one for one in main if one.session.workspace == here.workspace] or main
    since = (time.time() - RECENT_SECONDS) * 1000
    return [_value(store, one) for one in ([one for one in main if one.updated_at >= since] or main[:1])[:SHOWN]]


def _value(store: Store, stored: StoredSession) -> dict[str, Any]:
    facts, session = facts_of(store, stored, local_clock), stored.session
    report = read_report(store.folder_of(stored))
    if report is not None:
        report.tokens = 0  # of a request that may long be over; the size is the same
    return {
        "session": session.handle,
        "harness": session.harness,
        "grown_at": stored.updated_at,
        **_fields(facts),
        "line": line(facts, report, time.time()),
    }


def _fields(facts: Facts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in facts.__slots__}


def _show(values: list[dict[str, Any]], *, as_json: bool) -> None:
    """One picture: over the last one at a terminal, else below it; one JSON document a line for a program."""
    if as_json:
        print(json.dumps({"at": int(time.time() * 1000), "sessions": values}), flush=True)
        return
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        sys.stdout.write(CLEAR)
    say(f"{local_clock(int(time.time() * 1000))}  (Ctrl-C ends)")
    for value in values:
        said = value["line"].removeprefix("memory: ") or "nothing is known yet"
        say(f"{value['session']}  {value['harness']}  grown {age(value['grown_at'])} ago  {said}")
    if not values:
        say("No session is kept yet.")
    sys.stdout.flush()
