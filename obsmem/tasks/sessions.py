"""Finding the session that a person names: by id, handle, name or part of one.

Invariant: an exact id or handle wins over a name, a name over a part of one; where several fit, the newest is meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from obsmem.core.errors import NotFound
from obsmem.store.archive import StoredSession
from obsmem.tasks.store import Store


def find_session(store: Store, name: str = "") -> StoredSession:
    """The session that a person means; the newest main session for ''. Raises NotFound with what to do."""
    sessions = store.archive.sessions()
    if not sessions:
        raise NotFound(
            "The store holds no session yet. Run 'observational-memory sync' or 'observational-memory ingest PATH'."
        )
    if not name:
        return next((one for one in sessions if one.session.role == "main"), sessions[0])
    found = pick_session(sessions, name)
    if found is None:
        raise NotFound(f"No session matches {name!r}. 'observational-memory sessions' lists all {len(sessions)}.")
    return found


def pick_session(sessions: Sequence[StoredSession], name: str) -> StoredSession | None:
    """The session of these, the newest first, that a name means, or a path; None where none does."""
    path = os.path.abspath(name) if os.path.exists(name) else ""
    tests: tuple[Callable[[StoredSession], bool], ...] = (
        lambda s: name in (s.session.id, s.session.handle),
        lambda s: path != "" and s.session.transcript == path,
        lambda s: s.session.name.casefold() == name.casefold(),
        lambda s: any(name.casefold() in text.casefold() for text in (s.session.name, s.session.id, s.session.cwd)),
    )
    return next((one for test in tests for one in sessions if test(one)), None)
