"""A thousand random failures of models over real transcripts: everything is covered once, or named as a gap."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from obsmem.store.spending import Spending
from obsmem.system import config
from obsmem.tasks.discover import find_below
from obsmem.tasks.ingest import ingest
from obsmem.tasks.observe import run_passes
from obsmem.tasks.store import open_store
from obsmem.tasks.usage import today
from tests.harnesses.cases import SHARED
from tests.tasks.models import Model, unreliable
from tests.tasks.talk import utc
from tests.tasks.test_models import hire as hire
from tests.tasks.test_observe import check_coverage

TRANSCRIPTS, FAILURES = 20, 1000
LARGE = 300_000  # bytes
MODELS = ("a", "b", "c", "d")


def transcripts() -> list[Path]:
    """The smaller ones of those that are long enough to be observed many times."""
    files = [path for path in (SHARED / "transcripts").rglob("*.jsonl") if path.stat().st_size > LARGE]
    return sorted(files, key=lambda path: (path.stat().st_size, path.name))


@pytest.mark.skipif(not transcripts(), reason="the folder of real transcripts is not beside the project")
@pytest.mark.parametrize(
    ("count", "failures"), [(1, 20), pytest.param(TRANSCRIPTS, FAILURES, marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_whatever_models_do_nothing_is_lost_and_nothing_doubled(
    count: int, failures: int, tmp_path: Path, hire: Any
) -> None:
    failed = calls = entries = notes = 0
    for number, path in enumerate(transcripts()[:count]):
        workers = hire(*[Model(name, unreliable(number * 10 + index)) for index, name in enumerate(MODELS)])
        changes = {
            "workers": workers,
            "chunk_max_tokens": 1_200,
            "worker_calls_per_day": None,
            "worker_tokens_per_day": None,
        }
        settings = config.override(config.load(), changes, "test")
        with open_store(str(tmp_path / str(number)), settings) as store:
            (found,) = [one for one in find_below(str(path)) if one.harness]
            read = ingest(store, found.harness, found.source, final=True)
            assert read.stored is not None
            spending = Spending(store.memory.connection)

            def trust(done: object, spending: Spending = spending) -> None:
                for name in MODELS:  # else the first that says it is gone would end the storm
                    spending.trust_again(name)

            run_passes(store, read.stored, utc, drain=True, told=trust)
            check_coverage(store, read.stored)
            failed += _count(store.memory.connection, "worker_calls WHERE outcome LIKE 'failed%'")
            calls += _count(store.memory.connection, "worker_calls WHERE worker<>'extractive'")
            entries += sum(1 for _ in store.archive.observable(read.stored.no, 0))
            notes += _count(store.memory.connection, "notes")
            ids = [one.note.id for one in store.memory.notes(read.stored.session.handle)]
            assert len(ids) == len(set(ids))
    print(
        f"{count} transcripts, {entries} entries, {calls} calls of models, {failed} failed, {notes} notes, none twice"
    )
    assert failed >= failures


def _count(connection: sqlite3.Connection, what: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])


@pytest.mark.slow
@pytest.mark.skipif(not transcripts(), reason="the folder of real transcripts is not beside the project")
def test_a_days_limit_holds_over_ten_megabytes_of_transcript(tmp_path: Path, hire: Any) -> None:
    """Real transcripts, the largest first, until ten megabytes are read; one store, one day, one limit."""
    limit, size, sent = 20_000, 0, 0
    changes = {"worker_tokens_per_day": limit}
    for path in reversed(transcripts()):
        if size >= 10_000_000:
            break
        size += path.stat().st_size
        model = Model("a")
        settings = config.override(config.load(), {**changes, "workers": hire(model)}, "test")
        with open_store(str(tmp_path), settings) as store:
            (found,) = [one for one in find_below(str(path)) if one.harness]
            read = ingest(store, found.harness, found.source, final=True)
            assert read.stored is not None
            run_passes(store, read.stored, utc, drain=True)
            check_coverage(store, read.stored)
            sent += model.sent
            told = today(store)
    print(f"{size} bytes of transcript, {sent} tokens sent; {told.words()}")
    assert 0 < sent <= told.tokens <= limit and told.paused
