"""The transcripts that a bench reads: found, recognised and held in memory, so that no disk is timed.

Invariant: what is timed over a sample and what it is compared with are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.tasks.discover import find_below
from obsmem.tasks.identify import identify

PROJECT = Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared" / "transcripts"
DEMO = PROJECT / "fixtures" / "demo"


class Sample(NamedTuple):
    """One source. ``size`` in bytes of its records; ``lines`` are the pieces that are JSON each: see ``_lines``."""

    harness: str
    source: Source
    size: int
    lines: tuple[bytes, ...]


def default_folders() -> list[str]:
    """The folder of real transcripts where it stands beside the project, and the demo sessions where it does not."""
    return [str(SHARED if SHARED.is_dir() else DEMO)]


def gather(paths: Iterable[str]) -> dict[str, list[Sample]]:
    """Samples by harness, in order of path. Sessions of workers are left out: nothing reads those."""
    found: dict[str, list[Sample]] = {}
    for path in paths:
        for item in find_below(path):
            if not item.harness:
                continue
            module = load(item.harness)
            if identify(module, item.harness, item.source)[0].role == "worker":
                continue
            records = tuple(raw.data for raw in module.records(item.source, 0, 0))
            size = sum(map(len, records))
            if size:
                sample = Sample(item.harness, item.source, size, _lines(item.source, records))
                found.setdefault(item.harness, []).append(sample)
    return found


def _lines(source: Source, records: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """What ``json.loads`` alone would be given: lines, a whole document, or the rows of a database."""
    if source.session_id:
        return records
    whole = b"".join(records)
    return (whole,) if source.path.endswith(".json") else tuple(whole.split(b"\n"))
