"""Sessions of which no hook tells any more: their last maintainer was killed, the machine went off, or hooks stopped.

Once a day whichever maintainer runs wishes for those whose transcript is longer than what was read of it. Invariant: what
is still being written is left to its own hooks, so that no two processes are sent after one session.
"""

from __future__ import annotations

import os
import time

from obsmem.system import seats
from obsmem.system.leftovers import is_due
from obsmem.tasks.store import Store

MARK = "caught-up"
IDLE_SECONDS = 3_600.0


def wish_for_left_behind(store: Store, now: float = 0.0) -> int:
    """Leave a wish for each such session, unless that was done within the last day; how many."""
    now = now or time.time()
    if not is_due(store.home, MARK, now):
        return 0
    wished = 0
    for stored in store.archive.sessions():
        session = stored.session
        if session.role != "main":
            continue
        rows = [
            row for row in store.archive.sources(stored.no) if row.path == session.transcript and row.kind == "file"
        ]
        try:
            found = os.stat(session.transcript)
        except OSError:
            continue  # the harness deleted or compressed it
        if not rows or found.st_size <= rows[-1].offset or abs(now - found.st_mtime) < IDLE_SECONDS:
            continue
        work = [session.harness, "--transcript", session.transcript, "--session", session.id, "--cwd", session.cwd]
        seats.wish(store.home, seats.name_of(store.folder_of(stored)), work)
        wished += 1
    return wished
