"""Running a saved transcript through the whole pipeline, as if its session were running now.

Invariant: a replay writes into the store that it is given and nowhere else; with a cut it reads nothing beyond it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.model import Block
from obsmem.core.tokens import estimate
from obsmem.harnesses import load
from obsmem.harnesses.base import Parsed, Raw
from obsmem.store.archive import StoredSession
from obsmem.store.archive_write import TORN
from obsmem.tasks.deliver import make_block
from obsmem.tasks.discover import Found
from obsmem.tasks.ingest import Ingested, Progress, ingest
from obsmem.tasks.observe import Done, run_passes
from obsmem.tasks.store import Store


class Counts(NamedTuple):
    """What parsing alone finds in a source. ``lines`` are physical lines (records, for a database)."""

    bytes: int
    lines: int
    records: int
    entries: dict[str, int]
    skipped: dict[str, int]
    unaccounted: int
    tokens: int
    compactions: int
    role: str
    session: str


class Replayed(NamedTuple):
    """What a replay did: what was read, what the passes did, and the block that the model would get."""

    read: Ingested
    done: Done
    block: Block
    stored: StoredSession
    compactions: int


class Cut(NamedTuple):
    """Where a replay ends: before the ``compaction``-th boundary, or after ``tokens`` tokens; 0 = not so."""

    compaction: int = 0
    tokens: int = 0

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Read ``3`` (a compaction) or ``150000t`` (tokens). Raises ValueError."""
        number = int(text.removesuffix("t"))
        if number < 1:
            raise ValueError(text)
        return cls(tokens=number) if text.endswith("t") else cls(compaction=number)


NO_CUT = Cut()


def count(found: Found, progress: Callable[[Progress], None] | None = None) -> Counts:
    """Parse a source and count what is in it; nothing is stored."""
    module = load(found.harness)
    reader = module.reader(found.source, None, _no_history)
    entries: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    size = lines = records = unaccounted = tokens = compactions = 0
    for raw in module.records(found.source, 0, 0):
        parsed = reader.read(raw)
        size += len(raw.data)
        lines = max(lines + 1 if raw.key else raw.line, lines)
        records += 1
        for entry in parsed.entries:
            entries[f"{entry.kind}/{entry.speaker}"] += 1
            tokens += estimate(entry.text)
            compactions += entry.kind == "boundary"
        reasons = (
            (TORN,) if not raw.complete and not parsed.entries and "not JSON" in parsed.skipped else parsed.skipped
        )
        skipped.update(reasons)
        unaccounted += not (parsed.entries or reasons)
        if progress is not None and records % 500 == 0:
            progress(Progress(size, found.size))
    session = reader.session
    return Counts(
        size, lines, records, dict(entries), dict(skipped), unaccounted, tokens, compactions, session.role, session.id
    )


def _no_history() -> tuple[()]:
    return ()


class _Stop:
    """Ends a reading at a cut; counts compactions on the way."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.compactions = 0
        self.tokens = 0

    def __call__(self, raw: Raw, parsed: Parsed) -> bool:
        boundaries = sum(entry.kind == "boundary" for entry in parsed.entries)
        if self.cut.compaction and self.compactions + boundaries >= self.cut.compaction > 0 and boundaries:
            return True
        self.compactions += boundaries
        if self.cut.tokens:
            self.tokens += sum(estimate(entry.text) for entry in parsed.entries)
            return self.tokens > self.cut.tokens
        return False


def replay(
    store: Store,
    found: Found,
    clock: Clock,
    *,
    cut: Cut = NO_CUT,
    budget: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    told: Callable[[Done], None] | None = None,
) -> Replayed | None:
    """Read a source up to the cut, run the passes, render the block. None where nothing may be read (see Ingested)."""
    stop = _Stop(cut)
    read = ingest(store, found.harness, found.source, final=True, stop=stop, progress=progress)
    if read.stored is None:
        return None
    done = run_passes(store, read.stored, clock, drain=True, told=told)
    block = make_block(store, read.stored, clock, budget=budget)
    return Replayed(read, done, block, read.stored, stop.compactions)
