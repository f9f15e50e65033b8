"""Where somebody asks from: the folder, its workspace, and the session that runs there.

Invariant: a session is taken for the asker's own only where the harness itself says so, in an environment variable or in
what comes with the call; a guess would hide another session's words from a search.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from obsmem.core.tuples import NamedTuple
from obsmem.harnesses import REGISTRY, SESSION_VARIABLES
from obsmem.store.archive import StoredSession
from obsmem.system.workspace import workspace_of
from obsmem.tasks.store import Store


class Here(NamedTuple):
    """A folder, the workspace that it belongs to, and the session that asks (None where nobody says so)."""

    cwd: str
    workspace: str
    session: StoredSession | None = None


def find_here(store: Store, cwd: str = "", environment: Mapping[str, str] | None = None, session_id: str = "") -> Here:
    """Where the caller stands. ``session_id`` is the harness's id where it came with the call; else the environment is asked."""
    cwd = cwd or os.getcwd()
    names = os.environ if environment is None else environment
    ids = [session_id] if session_id else []
    if not ids:
        ids = [names[name] for one in REGISTRY for name in SESSION_VARIABLES[one] if names.get(name)]
    for id_ in ids:
        for harness in REGISTRY:
            found = store.archive.by_id(harness, id_)
            if found is not None:
                return Here(cwd, found.session.workspace or workspace_of(cwd), found)
    return Here(cwd, workspace_of(cwd))


def live_from(store: Store, stored: StoredSession) -> int:
    """The seq from which a session's entries still stand in its model's context: after its last compaction."""
    return max(store.archive.boundaries(stored.no), default=-1) + 1
