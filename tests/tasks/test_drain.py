"""Before a compaction the newest words are observed, however little time there is; what was skipped is filled later."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.system.process import INTERPRETER_FILE
from obsmem.tasks.drain import NO_TIME, drain, skip_oldest
from obsmem.tasks.observe import run_passes
from obsmem.workers import extractive
from tests.tasks.talk import opened, session_of, utc
from tests.tasks.test_observe import check_coverage, long_talk


def test_where_the_time_is_too_short_the_oldest_becomes_a_gap_that_the_next_run_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = long_talk(40).write(tmp_path)
    with opened(chunk_max_tokens=300) as store:
        stored = session_of(store, path)
        answer = extractive.ask

        def slow(request: Any) -> Any:
            time.sleep(0.1)
            return answer(request)

        with monkeypatch.context() as patched:
            patched.setattr(extractive, "ask", slow)
            done = drain(store, stored, utc, time.monotonic() + 2.0, workers=False)
        handle = stored.session.handle
        (gap,) = store.memory.gaps(handle)
        assert done.gaps == 1 and gap.reason == NO_TIME
        stretches = store.memory.stretches(handle)
        assert stretches[0].first_seq == 0, "it began with the oldest, not knowing how fast it would be"
        assert stretches[-1].last_seq > gap.last_seq
        newest = [row.seq for row in store.archive.observable(stored.no, 0)][-1]
        assert stretches[-1].last_seq >= newest - 12, "and came to the newest, or nearly"
        for _ in range(200):
            run_passes(store, stored, utc, drain=True)
            if not store.memory.gaps(handle):
                break
        check_coverage(store, stored)
        assert store.memory.gaps(handle) == []


def test_with_time_enough_there_is_no_gap(tmp_path: Path) -> None:
    path = long_talk(5).write(tmp_path)
    with opened(chunk_max_tokens=300) as store:
        stored = session_of(store, path)
        done = drain(store, stored, utc, time.monotonic() + 60.0, workers=True)
        assert done.gaps == 0 and done.stretches > 3
        check_coverage(store, stored)


@pytest.mark.parametrize("most", [0, 1, 500, 10**9])
def test_what_is_skipped_leaves_at_most_so_much_and_at_least_the_last_entry(most: int, tmp_path: Path) -> None:
    path = long_talk(6).write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        rows = list(store.archive.observable(stored.no, 0))
        skipped = skip_oldest(store, stored, most)
        covered = store.memory.covered_to(stored.session.handle)
        left = [row for row in rows if row.seq > covered]
        assert skipped == (most < 10**9) == (covered >= 0)
        assert left and left[-1] == rows[-1]
        assert sum(row.tokens for row in left) <= max(most, rows[-1].tokens) or not skipped


@pytest.mark.skipif(os.name != "posix", reason="a file that may not be executed is a thing of POSIX systems")
def test_where_no_process_can_be_started_for_the_workers_nothing_is_left_unobserved(tmp_path: Path) -> None:
    path = long_talk(6).write(tmp_path)
    with opened(workers=[{"kind": "command", "run": ["/bin/true"]}]) as store:
        stored = session_of(store, path)
        refused = tmp_path / "python"
        refused.write_text("", encoding="utf-8")
        Path(store.home, INTERPRETER_FILE).write_text(str(refused), encoding="utf-8")
        drain(store, stored, utc, time.monotonic() + 10.0, workers=True)
        check_coverage(store, stored)
        assert {call.worker for call in store.memory.calls(stored.session.handle)} == {"extractive"}
        assert "outcome=workers-PermissionError" in Path(store.home, "log.txt").read_text(encoding="utf-8")
