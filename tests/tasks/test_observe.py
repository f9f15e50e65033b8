"""The passes over a session: what is covered, by which call, when the clocks say so, and what a failure leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsmem import workers
from obsmem.core.errors import WorkerError
from obsmem.core.model import Reply, Request
from obsmem.store.archive import StoredSession
from obsmem.tasks.ask import cascade
from obsmem.tasks.observe import next_chunk, observe_clock, run_passes, shown_hash
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.workers.scripted import Scripted
from tests.tasks.talk import Talk, entries, fresh, opened, session_of, turns, utc, watch


def script(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Scripted:
    """Put a scripted worker in the place of the whole team."""
    worker = Scripted(answers[0] if len(answers) == 1 and isinstance(answers[0], dict) else list(answers))
    monkeypatch.setattr("obsmem.tasks.observe.cascade", lambda store, **_: [worker])
    return worker


def check_coverage(store: Store, stored: StoredSession) -> None:
    """Covered stretches and gaps are all observable entries, each once; each stretch names a call that was shown it."""
    stored = fresh(store, stored)
    handle = stored.session.handle
    stretches, gaps = store.memory.stretches(handle), store.memory.gaps(handle)
    parts = sorted(
        [(one.first_seq, one.last_seq) for one in stretches] + [(one.first_seq, one.last_seq) for one in gaps]
    )
    assert all(before[1] < after[0] for before, after in itertools.pairwise(parts))
    everything = {row.seq for row in store.archive.observable(stored.no, 0)}
    covered = {seq for first, last in parts for seq in range(first, last + 1)}
    assert everything <= covered
    for one in stretches:
        (found,) = store.memory.connection.execute(
            "SELECT count(*) FROM worker_calls WHERE no=? AND session=? AND task='observe' AND first_seq=? AND last_seq=?"
            " AND outcome IN ('ok','empty')",
            (one.call, handle, one.first_seq, one.last_seq),
        ).fetchone()
        assert found == 1
        chunk = next_chunk(store, stored, one.first_seq - 1, int(one.shown.split(":")[0]), utc, one.last_seq)
        assert chunk is not None
        assert shown_hash(chunk) == one.shown
        assert [entry.seq for entry in chunk.entries] == sorted(
            seq for seq in everything if one.first_seq <= seq <= one.last_seq
        )


def long_talk(count: int = 12, words: int = 120) -> Talk:
    conversation = Talk()
    for number in range(count):
        conversation.turn(number)
        conversation.agent(" ".join(f"word{number}x{k}" for k in range(words)))
    return conversation


@pytest.mark.parametrize("cap", [256, 700, 2000, None])
def test_stretches_and_gaps_cover_everything_once(cap: int | None, tmp_path: Path) -> None:
    with opened(chunk_max_tokens=cap) as store:
        stored = session_of(store, long_talk().write(tmp_path))
        done = watch(store, stored)
        assert (done.stretches > 1) == (cap is not None)
        check_coverage(store, stored)


def test_coverage_goes_on_behind_what_was_covered(tmp_path: Path) -> None:
    conversation = turns(1)
    with opened(chunk_max_tokens=300) as store:
        for number in range(1, 6):
            stored = session_of(store, conversation.write(tmp_path))
            watch(store, stored)
            check_coverage(store, stored)
            conversation.turn(number)


# --- clocks


def test_the_observer_waits_for_its_threshold_and_runs_at_it(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        waiting = observe_clock(store, stored, -1)
        assert waiting == sum(one.tokens for one in entries(store, stored))
    with opened(observe_after_tokens=waiting + 1) as store:
        assert run_passes(store, fresh(store, stored), utc).stretches == 0
    with opened(observe_after_tokens=waiting) as store:
        assert run_passes(store, fresh(store, stored), utc).stretches == 1


def test_the_reflector_runs_when_enough_was_observed_and_not_again_before_that(tmp_path: Path) -> None:
    conversation = turns(3)
    with opened() as store:
        stored = session_of(store, conversation.write(tmp_path))
        observed = store.archive.observable_tokens(stored.no, -1)
    for threshold, ran in ((observed + 1, 0), (observed, 1)):
        with opened(reflect_after_tokens=threshold) as store:
            if ran:
                store.memory.connection.execute("DELETE FROM coverage")
            watch(store, stored)
            assert len(store.memory.calls(stored.session.handle, "reflect")) == ran
    with opened(reflect_after_tokens=observed) as store:
        conversation.turn(4)
        stored = session_of(store, conversation.write(tmp_path))
        watch(store, stored)
        assert len(store.memory.calls(stored.session.handle, "reflect")) == 1
        assert store.memory.progress(stored.session.handle, "reflect") == 11


def measured(contexts: list[int]) -> Talk:
    conversation = Talk()
    for number, context in enumerate(contexts):
        conversation.user(f"request {number}")
        conversation.agent(f"answer {number}", context=context)
    return conversation


def test_the_clock_takes_the_growth_that_the_provider_reported(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, measured([1000, 5000, 12_000]).write(tmp_path))
        assert observe_clock(store, stored, 1) == 11_000
        assert observe_clock(store, stored, 3) == 7000
        assert observe_clock(store, stored, 5) == 0
        assert observe_clock(store, stored, -1) == store.archive.observable_tokens(stored.no, -1)


def test_the_clock_estimates_again_after_a_compaction_or_a_smaller_context(tmp_path: Path) -> None:
    conversation = measured([1000, 90_000])
    conversation.compact()
    conversation.user("go on")
    conversation.agent("yes", context=95_000)
    with opened() as store:
        stored = session_of(store, conversation.write(tmp_path))
        assert store.archive.boundaries(stored.no)
        assert observe_clock(store, stored, 3) == store.archive.observable_tokens(stored.no, 3) < 100
    with opened() as store:
        other = measured([9000, 20_000, 4000])
        other.session = "5e551011-0000-4000-8000-0000000000c3"
        for record in other.records:
            record["sessionId"] = other.session
            record["uuid"] = "c3" + record["uuid"]
        stored = session_of(store, other.write(tmp_path))
        assert observe_clock(store, stored, 1) == store.archive.observable_tokens(stored.no, 1) < 100


# --- answers


def test_a_deliberately_empty_answer_advances_coverage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, [])
    with opened() as store:
        stored = session_of(store, turns(2).write(tmp_path))
        done = watch(store, stored)
        assert (done.stretches, done.notes, done.gaps) == (1, 0, 0)
        assert store.memory.covered_to(stored.session.handle) == stored.last_seq
        assert [call.outcome for call in store.memory.calls(stored.session.handle)] == ["empty"]
        check_coverage(store, stored)


class Broken:
    """A worker that fails in its own way."""

    NAME = "broken"

    def __init__(self, fail: Callable[[], Reply]) -> None:
        self.fail = fail

    def ask(self, request: Request) -> Reply:
        return self.fail()


def raising(error: Exception) -> Callable[[], Reply]:
    def fail() -> Reply:
        raise error

    return fail


FAILURES = [WorkerError("no answer"), WorkerError("busy", retry=True), ValueError("a fault"), RecursionError("deep")]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_when_everybody_fails_a_gap_with_the_reason_is_left_and_the_next_run_fills_it(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(chunk_max_tokens=256) as store:
        stored = session_of(store, turns(4).write(tmp_path))
        handle = stored.session.handle
        with monkeypatch.context() as patch:
            patch.setattr("obsmem.tasks.observe.cascade", lambda store, **_: [Broken(raising(error))])
            done = watch(store, stored)
        assert done.gaps > 1
        assert (done.stretches, done.notes) == (0, 0)
        assert store.memory.stretches(handle) == []
        assert all(str(error) in gap.reason for gap in store.memory.gaps(handle))
        assert {call.outcome for call in store.memory.calls(handle)} == {
            f"failed: {getattr(error, 'fault', type(error).__name__)}"
        }
        check_coverage(store, stored)
        again = watch(store, stored)
        assert again.stretches == done.gaps
        assert store.memory.gaps(handle) == []
        check_coverage(store, stored)
        assert {note.text for note in remember(store, stored).notes}


def test_an_entry_that_cannot_be_read_any_more_hides_nothing_behind_it(tmp_path: Path) -> None:
    with opened(chunk_max_tokens=256) as store:
        stored = session_of(store, turns(4).write(tmp_path))
        handle = stored.session.handle
        store.archive.connection.execute("UPDATE entries SET block=7 WHERE no & 0xffffffff = 5")
        watch(store, stored)
        (gap,) = store.memory.gaps(handle)
        assert gap.last_seq == 5
        assert "this version" in gap.reason
        assert store.memory.covered_to(handle) == stored.last_seq
        assert any("number_3" in note.text for note in remember(store, stored).notes)
        store.archive.connection.execute("UPDATE entries SET block=0 WHERE no & 0xffffffff = 5")
        watch(store, stored)
        assert store.memory.gaps(handle) == []
        check_coverage(store, stored)


def test_a_gap_larger_than_a_stretch_is_filled_piece_by_piece(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(6).write(tmp_path))
        handle = stored.session.handle
        assert store.memory.commit_gap(handle, -1, 0, stored.last_seq, "out of time")
    with opened(chunk_max_tokens=256) as store:
        for _ in range(12):
            watch(store, stored)
            check_coverage(store, stored)
            if not store.memory.gaps(handle):
                break
        assert store.memory.gaps(handle) == []
        assert len(store.memory.stretches(handle)) > 1


def test_an_answer_that_comes_too_late_is_thrown_away_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as store, opened() as other:
        stored = session_of(store, turns(2).write(tmp_path))
        handle = stored.session.handle

        def overtaken() -> Reply:
            watch(other, stored)
            return Reply(({"text": "Late words.", "entry_ids": [f"{handle}.0"]},), "slow")

        with monkeypatch.context() as patch:
            calls = iter([[Broken(overtaken)]])
            patch.setattr("obsmem.tasks.observe.cascade", lambda s, **more: next(calls, cascade(s, **more)))
            done = watch(store, stored)
        assert (done.stretches, done.notes) == (0, 0)
        assert "Late words." not in {one.note.text for one in store.memory.notes(handle)}
        assert [call.outcome for call in store.memory.calls(handle, "observe")].count("late") == 1
        assert len(store.memory.stretches(handle)) == 1
        check_coverage(store, stored)


def test_draining_goes_on_when_another_process_was_faster_with_one_stretch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a compaction everything must be observed, though a maintainer may commit in between."""
    extractive: Any = workers.load("extractive")
    with opened(chunk_max_tokens=300) as store, opened(chunk_max_tokens=300, observe_after_tokens=1) as other:
        stored = session_of(store, turns(6).write(tmp_path))
        overtaken: list[bool] = []

        class Slow:
            NAME = "slow"

            def ask(self, request: Request) -> Reply:
                if not overtaken:
                    overtaken.append(True)
                    stop = [other.memory.covered_to(stored.session.handle)]
                    monkeypatch.setattr("obsmem.tasks.observe.cascade", lambda s, **_: [extractive])
                    run_passes(other, stored, utc, told=lambda done: stop.append(0), deadline=float("inf"))
                    monkeypatch.setattr("obsmem.tasks.observe.cascade", lambda s, **_: [self])
                reply: Reply = extractive.ask(request)
                return reply

        monkeypatch.setattr("obsmem.tasks.observe.cascade", lambda s, **_: [Slow()])
        watch(store, stored)
        assert store.memory.covered_to(stored.session.handle) >= stored.last_seq
        check_coverage(store, stored)


def test_reflecting_comes_before_dropping_in_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = ""
    worker = Scripted({"observe": [], "reflect": [], "drop": []})

    class Noting:
        NAME = "noting"

        def ask(self, request: Request) -> Reply:
            if request.task == "observe":
                assert request.chunk is not None
                names = list(request.chunk.shown)
                items = [
                    {
                        "text": f"Note {n} says that the thing {n} was looked at.",
                        "entry_ids": [name],
                        "relevance": "low",
                    }
                    for n, name in enumerate(names * 3)
                ]
                return Reply(tuple(items), "noting")
            if request.task == "reflect":
                ids = [note.id for note in request.memory.notes][:4]
                return Reply(({"text": "All things were looked at.", "note_ids": ids},), "noting")
            worker.asked.append(request)
            return Reply(tuple({"note_id": note.id} for note in request.memory.notes[: request.limit]), "noting")

    monkeypatch.setattr("obsmem.tasks.observe.cascade", lambda store, **_: [Noting()])
    with opened(reflect_after_tokens=100, pool_target_tokens=50) as store:
        stored = session_of(store, turns(3).write(tmp_path))
        handle = stored.session.handle
        done = watch(store, stored)
        assert done.reflections == 1
        assert done.drops > 0
        assert [call.task for call in store.memory.calls(handle)] == ["observe", "reflect", "drop"]
        assert worker.asked
        dropped = {id_ for one in store.memory.drops(handle) for id_ in one.drop.note_ids}
        memory = remember(store, stored)
        assert not dropped & {note.id for note in memory.notes}
        assert len(store.memory.notes_by_id(sorted(dropped))) == len(dropped)


def test_a_failing_reflector_is_asked_again_and_advances_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extractive: Any = workers.load("extractive")

    class NoReflector:
        NAME = "no-reflector"

        def ask(self, request: Request) -> Reply:
            if request.task != "observe":
                raise WorkerError("not today")
            reply: Reply = extractive.ask(request)
            return reply

    monkeypatch.setattr("obsmem.tasks.observe.cascade", lambda store, **_: [NoReflector()])
    conversation = turns(3)
    with opened(reflect_after_tokens=100) as store:
        stored = session_of(store, conversation.write(tmp_path))
        handle = stored.session.handle
        watch(store, stored)
        assert store.memory.progress(handle, "reflect") == -1
        conversation.turn(3)
        stored = session_of(store, conversation.write(tmp_path))
        watch(store, stored)
        assert [call.outcome for call in store.memory.calls(handle, "reflect")] == ["failed: answer"] * 2
        assert store.memory.gaps(handle) == []
        check_coverage(store, stored)
