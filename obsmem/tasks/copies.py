"""Where copies of a session went that forgetting cannot reach: exports, and the repository of the user's remote.

Invariant: only places are kept, never content; what is not there any more is not named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from obsmem.store.archive import StoredSession
from obsmem.system.files import read_bytes, write_atomic
from obsmem.tasks.remote import sent_file, sent_to
from obsmem.tasks.store import Store

COPIES = "copies.json"
MOST_PLACES = 50  # that are remembered of one session, the last ones
LIMIT = 1 << 22


class Copies(NamedTuple):
    """Files and folders that were exported, and the address of the repository that a session was sent to ('' for none)."""

    exported: tuple[str, ...] = ()
    remote: str = ""

    def words(self, command: str) -> list[str]:
        """What has to be said about them when their session is forgotten; ``command`` is how this program is called."""
        said = []
        if self.exported:
            said.append(f"What was exported of it is not touched, remove it by hand: {', '.join(self.exported)}.")
        if self.remote:
            said.append(
                f"It was sent to {self.remote}: '{command} remote push' takes it out of what this store has there now. The "
                "history of that repository, the clone of it here, and stores that pulled it hold it still: forget it there, "
                f"too, and to be rid of the history give '{command} remote remove' and then an empty repository to 'remote add'."
            )
        return said


def note_export(store: Store, handles: Iterable[str], path: str) -> None:
    """Remember that sessions were written to a place outside of the store."""
    known = _known(store.home)
    for handle in handles:
        places = [one for one in known.get(handle, []) if one != path]
        known[handle] = [*places, path][-MOST_PLACES:]
    _keep(store.home, known)


def copies_of(store: Store, sessions: Iterable[StoredSession]) -> Copies:
    """What is known of the copies of sessions."""
    known, exported, remote = _known(store.home), dict[str, None](), ""
    for stored in sessions:
        exported.update(dict.fromkeys(path for path in known.get(stored.session.handle, []) if os.path.exists(path)))
        if os.path.exists(sent_file(store, stored)):
            remote = sent_to(store)
    return Copies(tuple(exported), remote)


def drop_places(store: Store, handle: str) -> None:
    """Do not remember where a session went any more: it was forgotten, and this was said."""
    known = _known(store.home)
    if known.pop(handle, None) is not None:
        _keep(store.home, known)


def _known(home: str) -> dict[str, list[str]]:
    try:
        value = json.loads(read_bytes(os.path.join(home, COPIES), LIMIT) or b"{}")
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    return {handle: [str(path) for path in places] for handle, places in value.items() if isinstance(places, list)}


def _keep(home: str, known: dict[str, list[str]]) -> None:
    write_atomic(os.path.join(home, COPIES), json.dumps(known, sort_keys=True).encode("ascii") + b"\n")
