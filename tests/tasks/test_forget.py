"""Forgetting removes the bytes from every file of the store and keeps them out; retention removes raw bytes only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound
from obsmem.store.archive import StoredSession
from obsmem.system.paths import data_home
from obsmem.tasks.cards import cards_of
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.forget import DAY, apply_retention, forget_entry, forget_session, undo_forget
from obsmem.tasks.fsck import check
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store
from obsmem.tasks.words import index_words
from tests.tasks.talk import (
    CLAUDE,
    SESSION,
    Talk,
    entries,
    fresh,
    opened,
    raw_files,
    session_of,
    take,
    turns,
    utc,
    watch,
)

PLANTED = "xylophoneplanted77"


def planted(session: str = SESSION) -> Talk:
    """A conversation of three turns; the second has the planted word in an order, a command and its output."""
    conversation = Talk(session)
    conversation.turn(0)
    conversation.user(f"Never call {PLANTED} from src/{PLANTED}.py, always ask first.")
    conversation.run(f"grep {PLANTED} src", f"src/a.py: import {PLANTED}", failed=True)
    conversation.agent(f"Decided to keep {PLANTED} out because it breaks the build.")
    conversation.turn(2)
    return conversation


def full(store: Store, path: Path) -> StoredSession:
    """A session with everything that is ever derived from one: notes, cards, full text, block, backup."""
    stored = session_of(store, path)
    watch(store, stored)
    index_words(store, fresh(store, stored))
    leave_block(store, fresh(store, stored), utc)
    store.memory.back_up(os.path.join(store.home, "backups"))
    return fresh(store, stored)


def holding(word: str = PLANTED) -> list[str]:
    """The files of the store in which a word stands, also inside compressed segments."""
    found = [path for path, data in raw_files().items() if word.encode() in data]
    with opened() as store:
        for (number,) in store.archive.connection.execute("SELECT no FROM segments WHERE length(data)>0").fetchall():
            if word.encode() in store.archive.segment(number):
                found.append(f"segment {number}")
    return found


def test_the_planted_word_is_found_before_it_is_forgotten(tmp_path: Path) -> None:
    with opened() as store:
        full(store, planted().write(tmp_path))
    names = {os.path.basename(path).split(".")[0].split("-")[0].split(" ")[0] for path in holding()}
    assert {"memory", "index", "block", "segment"} <= names


def test_a_forgotten_session_leaves_no_byte_anywhere(tmp_path: Path) -> None:
    path = planted().write(tmp_path)
    other = turns(2, "5e551011-0000-4000-8000-0000000000d4").write(tmp_path)
    with opened() as store:
        stored = full(store, path)
        kept = full(store, other)
        before = [one.text for one in entries(store, kept)]
        result = forget_session(store, stored)
        assert (result.entries, result.bytes) == (12, path.stat().st_size)
        assert result.notes > 3
        assert [name for name in raw_files() if PLANTED.encode() in raw_files()[name]] == []
        assert [one.text for one in entries(store, fresh(store, kept))] == before
        assert remember(store, kept).notes
        assert cards_of(store, kept)
        with pytest.raises(NotFound):
            store.archive.by_handle(stored.session.handle)
    assert holding() == []
    assert len(os.listdir(os.path.join(data_home(), "backups"))) == 1


def test_what_lies_under_the_path_of_an_earlier_reading_goes_too(tmp_path: Path) -> None:
    conversation = planted()
    first = conversation.write(tmp_path / "a")
    with opened() as store:
        full(store, first)
        first.unlink()
        stored = full(store, conversation.write(tmp_path / "b"))
        assert len([name for name in raw_files() if name.endswith("block.next")]) == 2
        forget_session(store, stored)
    assert holding() == []


def test_a_tombstone_keeps_it_out_until_it_is_undone_and_its_handle_is_never_given_again(tmp_path: Path) -> None:
    path = planted().write(tmp_path)
    with opened() as store:
        stored = full(store, path)
        forget_session(store, stored)
        result = take(store, path)
        assert (result.stored, result.reason) == (None, "forgotten")
        assert holding() == []
        assert undo_forget(store, CLAUDE, SESSION)
        assert not undo_forget(store, CLAUDE, SESSION)
        again = session_of(store, path)
        assert again.session.handle != stored.session.handle
        assert again.last_seq == 11
        assert watch(store, again).notes > 0
        assert check(store) == []


def test_the_tombstone_says_nothing_of_what_was_forgotten(tmp_path: Path) -> None:
    with opened() as store:
        forget_session(store, full(store, planted().write(tmp_path)))
        stones = str(store.archive.connection.execute("SELECT * FROM tombstones").fetchall())
        assert SESSION not in stones
        assert PLANTED not in stones


def test_a_forgotten_parent_leaves_its_fork_standing_alone_without_its_words(tmp_path: Path) -> None:
    parent = planted()
    child = parent.fork()
    child.turn(9)
    with opened() as store:
        mother = full(store, parent.write(tmp_path))
        daughter = full(store, child.write(tmp_path))
        forget_session(store, mother)
        daughter = fresh(store, daughter)
        assert daughter.session.parent is None
        assert len(entries(store, daughter)) == 16  # its own copy is its own session: forget it too if it should go
        assert all("number_9" in note.text or "test_9" in note.text for note in remember(store, daughter).notes)
        assert [name for name in raw_files() if "block" in os.path.basename(name)] == []
        assert check(store) == []


def seqs_with(store: Store, stored: StoredSession, word: str = PLANTED) -> list[int]:
    return [one.seq for one in entries(store, stored) if word in one.text]


def test_a_forgotten_entry_leaves_no_byte_and_everything_else_in_place(tmp_path: Path) -> None:
    conversation = planted()
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = full(store, path)
        handle = stored.session.handle
        others = {one.seq: one.text for one in entries(store, stored) if PLANTED not in one.text}
        planted_at = seqs_with(store, stored)
        assert planted_at == [4, 5, 6, 7]
        for seq in planted_at:
            forget_entry(store, f"{handle}.{seq}")
        assert {one.seq: one.text for one in entries(store, stored)} == others
        assert [name for name in raw_files() if PLANTED.encode() in raw_files()[name]] == []
        assert not any(PLANTED in note.text for note in remember(store, stored).notes)
        assert len(remember(store, stored).notes) >= 6
        assert PLANTED not in str(cards_of(store, fresh(store, stored)))
        with pytest.raises(NotFound):
            find(store, f"{handle}.4")
        for row in store.archive.entries(stored.no):
            place = store.archive.place(row)
            assert path.read_bytes()[place.offset : place.offset + place.length] == store.archive.record(row)
        assert check(store) == []
        conversation.turn(3)
        conversation.write(tmp_path)
        session_of(store, path)
        assert seqs_with(store, stored) == []
    assert holding() == []


def test_a_forgotten_entry_does_not_come_back_with_a_rewritten_or_copied_file(tmp_path: Path) -> None:
    conversation = planted()
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = full(store, path)
        # The record was archived twice already: the file was rewritten once before.
        path.write_bytes(b"\n" + path.read_bytes())
        stored = session_of(store, path)
        for seq in seqs_with(store, stored):
            forget_entry(store, f"{stored.session.handle}.{seq}")
        path.write_bytes(b"\n\n" + b"".join(conversation.lines()))
        session_of(store, path)
        session_of(store, conversation.write(tmp_path / "elsewhere"))
    assert holding() == []


def test_a_forgotten_entry_is_forgotten_in_forks_before_and_after(tmp_path: Path) -> None:
    parent = planted()
    with opened() as store:
        mother = full(store, parent.write(tmp_path))
        early = full(store, parent.fork().write(tmp_path))
        for seq in seqs_with(store, mother):
            forget_entry(store, f"{mother.session.handle}.{seq}")
        late = full(store, parent.fork("5e551011-0000-4000-8000-0000000000f5").write(tmp_path))
        assert seqs_with(store, early) == seqs_with(store, late) == []
        assert late.session.parent is not None
    assert holding() == []


def test_a_side_file_goes_with_the_entry_that_names_it(tmp_path: Path) -> None:
    path, _ = with_side_file(tmp_path)
    with opened() as store:
        stored = full(store, path)
        (seq,) = [one.seq for one in entries(store, stored) if PLANTED in one.text]
        forget_entry(store, f"{stored.session.handle}.{seq}")
    assert holding() == []


def with_side_file(tmp_path: Path) -> tuple[Path, Path]:
    """A transcript with a tool output that was too long for it, and the file that holds the output."""
    side = tmp_path / "p" / SESSION / "tool-results" / "toolu_1.txt"
    side.parent.mkdir(parents=True)
    side.write_text("".join(f"line {n}\n" for n in range(9000)) + PLANTED + "\n", encoding="utf-8")
    conversation = Talk()
    conversation.user("Run the long thing.")
    conversation.run(
        "make everything",
        f"<persisted-output>\nOutput too large (80KB). Full output saved to: {side}\n\n"
        "Preview (first 2KB):\nline 0\nline 1\n...\n</persisted-output>",
    )
    conversation.agent("Done with the long thing: everything was made.")
    return conversation.write(tmp_path / "p"), side


# --- retention


def aged(store: Store, stored: StoredSession, days: int) -> int:
    """A time by which the session has not grown for so many days."""
    return fresh(store, stored).updated_at + days * DAY + 1


def two_segments(tmp_path: Path) -> Path:
    """A conversation in two segments; only entries of the first are cited."""
    conversation = turns(2)
    conversation.run("cat big", "x " * 40_000)
    for _ in range(3):
        conversation.run("ls", "y " * 40_000)
    return conversation.write(tmp_path)


@pytest.mark.parametrize("keep", ["cited", "nothing"])
def test_retention_removes_bytes_of_idle_sessions_and_says_so_on_recall(keep: str, tmp_path: Path) -> None:
    path = two_segments(tmp_path)
    with opened(retention_days=30, retention_keep=keep) as store:
        stored = session_of(store, path)
        watch(store, stored)
        handle = stored.session.handle
        notes = store.memory.notes(handle)
        cited = {name for one in notes for name in one.note.entry_ids}
        assert apply_retention(store, aged(store, stored, 30) - 2) == 0
        removed = apply_retention(store, aged(store, stored, 30))
        assert removed > 0
        assert (removed == path.stat().st_size) == (keep == "nothing")
        for one in notes:
            assert find(store, one.note.id).status == ("ok" if keep == "cited" else "source_unavailable")
        answer = find(store, f"{handle}.{stored.last_seq}")
        if f"{handle}.{stored.last_seq}" not in cited:
            assert "removed by retention" in answer.sources[0].missing
        assert store.memory.notes(handle) == notes
        assert check(store) == []


def test_without_retention_nothing_is_ever_removed(tmp_path: Path) -> None:
    with opened() as store:
        stored = full(store, two_segments(tmp_path))
        assert apply_retention(store, aged(store, stored, 10_000)) == 0


def test_a_session_whose_bytes_are_gone_can_still_be_shown_indexed_and_gone_on_with(tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened(retention_days=1, retention_keep="nothing") as store:
        stored = full(store, path)
        apply_retention(store, aged(store, stored, 1))
        store.rebuild_index()
        assert index_words(store, fresh(store, stored)) == 0
        leave_block(store, fresh(store, stored), utc)
        conversation.turn(7)
        conversation.write(tmp_path)
        stored = session_of(store, path)
        assert watch(store, stored).notes == 3
        assert "number_7" in str(cards_of(store, stored))


def test_what_was_never_observed_and_is_gone_becomes_a_gap_with_the_reason(tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened(retention_days=1, retention_keep="nothing") as store:
        stored = session_of(store, path)
        apply_retention(store, aged(store, stored, 1))
        conversation.turn(7)
        conversation.write(tmp_path)
        stored = session_of(store, path)
        done = watch(store, stored)
        assert (done.gaps, done.notes) == (1, 3)
        (gap,) = store.memory.gaps(stored.session.handle)
        assert (gap.first_seq, gap.last_seq) == (0, 11)
        assert "retention" in gap.reason


def test_a_cited_output_keeps_its_side_file(tmp_path: Path) -> None:
    path, side = with_side_file(tmp_path)
    with opened(retention_days=1) as store:
        stored = session_of(store, path)
        watch(store, stored)
        name = next(f"{stored.session.handle}.{one.seq}" for one in entries(store, stored) if PLANTED in one.text)
        cited = any(name in one.note.entry_ids for one in store.memory.notes(stored.session.handle))
        apply_retention(store, aged(store, stored, 1))
        side.unlink()
        (source,) = find(store, name).sources
        assert cited
        assert source.entry is not None
        assert PLANTED in source.entry.text


# --- side files


def test_a_side_file_is_archived_and_its_whole_text_returned_after_it_is_gone(tmp_path: Path) -> None:
    path, side = with_side_file(tmp_path)
    text = side.read_text(encoding="utf-8")
    with opened() as store:
        stored = session_of(store, path)
        side.unlink()
        path.unlink()
        result = next(one for one in entries(store, stored) if one.kind == "tool_result")
        assert result.text.endswith(text)
        sources = store.archive.sources(stored.no)
        assert [row.kind for row in sources] == ["file", "side"]
        assert b"".join(store.archive.bytes_of(sources[1].no)) == text.encode()


def test_a_side_file_that_was_gone_before_costs_nothing_but_itself(tmp_path: Path) -> None:
    path, side = with_side_file(tmp_path)
    side.unlink()
    with opened() as store:
        stored = session_of(store, path)
        assert len(entries(store, stored)) == 4
        assert json.loads(store.archive.sources(stored.no)[0].skipped) == {}


def test_words_that_the_harness_wrote_down_twice_go_twice(tmp_path: Path) -> None:
    """A real session: each prompt stands once as it waited, once as it was sent."""
    words = "8080 is the carrier simulator on my machine"
    path = tmp_path / "session.jsonl"
    path.write_bytes((Path(__file__).resolve().parents[2] / "fixtures/demo/claude-code/session.jsonl").read_bytes())
    with opened() as store:
        stored = full(store, path)
        twins = [one for one in entries(store, stored) if words in one.text and one.speaker == "human"]
        assert [one.active for one in twins] == [False, True]
        forget_entry(store, f"{stored.session.handle}.{twins[1].seq}")
        assert not any(words in one.text and one.speaker == "human" for one in entries(store, stored))
        assert check(store) == []
