"""Sessions that grow as they do in life: read and looked after step by step, with compactions in between."""

from __future__ import annotations

from pathlib import Path

from obsmem.store.archive import StoredSession
from obsmem.tasks.ingest import known_session
from obsmem.tasks.maintain import maintain
from obsmem.tasks.store import Store

STEPS = 6
COMPACTED = 4  # the step before which a compaction comes


def grow(
    store: Store, harness: str, lines: list[bytes], path: Path, steps: int = STEPS, *, begun: int = 1
) -> StoredSession:
    """Let a transcript grow in steps, with a maintainer after each, as after a turn; before one of them as before a compaction.
    The first step has ``begun`` lines at least."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for step in range(1, steps + 1):
        path.write_bytes(b"".join(lines[: max(begun, len(lines) * step // steps)]))
        maintain(store, harness, str(path), "", "", before_compact=step == COMPACTED)
    return known_session(store, str(path))


def lines_of(path: Path) -> list[bytes]:
    """The lines of a file, each with its end."""
    *whole, rest = path.read_bytes().split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
