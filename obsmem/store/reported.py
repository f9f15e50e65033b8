"""What a harness reported of a session beside its transcript, kept with the session in ``archive.db``.

Invariant: reading the transcript again never takes it away, since what a reader does not know stays as it was.
"""

from __future__ import annotations

from obsmem.store.archive import Archive
from obsmem.store.schema import transaction


def set_window(archive: Archive, session: int, size: int) -> None:
    """Keep the size of a session's window, in tokens."""
    with transaction(archive.connection):
        archive.connection.execute("UPDATE sessions SET window=? WHERE no=?", (size, session))
