"""What a model may be shown: the sessions of one workspace, unless the user's own configuration says otherwise.

Invariant: an id of another workspace is answered like one that does not exist, so that asking tells nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.ids import is_entry_id, is_note_prefix, is_raw_id, parse_entry_id
from obsmem.harnesses import REGISTRY, load
from obsmem.memory.recall import Found, Source
from obsmem.store.archive import StoredSession
from obsmem.tasks.here import Here, find_here
from obsmem.tasks.pins import pins
from obsmem.tasks.resolve import find, pick_session
from obsmem.tasks.store import Store
from obsmem.tasks.whole_outputs import Whole, find_whole, is_here


class Asker(NamedTuple):
    """Who asks, before any store is open: the folder, and the harness's id of the session ('' where it is not told)."""

    cwd: str
    session_id: str = ""


class Scope(NamedTuple):
    """Where somebody stands, and whether everything may be shown there."""

    store: Store
    here: Here
    everywhere: bool

    def allows(self, stored: StoredSession) -> bool:
        """True if a session's words may be shown."""
        return stored.session.role != "worker" and (
            self.everywhere or stored.session.workspace == self.here.workspace or self._is_own(stored)
        )

    def _is_own(self, stored: StoredSession) -> bool:
        return self.here.session is not None and stored.no == self.here.session.no

    def allows_handle(self, handle: str) -> bool:
        """True if there is a session of that handle whose words may be shown."""
        try:
            return self.allows(self.store.archive.by_handle(handle))
        except NotFound:
            return False

    def sessions(self) -> list[StoredSession]:
        """Those that may be shown, the last grown first."""
        return [one for one in self.store.archive.sessions() if self.allows(one)]

    def session(self, name: str) -> StoredSession:
        """The session that a name means: the asker's own for '', else the newest here. Raises NotFound."""
        if not name and self.here.session is not None:
            return self.here.session
        known = self.sessions()
        main = next((one for one in known if one.session.role == "main"), None)
        found = pick_session(known, name) if name else main
        if found is not None:
            return found
        if not known:
            raise NotFound("No session of this workspace is in the record yet.")
        raise NotFound(f"No session here matches {name!r}. The tool 'status' lists those there are.")

    def entry(self, name: str) -> str:
        """An entry's id, if it may be shown. Raises NotFound, UsageError."""
        name = clean_id(name)
        if is_raw_id(name):
            whole = self.whole(name)
            return whole.entry or whole.id
        if not is_entry_id(name):
            raise UsageError(f"{name!r} is no id of an entry: it should look like 'abcd.12'.")
        if not self.allows_handle(parse_entry_id(name)[0]):
            raise NotFound(f"{name} is not found here.")
        return name

    def whole(self, name: str) -> Whole:
        """The whole output with an id, if it may be shown. Raises NotFound."""
        whole = find_whole(self.store, name)
        is_allowed = self.allows_handle(parse_entry_id(whole.entry)[0]) if whole.entry else self._is_here(whole)
        if not is_allowed:
            raise NotFound(f"{name} is not found here.")
        return whole

    def _is_here(self, whole: Whole) -> bool:
        return self.everywhere or is_here(whole, self.here.workspace)

    def find(self, name: str) -> Found:
        """What an id names, without what stands elsewhere. Raises NotFound, UsageError."""
        name = clean_id(name)
        if is_raw_id(name):
            whole = self.whole(name)
            return find(self.store, whole.entry or whole.id)
        if is_entry_id(name):
            return find(self.store, self.entry(name))
        if not is_note_prefix(name):
            raise UsageError(
                f"{name!r} is no id: notes and reflections have 4 to 12 hex digits (3fa9c1d), entries a handle and a number "
                "(7c2e.812). The tool 'search' finds words."
            )
        ids = self._note_ids(name)
        if not ids:
            raise NotFound(f"{name} is not found here.")
        if len(ids) > 1:
            raise UsageError(
                f"{name!r} is the beginning of {len(ids)} ids: {', '.join(sorted(ids)[:8])}. Give more digits."
            )
        return self._without_others(find(self.store, ids.pop()))

    def _note_ids(self, name: str) -> set[str]:
        memory = self.store.memory
        notes = {one.note.id for one in memory.find_notes(name) if self.allows_handle(one.session)}
        others = {one.reflection.id for one in memory.find_reflections(name) if self.allows_handle(one.session)}
        pinned = {one.id for one in pins(self.store, self.here) if one.id.startswith(name)}
        return (notes | others) or pinned

    def _without_others(self, found: Found) -> Found:
        """A note may cite a session of another workspace, or stand in one as well: its words stay there."""
        return found._replace(sources=tuple(self._held(one) for one in found.sources))

    def _held(self, one: Source) -> Source:
        is_elsewhere = is_entry_id(one.id) and not self.allows_handle(parse_entry_id(one.id)[0])
        return Source(one.id, None, "not found here") if is_elsewhere else one


def make_scope(store: Store, asker: Asker) -> Scope:
    """What whoever asks may see of a store."""
    here = find_here(store, asker.cwd, session_id=asker.session_id)
    return Scope(store, here, store.config["mcp_scope"] == "everywhere")


def clean_id(name: str) -> str:
    """An id as it was printed, without the brackets around it."""
    return name.strip().strip("[]").lower()


def asker_of(meta: Mapping[str, object], folder: str) -> Asker:
    """Who makes a call: what came with it says which session, where the harness says so there."""
    named: Iterable[str] = (load(one).session_of_call(meta) for one in REGISTRY) if meta else ()
    return Asker(folder, next((one for one in named if one), ""))


def server_folder(environment: Mapping[str, str]) -> str:
    """The folder that a server stands in: where it was started, unless its harness names another one."""
    named = (load(one).folder_of_server(environment) for one in REGISTRY)
    return next((one for one in named if one and os.path.isdir(one)), "") or os.getcwd()
