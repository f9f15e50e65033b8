"""Notes and coverage commit together; late answers are refused; gaps are filled; a backup a day, seven kept."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.decisions import OBSERVE, REDUCE, SECOND_TRY, WAIT
from obsmem.core.ids import content_id
from obsmem.core.model import Note, Reflection
from obsmem.store.memory import BACKUPS_KEPT, MemoryStore, WorkerCall
from obsmem.store.memory_coverage import Gap
from obsmem.store.schema import transaction

S = "abcd"


@pytest.fixture
def memory(tmp_path: Path) -> MemoryStore:
    return MemoryStore(str(tmp_path / "memory.db"))


def note(text: str, *seqs: int, session: str = S) -> Note:
    names = tuple(f"{session}.{seq}" for seq in seqs)
    return Note(content_id(text, names), text, 1000, "high", names, "tool", "partial", 5, ("7",))


def call(first: int, last: int, outcome: str = "ok") -> WorkerCall:
    return WorkerCall(S, "observe", "scripted", 1, first, last, outcome, 1, 2, 3, 4, 5)


def test_notes_come_back_as_they_were_written(memory: MemoryStore) -> None:
    made = note("It works.", 3, 1, 2)
    assert memory.commit_stretch(call(0, 5), -1, 0, 5, "hash", [made])
    (stored,) = memory.notes(S)
    assert stored.note == made
    assert (stored.first_seq, stored.last_seq) == (0, 5)
    assert memory.find_notes(made.id[:6]) == [stored]
    assert memory.notes_by_id(["000000000000", made.id]) == [stored]
    (stretch,) = memory.stretches(S)
    assert (stretch.first_seq, stretch.last_seq, stretch.shown) == (0, 5, "hash")
    assert memory.calls(S) == [call(0, 5)]


def test_a_stretch_is_committed_only_where_coverage_still_ends(memory: MemoryStore) -> None:
    assert memory.commit_stretch(call(0, 5), -1, 0, 5, "a", [note("First.", 1)])
    assert not memory.commit_stretch(call(0, 3), -1, 0, 3, "b", [note("Late.", 1)])
    assert not memory.commit_gap(S, -1, 0, 3, "late too")
    assert [one.note.text for one in memory.notes(S)] == ["First."]
    assert [one.outcome for one in memory.calls(S)] == ["ok", "late"]
    assert memory.calls(S)[1].items == 0
    assert memory.commit_stretch(call(6, 9), 5, 6, 9, "c", [])
    assert memory.covered_to(S) == 9


def test_what_fails_in_the_middle_leaves_nothing(memory: MemoryStore) -> None:
    with pytest.raises(sqlite3.Error):
        memory.commit_stretch(call(0, 5), -1, 0, 5, "a", [note("Good.", 1), note("Bad.", 2)._replace(text=None)])  # type: ignore[arg-type]
    assert (memory.notes(S), memory.stretches(S), memory.calls(S)) == ([], [], [])


def test_a_gap_counts_as_read_and_is_removed_when_it_is_filled(memory: MemoryStore) -> None:
    assert memory.commit_gap(S, -1, 0, 9, "too slow")
    assert memory.covered_to(S) == 9
    assert memory.commit_stretch(call(10, 12), 9, 10, 12, "a", [])
    assert memory.commit_stretch(call(0, 4), 12, 0, 4, "b", [note("Filled.", 2)])
    assert memory.gaps(S) == [Gap(5, 9, "too slow")]
    assert memory.commit_stretch(call(5, 9), 12, 5, 9, "c", [])
    assert memory.gaps(S) == []
    assert [(one.first_seq, one.last_seq) for one in memory.stretches(S)] == [(0, 4), (5, 9), (10, 12)]
    assert not memory.commit_stretch(call(5, 9), 9, 5, 9, "d", [])


def test_coverage_is_cut_where_the_archive_ends(memory: MemoryStore) -> None:
    memory.commit_stretch(call(0, 5), -1, 0, 5, "a", [note("Kept.", 1)])
    memory.commit_stretch(call(6, 9), 5, 6, 9, "b", [])
    memory.commit_gap(S, 9, 10, 20, "x")
    memory.commit_reflections(call(0, 9)._replace(task="reflect"), [], 9)
    assert memory.roll_back_coverage(S, 7) == 1
    assert [(one.first_seq, one.last_seq, one.shown) for one in memory.stretches(S)] == [(0, 5, "a"), (6, 7, "")]
    assert (memory.gaps(S), memory.covered_to(S), memory.progress(S, "reflect")) == ([], 7, 7)
    memory.commit_gap(S, 7, 8, 30, "y")
    memory.roll_back_coverage(S, 10)
    assert memory.covered_to(S) == 10
    memory.roll_back_coverage(S, -1)
    assert memory.covered_to(S) == -1
    assert len(memory.notes(S)) == 1


def test_the_bound_of_notes_is_what_they_cite_not_the_stretch_they_came_from(memory: MemoryStore) -> None:
    memory.commit_stretch(call(0, 9), -1, 0, 9, "a", [note("Early.", 1, 2), note("Both.", 1, 8), note("Late.", 9)])
    assert [one.note.text for one in memory.notes(S, 2)] == ["Early."]
    assert [one.note.text for one in memory.notes(S, 8)] == ["Early.", "Both."]
    assert len(memory.notes(S)) == 3


def test_the_same_note_again_is_no_second_one_but_newly_recorded(memory: MemoryStore) -> None:
    memory.commit_stretch(call(0, 1), -1, 0, 1, "a", [note("Same.", 1)])
    before = memory.notes(S)[0].recorded_at
    memory.connection.execute("UPDATE notes SET recorded_at=recorded_at-5000")
    memory.commit_stretch(call(2, 3), 1, 2, 3, "b", [note("Same.", 1)])
    (stored,) = memory.notes(S)
    assert stored.recorded_at >= before


def test_a_reflector_that_was_overtaken_changes_nothing(memory: MemoryStore) -> None:
    made = Reflection("0123456789ab", "Lasting.", ("aaaaaaaaaaaa",), 3)
    reflect = call(0, 5)._replace(task="reflect")
    assert memory.commit_reflections(reflect, [made], 5, expected=-1)
    assert not memory.commit_reflections(reflect, [made._replace(id="ba9876543210")], 9, expected=-1)
    assert [one.reflection for one in memory.reflections(S)] == [made]
    assert memory.progress(S, "reflect") == 5
    assert [one.outcome for one in memory.calls(S, "reflect")] == ["ok", "late"]


def test_drops_are_tombstones_bounded_by_when_they_were_made(memory: MemoryStore) -> None:
    memory.commit_drops(call(0, 5)._replace(task="drop"), ["aaaaaaaaaaaa"], "why", 5)
    memory.commit_drops(call(0, 9)._replace(task="drop"), ["bbbbbbbbbbbb"], "why", 9)
    assert [one.drop.note_ids for one in memory.drops(S, 5)] == [("aaaaaaaaaaaa",)]
    assert len(memory.drops(S)) == 2


def test_one_backup_a_day_and_the_newest_seven_are_kept(memory: MemoryStore, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    day = 86_400
    start = 1_700_000_000
    for number in range(10):
        memory.commit_stretch(call(number, number), number - 1, number, number, "a", [note(f"Day {number}.", number)])
        for hour in (0, 1):
            path = memory.back_up(str(folder), now=start + number * day + hour)
        count = sqlite3.connect(path).execute("SELECT count(*) FROM notes").fetchone()[0]
        assert count == number + 1
    names = sorted(os.listdir(folder))
    assert len(names) == BACKUPS_KEPT
    assert os.path.basename(path) == names[-1]
    assert oct(os.stat(path).st_mode & 0o777) == "0o600"


def decided(memory: MemoryStore) -> list[tuple[str, str, dict[str, Any]]]:
    """What was decided, without when."""
    return [(one.what, one.why, {**one.numbers, "first_at": 0}) for one in memory.decisions(S)]


def test_a_routine_decision_stands_once_between_two_that_are_none(memory: MemoryStore) -> None:
    for seq in (1, 2, 2, 3):
        memory.record_decision(S, WAIT, "not due", {"seq": seq}, routine=True)
        memory.record_decision(S, REDUCE, "shortened", {"seq": seq})  # nothing that the passes turn on
    waits = [one for one in decided(memory) if one[0] == WAIT]
    assert waits == [(WAIT, "not due", {"seq": 3, "routine": True, "times": 3, "first_seq": 1, "first_at": 0})]
    memory.record_decision(S, OBSERVE, "due", {"seq": 4})
    memory.record_decision(S, WAIT, "not due", {"seq": 4}, routine=True)
    assert [one[0] for one in decided(memory) if one[0] != REDUCE] == [WAIT, OBSERVE, WAIT]


def test_decisions_are_read_in_the_order_in_which_they_were_taken_between_two_times(memory: MemoryStore) -> None:
    for number in range(4):
        memory.record_decision(S, OBSERVE, f"{number}", {"list": [1, {"a": "b"}]})
    memory.connection.execute("UPDATE decisions SET at=no*1000")
    assert [one.why for one in memory.decisions(S)] == ["0", "1", "2", "3"]
    assert [one.why for one in memory.decisions(S, 2000, 3000)] == ["1", "2"]
    assert memory.decisions(S)[0].numbers == {"list": [1, {"a": "b"}]}
    assert memory.decisions("another") == []


def test_only_old_decisions_of_the_named_kinds_are_pruned(memory: MemoryStore) -> None:
    for kind in (OBSERVE, WAIT, SECOND_TRY):
        memory.record_decision(S, kind, "why")
    memory.connection.execute("UPDATE decisions SET at=no*1000")
    assert memory.prune_decisions(1000, [OBSERVE]) == 0
    assert memory.prune_decisions(5000, [OBSERVE, WAIT]) == 2
    assert [one.what for one in memory.decisions(S)] == [SECOND_TRY]


def test_a_decision_stands_or_falls_with_what_was_decided(memory: MemoryStore) -> None:
    with pytest.raises(RuntimeError), transaction(memory.connection):
        memory.commit_stretch(call(0, 1), -1, 0, 1, "a", [note("Gone.", 1)])
        memory.record_decision(S, OBSERVE, "due")
        raise RuntimeError
    assert memory.decisions(S) == [] and memory.notes(S) == []
    with transaction(memory.connection):
        memory.commit_stretch(call(0, 1), -1, 0, 1, "a", [note("Kept.", 1)])
        memory.record_decision(S, OBSERVE, "due")
    assert len(memory.decisions(S)) == len(memory.notes(S)) == 1
