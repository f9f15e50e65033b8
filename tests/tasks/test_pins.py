"""Pins and notes by hand: where they show, what they cost, and what becomes of them when their words are forgotten."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.memory import recall
from obsmem.store.archive import StoredSession
from obsmem.store.memory_schema import MIGRATIONS
from obsmem.store.schema import open_database
from obsmem.system import blockfile
from obsmem.system.blockfile import NEXT
from obsmem.tasks.deliver import leave_block, make_block
from obsmem.tasks.forget import forget_entry, forget_session
from obsmem.tasks.here import Here
from obsmem.tasks.pins import pin, pins, unpin, write_note
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store
from tests.tasks.talk import Talk, fresh, opened, raw_files, session_of, turns, utc, watch

OTHER = "5e551011-0000-4000-8000-0000000000b7"
KEY = "AKIAIOSFODNN7EXAMPLE"


def here(stored: StoredSession) -> Here:
    return Here(stored.session.cwd, stored.session.workspace, stored)


def shown(store: Store, stored: StoredSession) -> str:
    return "\n".join(make_block(store, fresh(store, stored), utc).parts)


def waiting(store: Store, stored: StoredSession) -> str:
    """The block that waits for the session's next delivery."""
    return "\n".join(blockfile.read(os.path.join(store.folder_of(stored), NEXT))[1])


def two(store: Store, folder: Path, cwd: str = "/w/shop") -> tuple[StoredSession, StoredSession]:
    one = session_of(store, turns(2).write(folder))
    talk = Talk(OTHER, cwd)
    talk.turn(7)
    return one, session_of(store, talk.write(folder))


@pytest.mark.parametrize(
    ("scope", "same", "other"), [("session", 0, 0), ("workspace", 1, 0), ("everywhere", 1, 1), ("", 0, 0)]
)
def test_a_pin_shows_as_far_as_its_scope_reaches(tmp_path: Path, scope: str, same: int, other: int) -> None:
    with opened() as store:
        one, neighbour = two(store, tmp_path)
        talk = Talk("5e551011-0000-4000-8000-0000000000b8", "/w/elsewhere")
        talk.turn(1)
        far = session_of(store, talk.write(tmp_path))
        made = pin(store, "ship on Friday", scope, here(one))
        counts = [shown(store, stored).count("- ship on Friday") for stored in (one, neighbour, far)]
        assert counts == [1, same, other] and made.scope == (scope or "session")
        assert [len(pins(store, here(stored))) for stored in (one, neighbour, far)] == counts
        assert pin(store, "ship on Friday", scope, here(one)) == made and len(store.memory.all_pins()) == 1


def test_pins_come_right_behind_the_instructions_and_without_secrets(tmp_path: Path) -> None:
    with opened() as store:
        one, _ = two(store, tmp_path)
        pin(store, f"deploy with {KEY}\nand never by hand", "session", here(one))
        words = shown(store, one)
        assert words.split("\n## ")[2].startswith("Pins\n- deploy with ") and "\n## Now" in words
        assert KEY not in words and "and never by hand" in words
    assert not any(KEY.encode() in data for name, data in raw_files().items() if "memory.db" in name)


def test_outside_of_a_session_a_pin_is_for_the_workspace_and_one_for_a_session_is_refused(tmp_path: Path) -> None:
    with opened() as store:
        one, _ = two(store, tmp_path)
        nobody = Here("/w/shop", one.session.workspace)
        assert pin(store, "ship on Friday", "", nobody).scope == "workspace"
        with pytest.raises(UsageError, match="--session"):
            pin(store, "ship on Monday", "session", nobody)
        with pytest.raises(UsageError, match="session, workspace, everywhere"):
            pin(store, "ship on Monday", "galaxy", nobody)
        with pytest.raises(UsageError):
            pin(store, " \n", "", nobody)


def test_an_entry_and_a_note_are_pinned_by_their_words_and_lead_back_to_them(tmp_path: Path) -> None:
    with opened() as store:
        one, _ = two(store, tmp_path)
        watch(store, one)
        handle = one.session.handle
        result = next(n for n in range(one.last_seq) if "passed" in find(store, f"{handle}.{n}").sources[0].entry.text)  # type: ignore[union-attr]
        said = pin(store, f"[{handle}.{result}]", "", here(one))
        assert (said.source, said.evidence) == (f"{handle}.{result}", "tool")
        assert f"(t, {handle}.{result})" in shown(store, one)
        note = store.memory.notes(handle)[0].note
        noted = pin(store, note.id[:7], "", here(one))
        assert (noted.text, noted.source) == (note.text, note.id)
        typed = pin(store, "the whole of it", "", here(one))
        for made, words in ((said, "passed"), (noted, note.text), (typed, "the whole of it")):
            assert words in recall.render(find(store, made.id))
        with pytest.raises(NotFound, match="--text"):
            pin(store, "zzzz.1", "", here(one))
        with pytest.raises(NotFound, match="--text"):
            pin(store, "deadbeef", "", here(one))
        assert pin(store, "deadbeef", "", here(one), literal=True).text == "deadbeef"


def test_the_block_that_waits_has_the_pin_at_once_and_loses_it_at_once(tmp_path: Path) -> None:
    with opened() as store:
        one, neighbour = two(store, tmp_path)
        for stored in (one, neighbour):
            leave_block(store, stored, utc)
        made = pin(store, "ship on Friday", "workspace", here(one))
        assert all("ship on Friday" in waiting(store, stored) for stored in (one, neighbour))
        assert unpin(store, made.id[:6], here(neighbour)) == made
        assert not any("ship on Friday" in waiting(store, stored) for stored in (one, neighbour))
        with pytest.raises(NotFound):
            unpin(store, made.id, here(one))


def test_nobody_takes_away_what_he_cannot_see_unless_the_user_does(tmp_path: Path) -> None:
    with opened() as store:
        one, neighbour = two(store, tmp_path)
        made = pin(store, "ship on Friday", "session", here(one))
        with pytest.raises(NotFound):
            unpin(store, made.id, here(neighbour))
        assert unpin(store, made.id, here(neighbour), anywhere=True) == made


def test_a_fork_has_the_pins_of_its_parent_but_not_those_made_afterwards(tmp_path: Path) -> None:
    with opened() as store:
        parent_talk = turns(2)
        parent = session_of(store, parent_talk.write(tmp_path))
        pin(store, "before the fork", "session", here(parent))
        store.memory.connection.execute("UPDATE pins SET at=1")  # the transcript is of another day than the test
        child_talk = parent_talk.fork()
        child_talk.turn(9)
        child = session_of(store, child_talk.write(tmp_path))
        assert child.session.parent is not None
        pin(store, "after the fork", "session", here(parent))
        assert [one.text for one in pins(store, here(child))] == ["before the fork"]
        assert "- before the fork" in shown(store, child)


@pytest.mark.parametrize("whole", [True, False])
def test_forgotten_words_are_in_no_pin_and_in_no_block_that_waits(tmp_path: Path, whole: bool) -> None:
    with opened() as store:
        one, neighbour = two(store, tmp_path)
        watch(store, one)
        handle = one.session.handle
        entry = pin(store, f"{handle}.0", "everywhere", here(neighbour))
        cited = next(one.note for one in store.memory.notes(handle) if f"{handle}.0" in one.note.entry_ids)
        pin(store, cited.id, "workspace", here(neighbour))
        typed = pin(store, "ship on Friday", "workspace", here(one))
        write_note(store, "as it was said there", here(neighbour), [f"{handle}.0"])
        leave_block(store, neighbour, utc)
        assert entry.text in waiting(store, neighbour) and "as it was said there" in waiting(store, neighbour)
        forget_session(store, one) if whole else forget_entry(store, f"{handle}.0")
        assert [one.pin for one in store.memory.all_pins()] == [typed]
        assert not store.memory.find_notes(cited.id) and "as it was said there" not in shown(store, neighbour)
    assert not any(b"number_0 import cleanly" in data for name, data in raw_files().items() if "archive" not in name)


def test_a_note_by_hand_stands_on_the_newest_words_of_the_user_and_moves_no_coverage(tmp_path: Path) -> None:
    talk = turns(2)
    path = talk.write(tmp_path)
    with opened() as store:
        one = session_of(store, path)
        covered = store.memory.covered_to(one.session.handle)
        talk.user("Use port 8091 from now on.")
        talk.write(tmp_path)  # not read yet
        note = write_note(store, f"Port 8091 is ours,\nkey {KEY}", here(one))
        (cited,) = find(store, note.id).sources
        assert cited.entry is not None and cited.entry.text == "Use port 8091 from now on."
        assert (note.evidence, note.relevance) == ("user", "high") and "\n" not in note.text and KEY not in note.text
        assert store.memory.covered_to(one.session.handle) == covered
        (call,) = store.memory.calls(one.session.handle, "note")
        assert (call.worker, call.outcome, call.items) == ("hand", "ok", 1)
        assert note.id in {one.id for one in remember(store, fresh(store, one)).notes}


def test_a_note_that_its_entries_do_not_bear_is_marked_and_one_may_cite_another_session(tmp_path: Path) -> None:
    with opened() as store:
        one, neighbour = two(store, tmp_path)
        note = write_note(store, "Port 9999 is ours", here(one), [f"{neighbour.session.handle}.0"], "critical")
        assert note.grounding == "none" and note.missing == ("9999",)
        assert "critical u? Port 9999 is ours" in shown(store, one) and "Port 9999" not in shown(store, neighbour)


def test_a_note_that_nothing_can_bear_says_why_and_what_to_do(tmp_path: Path) -> None:
    with opened() as store:
        with pytest.raises(NotFound, match="pin"):
            write_note(store, "words", Here("/w/nowhere", "/w/nowhere"))
        talk = Talk()
        talk.agent("Nobody asked me anything.")
        silent = session_of(store, talk.write(tmp_path))
        with pytest.raises(NotFound, match="--cite"):
            write_note(store, "words", here(silent))
        with pytest.raises(NotFound):
            write_note(store, "words", here(silent), [f"{silent.session.handle}.99"])
        with pytest.raises(UsageError):
            write_note(store, "words", here(silent), relevance="huge")  # type: ignore[arg-type]


def test_pins_of_an_older_store_are_read_even_where_nothing_may_be_written(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    open_database(path, MIGRATIONS[:2], journal="TRUNCATE").close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO pins VALUES('aaaabbbbcccc','shop','/w','words','everywhere',5)")
    from obsmem.store.memory import MemoryStore

    for readonly in (True, False, True):
        store = MemoryStore(path, readonly=readonly)
        (found,) = store.pins("none", "/x")
        assert (found.text, found.source, found.evidence) == ("words", "", "user")
        store.close()
