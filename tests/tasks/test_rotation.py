"""A marked session hands over once, as it is after its last turn, and its successor remembers it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.ids import entry_id
from obsmem.core.tokens import estimate
from obsmem.interfaces.arguments_windows import STYLES as CHOICES
from obsmem.memory.handoff import STYLES
from obsmem.store.archive import StoredSession
from obsmem.system import blockfile, handoff_file
from obsmem.system.blockfile import CURRENT
from obsmem.system.handoff_file import EXPIRES_SECONDS, handoff_path, renew_handoff, take_handoff, waits
from obsmem.tasks.forget import forget_entry, forget_session
from obsmem.tasks.handoff import make_handoff
from obsmem.tasks.remember import remember
from obsmem.tasks.rotation import (
    LEAST_TURNS,
    Chain,
    cancel_rotation,
    chains,
    lineage,
    link_rotation,
    renew_rotation,
    rotate,
)
from obsmem.tasks.store import Store
from tests.tasks.talk import FORK, SESSION, Talk, entries, fresh, opened, raw_files, session_of, turns, utc, watch

LAST = "Now rename the column to tracking_ref, and only that."


def talked(store: Store, folder: Path, count: int = 6) -> StoredSession:
    talk = turns(count)
    talk.compact()
    talk.user(LAST)
    stored = session_of(store, talk.write(folder))
    watch(store, stored)
    return fresh(store, stored)


def path_of(store: Store, stored: StoredSession) -> str:
    return handoff_path(store.home, stored.session.harness, stored.session.workspace)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("budget", [600, 2_000, 8_000])
def test_a_handoff_says_what_to_go_on_with_within_its_budget(style: str, budget: int, tmp_path: Path) -> None:
    with opened() as store:
        stored = talked(store, tmp_path)
        text = make_handoff(store, stored, style, utc, budget=budget)
        assert estimate(text) <= budget
        assert LAST in text and "WORK IS IN PROGRESS" in text
        assert "This session is being continued" not in text, "nothing of the harness's summary"
        assert ("## Turns" in text) == (style == "cards")
        assert ("## Notes" in text) == (style == "notes")
        if style in ("anchor", "pointer"):
            assert "## Files" not in text and "## Commands" not in text


def test_the_choices_of_the_command_are_the_styles() -> None:
    assert CHOICES == STYLES


def test_one_session_takes_it(tmp_path: Path) -> None:
    with opened() as store:
        stored = talked(store, tmp_path)
        mark = rotate(store, stored, "notes", utc)
        path = path_of(store, stored)
        folders = [str(tmp_path / f"start-{number}") for number in range(16)]
        with ThreadPoolExecutor(16) as pool:
            taken = list(pool.map(lambda folder: take_handoff(path, folder), folders))
        assert taken.count(True) == 1
        delivery, parts = blockfile.read(os.path.join(folders[taken.index(True)], CURRENT))
        assert LAST in "".join(parts)
        assert store.memory.rotation_of_delivery(delivery) == store.memory.waiting_rotation(stored.session.handle)
        renew_rotation(store, stored, utc)
        assert store.memory.waiting_rotation(stored.session.handle) is None and not os.path.exists(path)
        assert mark.session == stored.session.handle


def test_it_is_as_new_as_the_last_turn(tmp_path: Path) -> None:
    talk = turns(6)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        rotate(store, stored, "anchor", utc)
        path = path_of(store, stored)
        os.utime(path, (os.stat(path).st_atime, os.stat(path).st_mtime - 3_600))
        began = os.stat(path).st_mtime
        talk.user(LAST)
        session_of(store, talk.write(tmp_path))
        renew_rotation(store, fresh(store, stored), utc)
        assert LAST in "".join(blockfile.read(path)[1])
        assert os.stat(path).st_mtime == began, "its age counts from the mark"
        rotate(store, fresh(store, stored), "anchor", utc)
        assert len(store.memory.waiting_rotation(stored.session.handle).deliveries) == 2  # type: ignore[union-attr]


def test_what_was_taken_is_not_put_there_again(tmp_path: Path) -> None:
    path = str(tmp_path / "handoffs" / "x")
    assert not renew_handoff_of(path), "none waits"
    handoff_file.leave_handoff(path, "first", ("one",))
    assert renew_handoff_of(path) and blockfile.read(path) == ("newer", ["two"])
    assert take_handoff(path, str(tmp_path / "a"))
    assert not renew_handoff_of(path) and not waits(path)
    assert not take_handoff(path, str(tmp_path / "b"))


def renew_handoff_of(path: str) -> bool:
    Path(path).parent.mkdir(exist_ok=True)
    return renew_handoff(path, "newer", ("two",))


def test_one_whose_renewal_died_is_taken_all_the_same(tmp_path: Path) -> None:
    path = str(tmp_path / "handoffs" / "x")
    handoff_file.leave_handoff(path, "first", ("one",))
    os.replace(path, path + ".old")  # as far as a renewal came
    assert waits(path) and take_handoff(path, str(tmp_path / "a"))
    assert blockfile.read(str(tmp_path / "a" / CURRENT)) == ("first", ["one"])


def test_a_mark_that_nobody_came_for_ends(tmp_path: Path) -> None:
    with opened() as store:
        stored = talked(store, tmp_path)
        mark = rotate(store, stored, "notes", utc)
        path = path_of(store, stored)
        old = os.stat(path).st_mtime - EXPIRES_SECONDS - 60
        os.utime(path, (old, old))
        assert not waits(path) and not take_handoff(path, str(tmp_path / "late"))
        renew_rotation(store, stored, utc)
        assert store.memory.waiting_rotation(stored.session.handle) is None
        ended = store.memory.rotation_of_delivery(mark.deliveries[0])
        assert ended is not None and (ended.state, ended.successor) == ("expired", "")
        assert not os.path.exists(path)


def test_it_can_be_taken_back(tmp_path: Path) -> None:
    with opened() as store:
        stored = talked(store, tmp_path)
        rotate(store, stored, "notes", utc)
        cancel_rotation(store, stored)
        assert not waits(path_of(store, stored))
        with pytest.raises(NotFound):
            cancel_rotation(store, stored)


def test_of_two_marks_in_a_workspace_the_last_one_counts(tmp_path: Path) -> None:
    with opened() as store:
        first = talked(store, tmp_path)
        second = session_of(store, turns(6, FORK).write(tmp_path, f"{FORK}.jsonl"))
        rotate(store, first, "anchor", utc)
        mark = rotate(store, second, "anchor", utc)
        assert store.memory.waiting_rotation(first.session.handle) is None
        with pytest.raises(NotFound):
            cancel_rotation(store, first)
        renew_rotation(store, first, utc)
        assert blockfile.read(path_of(store, second))[0] == mark.deliveries[-1]


def test_a_young_session_is_refused(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(2).write(tmp_path))
        with pytest.raises(UsageError, match="--force"):
            rotate(store, stored, "notes", utc)
        assert rotate(store, stored, "notes", utc, force=True).session == stored.session.handle


def go_on(talk: Talk, store: Store, folder: Path, count: int) -> StoredSession:
    """So many more turns of a session, said now."""
    first = len(talk.records)
    for number in range(count):
        talk.turn(number)
    now = datetime.now(timezone.utc) + timedelta(seconds=2)
    for number, record in enumerate(talk.records[first:]):
        record["timestamp"] = (now + timedelta(milliseconds=number)).isoformat().replace("+00:00", "Z")
    return fresh(store, session_of(store, talk.write(folder, f"{talk.session}.jsonl")))


def test_only_turns_since_the_last_handoff_count(tmp_path: Path) -> None:
    talk = turns(6)
    with opened() as store:
        first = session_of(store, talk.write(tmp_path, f"{SESSION}.jsonl"))
        rotate(store, first, "anchor", utc)
        rotate(store, first, "anchor", utc)  # marked already, which its age does not matter for
        assert take_handoff(path_of(store, first), str(tmp_path / "successor"))
        for more in (0, LEAST_TURNS - 1):
            first = go_on(talk, store, tmp_path, more)
            with pytest.raises(UsageError, match=f"has {more} of the {LEAST_TURNS} turns since it last handed over"):
                rotate(store, first, "anchor", utc)
            assert store.memory.waiting_rotation(first.session.handle) is None and not waits(path_of(store, first))
        assert rotate(store, go_on(talk, store, tmp_path, 1), "anchor", utc).state == "waiting"


def test_turns_before_a_handoff_that_a_session_was_given_do_not_count(tmp_path: Path) -> None:
    with opened() as store:
        first = talked(store, tmp_path)
        delivery = rotate(store, first, "anchor", utc).deliveries[-1]
        second = session_of(store, turns(6, FORK).write(tmp_path, f"{FORK}.jsonl"))
        humans = [one for one in entries(store, second) if one.speaker == "human"]
        store.memory.record_receipt(second.session.handle, delivery, "1/1", humans[2].seq, humans[2].at)
        with pytest.raises(UsageError, match="has 3 of the 5 turns since"):
            rotate(store, second, "anchor", utc)


def test_chains_are_told_by_their_ends(tmp_path: Path) -> None:
    with opened() as store:
        assert chains(store) == []
        first = talked(store, tmp_path)
        rotate(store, first, "anchor", utc)
        assert chains(store) == [Chain(first.session.handle, (), 1, True)]
        second = session_of(store, turns(6, FORK).write(tmp_path, f"{FORK}.jsonl"))
        assert take_handoff(path_of(store, first), store.folder_of(second))
        link_rotation(store, second)
        assert chains(store) == [Chain(second.session.handle, (first.session.handle,), 2, False)]
        rotate(store, fresh(store, second), "anchor", utc)
        assert chains(store) == [Chain(second.session.handle, (first.session.handle,), 2, True)]


def test_the_successor_remembers_and_the_chain_is_known(tmp_path: Path) -> None:
    with opened() as store:
        first = talked(store, tmp_path)
        known = {note.id for note in remember(store, first).notes}
        rotate(store, first, "notes", utc)
        second = session_of(store, turns(6, FORK).write(tmp_path, f"{FORK}.jsonl"))
        assert not lineage(store, second.session.handle)
        assert take_handoff(path_of(store, first), store.folder_of(second))
        link_rotation(store, second)
        assert lineage(store, second.session.handle) == [first.session.handle]
        assert known and known <= {note.id for note in remember(store, second).notes}
        watch(store, second)
        own = {note.id for note in store.memory.notes(second.session.handle) for note in (note.note,)}
        assert own and own.isdisjoint(known), "nothing was copied"
        rotate(store, fresh(store, second), "notes", utc)
        third_id = SESSION.replace("a1", "c3")
        third = session_of(store, turns(1, third_id).write(tmp_path, f"{third_id}.jsonl"))
        take_handoff(path_of(store, second), store.folder_of(third))
        link_rotation(store, third)
        assert lineage(store, third.session.handle) == [second.session.handle, first.session.handle]


def test_what_is_forgotten_is_in_no_handoff(tmp_path: Path) -> None:
    with opened() as store:
        first = talked(store, tmp_path)
        rotate(store, first, "notes", utc)
        second = session_of(store, turns(6, FORK).write(tmp_path, f"{FORK}.jsonl"))
        assert take_handoff(path_of(store, first), store.folder_of(second))
        link_rotation(store, second)
        rotate(store, first, "notes", utc, force=True)
        (said,) = (one for one in entries(store, first) if one.text == LAST)
        assert any(LAST.encode() in data for data in raw_files(store.home).values())
        forget_entry(store, entry_id(first.session.handle, said.seq))
        assert not any(LAST.encode() in data for data in raw_files(store.home).values())
        assert store.memory.waiting_rotation(first.session.handle) is None
        forget_session(store, first)
        assert not lineage(store, second.session.handle) and remember(store, second).notes == ()
