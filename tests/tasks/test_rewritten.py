"""Files that are rewritten, cut, moved or rewound: nothing is noted twice, what vanished is off the live path, and
every entry stays recallable."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.store.archive import StoredSession
from obsmem.tasks.cards import cards_of
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from tests.harnesses.cases import FIXTURES
from tests.tasks.talk import Talk, active_texts, entries, fresh, opened, session_of, take, turns, watch


def rewrite(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(lines))


def note_texts(store: Store, stored: StoredSession) -> set[str]:
    return {note.text for note in remember(store, fresh(store, stored)).notes}


def middle_changed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:7], lines[7].replace(b"Fixed", b"Could not fix"), *lines[8:]]


def truncated(lines: list[bytes]) -> list[bytes]:
    return lines[:6]


def replaced_by_a_longer_one(lines: list[bytes]) -> list[bytes]:
    more = turns(6).lines()
    return [*lines[:4], *more[8:]]


def emptied(lines: list[bytes]) -> list[bytes]:
    return []


CHANGES = [middle_changed, truncated, replaced_by_a_longer_one, emptied]


@pytest.mark.parametrize("change", CHANGES)
def test_known_records_become_no_second_entries_and_vanished_ones_go_inactive(change, tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        watch(store, stored)
        before = entries(store, stored)
        after_lines = change(conversation.lines())
        rewrite(path, after_lines)
        session_of(store, path)
        now = entries(store, stored)
        kept = [line for line in conversation.lines() if line in after_lines]
        assert len(now) == len(before) + len(after_lines) - len(kept)
        assert [one.text for one in now[: len(before)]] == [one.text for one in before]
        active = [one.seq for one in now if one.active]
        assert active == [n for n, line in enumerate(conversation.lines()) if line in after_lines] + list(
            range(len(before), len(now))
        )


@pytest.mark.parametrize("change", CHANGES)
def test_notes_on_what_vanished_are_invisible_but_recallable_until_it_comes_back(change, tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        watch(store, stored)
        notes = store.memory.notes(stored.session.handle)
        whole = note_texts(store, stored)
        texts = {one.seq: one.text for one in entries(store, stored)}
        rewrite(path, change(conversation.lines()))
        stored = session_of(store, path)
        live = {one.seq for one in entries(store, stored) if one.active}
        visible = {
            one.note.text for one in notes if any(int(name.split(".")[1]) in live for name in one.note.entry_ids)
        }
        assert visible < whole
        assert note_texts(store, stored) & whole == visible
        for one in notes:
            for name in one.note.entry_ids:
                found, row = find_entry(store, name)
                assert read_entries(store, found, [row])[0].text == texts[row.seq]
        assert {seq for card in cards_of(store, stored) for fact in card.facts for seq in fact.seqs} <= live
        rewrite(path, conversation.lines())
        stored = session_of(store, path)
        assert note_texts(store, stored) == whole
        assert [one.seq for one in entries(store, stored) if one.active] == list(range(len(texts)))


def test_all_blocks_of_a_record_go_and_come_together(tmp_path: Path) -> None:
    conversation = Talk()
    conversation.user("a question")
    conversation.agent("first block", "second block", "third block")
    conversation.user("the end")
    path = conversation.write(tmp_path)
    lines = conversation.lines()
    with opened() as store:
        stored = session_of(store, path)
        rewrite(path, [lines[0], lines[2]])
        session_of(store, path)
        assert active_texts(store, stored) == ["a question", "the end"]
        rewrite(path, lines)
        session_of(store, path)
        assert active_texts(store, stored) == [one.text for one in entries(store, stored)]
        assert fresh(store, stored).last_seq == 4


def test_a_file_that_is_being_rewritten_under_the_reader_ends_without_second_entries(tmp_path: Path) -> None:
    conversation = turns(4)
    path = conversation.write(tmp_path)
    lines = [b'{"type":"summary","summary":"A shop","leafUuid":"x"}\n', *conversation.lines()]
    with opened() as store:
        stored = session_of(store, path)
        last = stored.last_seq
        for end in (1, 3, 8, len(lines)):
            rewrite(path, lines[:end])
            stored = session_of(store, path)
        own = [one for one in entries(store, stored) if one.seq <= last]
        assert all(one.active for one in own)
        assert stored.last_seq - last <= 1  # the summary alone may be new
        assert len(store.archive.sources(stored.no)) == 2


def test_a_rewind_in_a_rewritten_file_reaches_entries_that_were_archived_before(tmp_path: Path) -> None:
    conversation = turns(2)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        first_end = conversation.records[3]["uuid"]
        rewrite(path, [b'{"type":"summary","summary":"A shop","leafUuid":"x"}\n', *conversation.lines()])
        session_of(store, path)
        conversation.head = first_end
        conversation.user("Something else instead of the second turn.")
        rewrite(path, [b'{"type":"summary","summary":"A shop","leafUuid":"x"}\n', *conversation.lines()])
        session_of(store, path)
        assert [one.seq for one in entries(store, stored) if one.kind != "summary" and not one.active] == [4, 5, 6, 7]


def test_places_name_the_line_where_the_record_stands_now(tmp_path: Path) -> None:
    conversation = turns(1)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        rewrite(path, [b"\n", b"\n", *conversation.lines()])
        stored = session_of(store, path)
        rows = list(store.archive.entries(stored.no))
        data = path.read_bytes()
        for row, line in zip(rows, conversation.lines(), strict=True):
            place = store.archive.place(row)
            assert data[place.offset : place.offset + place.length] == line
            assert place.line == row.seq + 3


# --- rewinds


def test_notes_of_an_abandoned_branch_are_invisible_and_come_back_with_it(tmp_path: Path) -> None:
    conversation = turns(3)
    fork_point, branch_end = conversation.records[3]["uuid"], conversation.head
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        watch(store, stored)
        assert any("number_2" in text for text in note_texts(store, stored))
        conversation.head = fork_point
        conversation.turn(7)
        conversation.write(tmp_path)
        stored = session_of(store, path)
        watch(store, stored)
        seen = note_texts(store, stored)
        assert not any("number_1" in text or "number_2" in text for text in seen)
        assert any("number_0" in text for text in seen)
        assert any("number_7" in text for text in seen)
        subjects = str(cards_of(store, fresh(store, stored)))
        assert "number_7" in subjects
        assert "number_2" not in subjects
        count = len(store.memory.notes(stored.session.handle))
        conversation.head = branch_end
        conversation.turn(8)
        conversation.write(tmp_path)
        stored = session_of(store, path)
        watch(store, stored)
        seen = note_texts(store, stored)
        assert any("number_2" in text for text in seen)
        assert not any("number_7" in text for text in seen)
        assert "number_2" in str(cards_of(store, fresh(store, stored)))
        assert len(store.memory.notes(stored.session.handle)) == count + 3


def test_cards_follow_a_rewind_even_if_the_reader_died_right_after_archiving_it(tmp_path: Path, monkeypatch) -> None:
    conversation = turns(2)
    path = conversation.write(tmp_path)
    with opened() as store:
        session_of(store, path)
    conversation.head = conversation.records[3]["uuid"]
    conversation.turn(5)
    conversation.write(tmp_path)

    class Killed(BaseException):
        pass

    def die(*arguments: object, **more: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, opened() as store:
        patch.setattr("obsmem.tasks.ingest.update_cards", die)
        with pytest.raises(Killed):
            take(store, path)
    with opened() as store:
        stored = session_of(store, path)
        facts = str(cards_of(store, stored))
        assert "number_5" in facts
        assert "number_1" not in facts


# --- the same session elsewhere


def test_a_rollout_moved_to_the_archive_folder_is_not_read_twice(tmp_path: Path) -> None:
    source = FIXTURES / "codex" / "tool-calls" / "transcript.jsonl"
    name = "rollout-2026-03-04T10-00-00-019cb8a0-1000-7000-8000-00000000a001.jsonl"
    old, new = tmp_path / "sessions" / name, tmp_path / "archived_sessions" / name
    old.parent.mkdir()
    new.parent.mkdir()
    old.write_bytes(source.read_bytes())
    with opened() as store:
        stored = session_of(store, old, "codex")
        watch(store, stored)
        before = [(one.seq, one.text, one.active) for one in entries(store, stored)]
        notes = len(store.memory.notes(stored.session.handle))
        old.rename(new)
        again = session_of(store, new, "codex")
        watch(store, again)
        assert again.session.handle == stored.session.handle
        assert [(one.seq, one.text, one.active) for one in entries(store, again)] == before
        assert len(store.memory.notes(stored.session.handle)) == notes
        assert store.archive.place(next(store.archive.entries(again.no))).source == str(new)


def test_a_rollout_that_is_compressed_and_later_resumed_is_not_read_twice(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    whole = (FIXTURES / "codex" / "tool-calls" / "transcript.jsonl").read_bytes()
    plain = tmp_path / "rollout-2026-03-04T10-00-00-019cb8a0-1000-7000-8000-00000000a001.jsonl"
    small = tmp_path / f"{plain.name}.zst"
    plain.write_bytes(whole)
    with opened() as store:
        before = [(one.seq, one.text, one.active) for one in entries(store, session_of(store, plain, "codex"))]
        small.write_bytes(zstandard.ZstdCompressor().compress(whole))
        plain.unlink()
        assert [(one.seq, one.text, one.active) for one in entries(store, session_of(store, small, "codex"))] == before
        more = b'{"timestamp":"2026-06-01T00:00:00.000Z","type":"event_msg","payload":{"type":"user_message","message":"go on"}}\n'
        plain.write_bytes(whole + more)
        resumed = session_of(store, plain, "codex")
        assert [(one.seq, one.text, one.active) for one in entries(store, resumed)][:-1] == before
        assert entries(store, resumed)[-1].text == "go on"
        assert len(store.archive.sessions()) == 1


def test_a_resume_that_copies_the_session_to_another_path_goes_on_there(tmp_path: Path) -> None:
    conversation = turns(2)
    first = conversation.write(tmp_path / "a")
    with opened() as store:
        stored = session_of(store, first)
        watch(store, stored)
        conversation.turn(2)
        second = conversation.write(tmp_path / "b")
        again = session_of(store, second)
        watch(store, again)
        assert again.session.handle == stored.session.handle
        assert [one.text for one in entries(store, again)].count(entries(store, stored)[0].text) == 1
        assert again.last_seq == stored.last_seq + 4
        assert all(one.active for one in entries(store, again))
        assert len({one.note.text for one in store.memory.notes(again.session.handle)}) == 9
        assert len(store.memory.notes(again.session.handle)) == 9


def test_part_of_a_session_in_another_path_hides_nothing_while_the_first_file_is_there(tmp_path: Path) -> None:
    conversation = turns(3)
    first = conversation.write(tmp_path / "a")
    second = tmp_path / "b" / first.name
    second.parent.mkdir()
    second.write_bytes(b"".join(conversation.lines()[:4]))
    with opened() as store:
        stored = session_of(store, first)
        session_of(store, second)
        assert all(one.active for one in entries(store, stored))
        assert fresh(store, stored).last_seq == stored.last_seq
