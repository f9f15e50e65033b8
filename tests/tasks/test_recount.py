"""What an earlier version kept of requests is completed from the archived bytes, the transcript being gone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from obsmem.harnesses.base import Source
from obsmem.store.measures import measures_of, sessions_to_complete
from obsmem.tasks.ingest import ingest
from obsmem.tasks.occupancy import own_spend
from obsmem.tasks.recount import recount
from obsmem.tasks.store import Store
from tests.harnesses.cases import FIXTURES, SHARED
from tests.interfaces.place import DEMO
from tests.tasks.talk import opened

CASES = [
    ("claude-code", FIXTURES / "claude-code" / "recorded-two-compactions" / "transcript.jsonl"),
    ("claude-code", FIXTURES / "claude-code" / "sidechain-inline" / "transcript.jsonl"),
    ("codex", FIXTURES / "codex" / "quiet-records" / "transcript.jsonl"),
    ("codex", DEMO / "codex" / "rollout-2026-04-08T13-20-06-019d6c41-7f02-7a53-b1de-5c90e2f4a816.jsonl"),
    ("opencode", FIXTURES / "opencode" / "errors" / "transcript.json"),
    ("claude-code", SHARED / "transcripts" / "claude-code" / "cc-2.1.42-waiting-for-task.jsonl"),
    ("codex", SHARED / "transcripts" / "codex" / "codex-0.144.2-world_state-7-session_meta.jsonl"),
    ("opencode", SHARED / "transcripts" / "opencode" / "oc-1.18.4-PARENT__ses_061687128ffe.json"),
]


def make_old(store: Store) -> None:
    """Leave of each measure what an earlier version kept."""
    run = store.archive.connection.execute
    run("DELETE FROM measures WHERE kind NOT IN (0) OR context=0")
    run("UPDATE OR REPLACE measures SET kind=-1, request=0, at=0, window=0, output=0, cached=0, written=0, model=''")


@pytest.mark.parametrize(("harness", "path"), CASES, ids=lambda value: Path(str(value)).parent.name)
def test_what_is_read_again_is_what_reading_for_the_first_time_gives(harness: str, path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path.name} is not on this machine")
    from obsmem.harnesses import load

    source = next(iter(load(harness).sources(str(path))), Source(str(path)))
    with opened() as store:
        stored = ingest(store, harness, source, final=True).stored
        assert stored is not None
        first = measures_of(store.archive.connection, stored.no)
        make_old(store)
        assert sessions_to_complete(store.archive.connection) == [stored.no]
        assert own_spend(store, stored).tokens == 0
        assert recount(store, time.monotonic() + 60) == 1
        assert measures_of(store.archive.connection, stored.no) == first
        assert sessions_to_complete(store.archive.connection) == []


def test_what_cannot_be_read_again_stays_and_is_not_tried_again() -> None:
    with opened() as store:
        stored = ingest(store, "claude-code", Source(str(CASES[0][1])), final=True).stored
        assert stored is not None
        make_old(store)
        store.archive.connection.execute("UPDATE segments SET data=x''")
        store.archive.drop_cache()
        contexts = store.archive.measures(stored.no)
        assert recount(store, time.monotonic() + 60) == 1
        assert store.archive.measures(stored.no) == contexts
        assert {one.kind for one in measures_of(store.archive.connection, stored.no)} == {"lost"}
        assert recount(store, time.monotonic() + 60) == 0
