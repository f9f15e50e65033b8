"""Checking the whole outputs of results that stand shortened: each is there, and is what the tool printed.

Invariant: checking changes nothing; what retention removed on purpose is no fault.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from obsmem.core.errors import StoreError
from obsmem.core.ids import entry_id
from obsmem.store.archive_raw import id_of, is_sound, raws_of, side_source
from obsmem.system.raw_files import FOLDER, read_raw
from obsmem.tasks.store import Store

_REMOVED = "retention"  # in what the archive says of bytes that were removed on purpose


def wrong_outputs(store: Store) -> Iterator[tuple[str, str]]:
    """(where, what) of everything that is wrong with whole outputs, archived or waiting."""
    for stored in store.archive.sessions():
        handle = stored.session.handle
        for source, seq in raws_of(store.archive, stored.no):
            where = f"{handle}, whole output {id_of(source)}"
            try:
                if not is_sound(store.archive, source):
                    yield where, "its bytes are not those that the tool printed"
                elif seq < 0:
                    yield where, "belongs to no entry"
            except StoreError as error:
                if _REMOVED not in str(error):
                    yield where, str(error)
        yield from _waiting(os.path.join(store.folder_of(stored), FOLDER))
    known = {one.session.handle: one for one in store.archive.sessions()}
    for one in store.memory.reductions():
        found = known.get(one.session)
        row = store.archive.entry(found.no, one.seq) if found is not None else None
        if row is not None and side_source(store.archive, row) is None:
            yield entry_id(one.session, one.seq), f"was shortened, and its whole output {one.id} is not in the archive"


def _waiting(folder: str) -> Iterator[tuple[str, str]]:
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if not name.endswith(".tmp") and read_raw(path) is None:
            yield path, "waits to be archived, and is not what the tool printed"
