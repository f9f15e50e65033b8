"""Forks: what was copied is an alias of the parent's and never observed again; the child remembers what its parent
knew at the fork point, and nothing of what the parent does later reaches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.core.ids import content_id
from obsmem.core.model import Reflection
from obsmem.core.tokens import estimate
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import seq_of
from obsmem.store.memory import WorkerCall
from obsmem.tasks.observe import run_passes
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store, open_store
from tests.tasks.talk import FORK, SESSION, active_texts, entries, fresh, opened, session_of, turns, utc, watch


def texts(store: Store, stored: StoredSession) -> list[str]:
    return [note.text for note in remember(store, fresh(store, stored)).notes]


def test_copied_records_are_aliases_never_observed_again(tmp_path: Path) -> None:
    parent = turns(3)
    child = parent.fork()
    child.turn(9)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
        daughter = session_of(store, child.write(tmp_path))
        rows = list(store.archive.entries(daughter.no))
        assert [row.copied for row in rows] == [True] * 12 + [False] * 4
        assert [seq_of(row.alias or 0) for row in rows[:12]] == [(mother.no, seq) for seq in range(12)]
        assert daughter.session.parent == (mother.session.handle, 11)
        done = watch(store, daughter)
        assert done.notes == 3
        observed = {int(name.split(".")[1]) for one in store.memory.notes(daughter.session.handle)
                    for name in one.note.entry_ids}  # fmt: skip
        assert min(observed) == 12
        assert len(texts(store, daughter)) == 12
        assert active_texts(store, daughter)[:12] == active_texts(store, mother)


def test_a_fork_from_the_middle_has_the_notes_up_to_there_whatever_stretch_they_came_from(tmp_path: Path) -> None:
    parent = turns(2)
    child = parent.fork()
    parent.turn(2)
    child.turn(9)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)  # one stretch over all three turns
        assert len(store.memory.stretches(mother.session.handle)) == 1
        daughter = session_of(store, child.write(tmp_path))
        watch(store, daughter)
        assert daughter.session.parent == (mother.session.handle, 7)
        seen = texts(store, daughter)
        assert any("number_0" in text for text in seen)
        assert any("number_1" in text for text in seen)
        assert not any("number_2" in text for text in seen)
        assert any("number_9" in text for text in seen)
        assert not any("number_9" in text for text in texts(store, mother))


def test_what_the_parent_reflects_or_drops_later_does_not_touch_the_child(tmp_path: Path) -> None:
    parent = turns(2)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
        daughter = session_of(store, parent.fork().write(tmp_path))
        before = texts(store, daughter)
        handle = mother.session.handle
        parent.turn(5)
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
        notes = [one.note for one in store.memory.notes(handle)]
        ids = tuple(note.id for note in notes[:3])
        later = Reflection(content_id("All is well.", ids), "All is well.", ids, estimate("All is well."))
        call = WorkerCall(handle, "reflect", "scripted", 1, 0, mother.last_seq, "ok")
        store.memory.commit_reflections(call, [later], mother.last_seq)
        store.memory.commit_drops(call._replace(task="drop"), ids, "test", mother.last_seq)
        assert not set(ids) & {note.id for note in remember(store, mother).notes}
        assert [one.text for one in remember(store, mother).reflections] == ["All is well."]
        assert texts(store, daughter) == before
        assert remember(store, daughter).reflections == ()


def test_a_parent_that_rewinds_takes_nothing_from_its_child(tmp_path: Path) -> None:
    parent = turns(3)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
        daughter = session_of(store, parent.fork().write(tmp_path))
        before = texts(store, daughter)
        parent.head = parent.records[3]["uuid"]
        parent.turn(6)
        session_of(store, parent.write(tmp_path))
        assert not any("number_2" in text for text in texts(store, mother))
        assert texts(store, daughter) == before


def test_a_child_that_rewinds_into_its_copied_history_no_longer_sees_the_notes_on_it(tmp_path: Path) -> None:
    parent = turns(3)
    child = parent.fork()
    child.turn(8)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
        daughter = session_of(store, child.write(tmp_path))
        child.head = child.records[3]["uuid"]
        child.turn(9)
        session_of(store, child.write(tmp_path))
        watch(store, fresh(store, daughter))
        seen = texts(store, daughter)
        assert any("number_0" in text for text in seen)
        assert not any("number_2" in text or "number_8" in text for text in seen)
        assert any("number_9" in text for text in seen)
        assert any("number_2" in text for text in texts(store, mother))


def test_the_order_in_which_a_family_is_read_changes_nothing_that_is_remembered(tmp_path: Path) -> None:
    parent = turns(2)
    child = parent.fork()
    child.turn(9)
    parent.turn(2)
    paths = {"mother": parent.write(tmp_path), "daughter": child.write(tmp_path)}
    seen = {}
    for order in (["mother", "daughter"], ["daughter", "mother"]):
        with open_store(str(tmp_path / order[0])) as store:
            family = {name: session_of(store, paths[name]) for name in order}
            for name in order:
                watch(store, family[name])
            for name in order:
                family[name] = session_of(store, paths[name])
            ids = [one.note.id for s in family.values() for one in store.memory.notes(s.session.handle)]
            assert len(ids) == len(set(ids)) == 12
            seen[order[0]] = {name: sorted(texts(store, family[name])) for name in order}
    assert seen["mother"] == seen["daughter"]
    assert len(seen["mother"]["daughter"]) == 9


def test_a_fork_of_a_fork_remembers_all_its_ancestors(tmp_path: Path) -> None:
    first = turns(1)
    second = first.fork()
    second.turn(2)
    third = second.fork("5e551011-0000-4000-8000-0000000000f3")
    third.turn(3)
    with opened() as store:
        family = [session_of(store, one.write(tmp_path)) for one in (first, second, third)]
        for stored in family:
            watch(store, stored)
        assert [len(texts(store, stored)) for stored in family] == [3, 6, 9]
        assert sum(len(store.memory.notes(stored.session.handle)) for stored in family) == 9


def test_a_copy_that_is_read_while_it_is_being_written_is_still_a_copy(tmp_path: Path) -> None:
    parent = turns(3)
    child = parent.fork()
    child.turn(9)
    lines = child.lines()
    path = tmp_path / f"{FORK}.jsonl"
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
        for end in (2, 5, 11, len(lines)):
            path.write_bytes(b"".join(lines[:end]))
            daughter = session_of(store, path)
        assert [row.copied for row in store.archive.entries(daughter.no)] == [True] * 12 + [False] * 4
        assert daughter.session.parent == (mother.session.handle, 11)
        assert watch(store, daughter).notes == 3


def test_passes_over_parent_and_child_in_turn_store_each_note_once(tmp_path: Path) -> None:
    parent = turns(2)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        child = parent.fork()
        daughter = session_of(store, child.write(tmp_path))
        for number in range(3, 6):
            parent.turn(number)
            child.turn(number + 10)
            for stored, conversation in ((mother, parent), (daughter, child)):
                session_of(store, conversation.write(tmp_path))
                run_passes(store, fresh(store, stored), utc, drain=True)
        cited = [
            name
            for stored in (mother, daughter)
            for one in store.memory.notes(stored.session.handle)
            if one.note.text.startswith("User")
            for name in one.note.entry_ids
        ]
        assert len(cited) == len(set(cited)) == 8


def test_recall_of_a_note_finds_its_words_after_parent_and_child_are_gone_from_disk(tmp_path: Path) -> None:
    parent = turns(1)
    paths = [parent.write(tmp_path), parent.fork().write(tmp_path)]
    with opened() as store:
        mother = session_of(store, paths[0])
        watch(store, mother)
        daughter = session_of(store, paths[1])
        for path in paths:
            path.unlink()
        for note in remember(store, daughter).notes:
            assert find(store, note.id).status == "ok"
        assert [one.text for one in entries(store, daughter)] == [one.text for one in entries(store, mother)]


@pytest.mark.parametrize("count", [1, 2])
def test_an_empty_or_unrelated_session_has_no_parent(count: int, tmp_path: Path) -> None:
    with opened() as store:
        session_of(store, turns(1, SESSION).write(tmp_path))
        other = session_of(store, turns(count, FORK).write(tmp_path))
        assert other.session.parent is None
