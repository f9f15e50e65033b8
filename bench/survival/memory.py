"""The memory under test, as a user has it: a store, the lines before the boundary, a block, and its commands.

Invariant: the memory is given exactly the bytes of which the hash is kept, in a folder of its own, and no word of what came later.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from obsmem.core.clock import utc_minute
from obsmem.core.errors import NotFound, SourceMissing, StoreError, UsageError
from obsmem.core.finds import Query
from obsmem.harnesses.base import Source
from obsmem.memory.recall import render
from obsmem.store.archive import StoredSession
from obsmem.system import config
from obsmem.tasks.deliver import make_block
from obsmem.tasks.entries import find_entry
from obsmem.tasks.ingest import ingest
from obsmem.tasks.observe import run_passes
from obsmem.tasks.resolve import find
from obsmem.tasks.search import search
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.words import index_words

HARNESS = "claude-code"
RECALL_TOKENS = 2_000


class Noted(NamedTuple):
    """A note: its text, the entries that it cites, and the first and last entry (by number) of what its observer was shown."""

    text: str
    cited: tuple[str, ...]
    first: int
    last: int


class Memory:
    """A session in a store of its own. ``given`` is the hash of the bytes that it got."""

    def __init__(self, store: Store, stored: StoredSession, given: str, transcript: Path) -> None:
        self.store, self.stored, self.given, self._transcript = store, stored, given, transcript

    def block(self, budget: int) -> str:
        """What would be delivered now, within ``budget`` tokens of the memory's own counting."""
        return "\n".join(make_block(self.store, self.stored, utc_minute, budget=budget).parts)

    def search(self, words: str, count: int) -> list[tuple[str, str]]:
        """What ``search`` gives for these words: (id, snippet) of each hit, best first."""
        hits = search(self.store, Query(words, sessions=(self.stored.session.handle,), limit=count)).hits
        return [(hit.id, f"{hit.snippet} {hit.later}".rstrip()) for hit in hits]

    def recall(self, name: str) -> str:
        """What ``recall`` prints of an id."""
        return render(find(self.store, name), RECALL_TOKENS)

    def notes(self) -> list[Noted]:
        """Every note that was made, those that were dropped too."""
        found = self.store.memory.notes(self.stored.session.handle)
        return [Noted(one.note.text, one.note.entry_ids, one.first_seq, one.last_seq) for one in found]

    def line(self, name: str) -> int:
        """The line (from 0) of the transcript that an entry's id names; -1 where there is no such entry."""
        try:
            return find_entry(self.store, name)[1].line - 1
        except (NotFound, UsageError):
            return -1

    def raw(self, name: str) -> bytes:
        """The bytes that ``recall --raw`` writes of an entry; none where they cannot be had."""
        try:
            return self.store.archive.record(find_entry(self.store, name)[1])
        except (NotFound, SourceMissing, StoreError, UsageError):
            return b""

    def lose_transcript(self) -> None:
        """Empty the file that was read, as a rotation does: what is asked afterwards comes from the archive."""
        self._transcript.write_bytes(b"")


@contextmanager
def remember(lines: Sequence[bytes], name: str) -> Iterator[Memory]:
    """Give a memory these lines of a transcript, as its hooks would, and let it observe them with its built-in worker."""
    with tempfile.TemporaryDirectory() as folder:
        data = b"\n".join(lines) + b"\n"
        path = Path(folder) / f"{name}.jsonl"
        path.write_bytes(data)
        with open_store(home=os.path.join(folder, "store"), config=config.defaults()) as store:
            read = ingest(store, HARNESS, Source(str(path)), final=True)
            assert read.stored is not None
            run_passes(store, read.stored, utc_minute, drain=True, fast=True)
            index_words(store, store.archive.by_handle(read.stored.session.handle))
            stored = store.archive.by_handle(read.stored.session.handle)
            yield Memory(store, stored, hashlib.sha256(data).hexdigest(), path)
