"""Rendering anew what waits for sessions after the user changed what they are to be given.

Invariant: only what still waits is renewed; a delivery that was frozen, or that is kept until the next compaction, stays
as it is, and every block is rendered once more before it is given after a compaction.
"""

from __future__ import annotations

import os

from obsmem.store.archive import StoredSession
from obsmem.store.memory_pins import StoredPin
from obsmem.system.blockfile import NEXT, RESUME, make_due
from obsmem.system.local_time import local_clock
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.remember import descendants
from obsmem.tasks.rule_files import renew_rule_files
from obsmem.tasks.store import Store
from obsmem.tasks.workspace_index import renew_index

MOST_RENEWED = 8  # sessions, newest first: a block of an older one is rendered when it is next needed


def renew_blocks(store: Store, pinned: StoredPin) -> int:
    """Render the waiting blocks of the sessions anew that a pin is visible in; returns how many."""
    waiting = [
        one for one in sessions_seeing(store, pinned) if os.path.exists(os.path.join(store.folder_of(one), NEXT))
    ]
    for stored in waiting[:MOST_RENEWED]:
        block = leave_block(store, stored, local_clock)
        folder = store.folder_of(stored)
        if os.path.exists(os.path.join(folder, RESUME)):
            make_due(folder, RESUME)
        renew_rule_files(store.home, stored, block)
    if pinned.pin.scope != "session":
        renew_index(store, pinned.workspace)
    return len(waiting[:MOST_RENEWED])


def sessions_seeing(store: Store, pinned: StoredPin) -> list[StoredSession]:
    """The main sessions that a pin may be visible in, the last grown first."""
    everybody = [one for one in store.archive.sessions() if one.session.role == "main"]
    if pinned.pin.scope == "everywhere":
        return everybody
    if pinned.pin.scope == "workspace":
        return [one for one in everybody if one.session.workspace == pinned.workspace]
    handles = {pinned.session, *(one.session.handle for one in descendants(store, pinned.session))}
    return [one for one in everybody if one.session.handle in handles]
