"""What comes with an entry that was just archived: receipts of our block, files that hold a long output, and whole outputs of
results that stand shortened.

Invariant: it is kept right after the entry, and again from the entry where a process was killed in between; what is there
already is not kept twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsmem.core.model import Entry
from obsmem.harnesses.base import Harness
from obsmem.harnesses.written import receipts
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES
from obsmem.tasks.entries import read_entries
from obsmem.tasks.raw_outputs import RawOutputs
from obsmem.tasks.side_files import find_side_file, keep_side_file
from obsmem.tasks.store import Store

BESIDE = "beside"  # how far all this was kept, in the index
NOTICE, RESULT = KIND_CODES["notice"], KIND_CODES["tool_result"]


class Beside:
    """Keeps it for one reading of a session from ``path``."""

    def __init__(self, store: Store, module: Harness, stored: StoredSession, path: str) -> None:
        self._store, self._module, self._stored, self._path = store, module, stored, path
        self._raws = RawOutputs(store, stored, path)

    def keep(self, entry: Entry, marks: Iterable[str]) -> Entry:
        """Keep what comes with an entry; returns it with all that its tool printed, where it stands shortened."""
        handle = self._stored.session.handle
        for mark in marks:
            delivery, part = mark.split(" ")
            self._store.memory.record_receipt(handle, delivery, part, entry.seq, entry.at)
        if entry.kind != "tool_result":
            return entry
        whole = self._raws.keep(entry)
        if whole is None and hasattr(self._module, "side_files"):
            for path in self._module.side_files(entry.text):
                found = find_side_file(path, self._path, self._stored.session.id)
                if found:
                    keep_side_file(self._store, self._stored, entry.seq, found)
        return whole or entry

    def reached(self, seq: int) -> None:
        """Everything up to an entry is kept."""
        self._store.index.move_reach(self._stored.no, BESIDE, seq)

    def catch_up(self) -> None:
        """Keep what comes with entries that were archived right before an earlier reading was killed."""
        reach, last = self._store.index.reach(self._stored.no, BESIDE)[0], self._stored.last_seq
        if reach >= last:
            return
        rows = self._store.archive.entries(self._stored.no, reach + 1, where=f"kind IN ({NOTICE}, {RESULT})")
        for row in rows:
            for entry in read_entries(self._store, self._stored, [row], lost=True):
                # With a new index all is looked at again: then the receipts are there already, named by the reader.
                noted = reach >= 0 and entry.speaker == "harness"
                self.keep(entry, receipts(entry.text) if noted else ())
        self.reached(last)
