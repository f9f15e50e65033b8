"""What happens to a transcript, each step timed alone over the samples of one harness.

Invariant: every step does the whole of what the program does there, commits and syncs included; times are in seconds of
the clock that is asked for: ``wall``, or ``cpu`` (of all threads), which other programs on the machine disturb less.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

from bench.corpus import Sample
from obsmem.harnesses import load
from obsmem.store.archive import StoredSession
from obsmem.system import config
from obsmem.system.local_time import local_clock
from obsmem.tasks.cards import update_cards
from obsmem.tasks.ingest import ingest
from obsmem.tasks.observe import run_passes
from obsmem.tasks.store import ARCHIVE, INDEX, MEMORY, Store, open_store
from obsmem.tasks.words import index_words

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


class Times(NamedTuple):
    """Seconds of each step: JSON parsing alone, reading, archiving (which reads), archiving with the cards that are made
    on the way, full text, cards (from the archive) and observing."""

    json: float
    read: float
    archive: float
    ingest: float
    words: float
    observe: float


class Sizes(NamedTuple):
    """Bytes on disk after everything was read, indexed and observed."""

    archive: int
    full_text: int
    memory: int


def measure(samples: Sequence[Sample], clock: str = "wall") -> tuple[Times, Sizes]:
    """Run every step once, in a fresh store."""
    now = CLOCKS[clock]
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        alone, read = timed(now, lambda: _parse(samples)), timed(now, lambda: _read(samples))
        with open_store(home, config.defaults()) as store:
            archive, ingested = _timed_ingest(now, store, samples)
            sessions = store.archive.sessions()
            words = timed(now, lambda: _index(store, sessions))
            observed = timed(now, lambda: _observe(store, sessions))
        sizes = Sizes(*(os.path.getsize(os.path.join(home, name)) for name in (ARCHIVE, INDEX, MEMORY)))
    return Times(alone, read, archive, ingested, words, observed), sizes


def timed(now: Callable[[], float], work: Callable[[], None]) -> float:
    """Seconds that some work takes by the clock ``now``."""
    start = now()
    work()
    return now() - start


def _parse(samples: Sequence[Sample]) -> None:
    for sample in samples:
        for line in sample.lines:
            try:
                json.loads(line)
            except ValueError:
                pass


def _read(samples: Sequence[Sample]) -> None:
    for sample in samples:
        module = load(sample.harness)
        reader = module.reader(sample.source, None, lambda: ())
        for raw in module.records(sample.source, 0, 0):
            reader.read(raw)


def _ingest(store: Store, samples: Sequence[Sample]) -> None:
    for sample in samples:
        ingest(store, sample.harness, sample.source, final=True)


def _timed_ingest(now: Callable[[], float], store: Store, samples: Sequence[Sample]) -> tuple[float, float]:
    """Seconds of a whole ingest without and with the cards: these are timed where ingest calls for them."""
    spent = 0.0

    def update_timed(*arguments: Any, **options: Any) -> None:
        nonlocal spent
        spent += timed(now, lambda: update_cards(*arguments, **options))

    with mock.patch("obsmem.tasks.ingest.update_cards", update_timed):
        whole = timed(now, lambda: _ingest(store, samples))
    return whole - spent, whole


def _index(store: Store, sessions: Sequence[StoredSession]) -> None:
    for stored in sessions:
        index_words(store, stored)


def _observe(store: Store, sessions: Sequence[StoredSession]) -> None:
    """Cards from the archive, then the passes with the worker that needs no model."""
    for stored in sessions:
        store.index.reset(stored.no, "cards")
        update_cards(store, stored)
        run_passes(store, stored, local_clock, drain=True, fast=True)
