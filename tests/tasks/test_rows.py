"""Sources whose rows change: a changed row is a new version, the old one stays recallable; reverted and deleted rows
are off the live path, in all their versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.core.ids import raw_id
from obsmem.store.archive import StoredSession
from obsmem.store.archive_raw import raws_of
from obsmem.system.paths import data_home, session_folder
from obsmem.system.raw_files import save_raw
from obsmem.tasks.cards import cards_of
from obsmem.tasks.fsck import check
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store
from tests.harnesses.test_opencode_rows import SESSION, Database
from tests.tasks.talk import active_texts, entries, opened, session_of, take, watch
from tests.tasks.test_observe import check_coverage

OPENCODE = "opencode"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(tmp_path / "opencode.db")
    made.talk()
    return made


def read(store: Store, database: Database) -> StoredSession:
    return session_of(store, database.path, OPENCODE, SESSION)


def finish_tool(database: Database, output: str = "made it") -> None:
    data = (
        '{"type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"make"},'
        f'"output":"{output}","time":{{"start":1790000002500,"end":1790000002900}}}}}}'
    )
    database.connection.execute("UPDATE part SET data=?, time_updated=9500 WHERE id='prt_2a'", (data,))


def newest(store: Store, stored: StoredSession) -> list[str]:
    rows = list(store.archive.entries(stored.no, where="replaced_by IS NULL"))
    texts = {one.seq: one.text for one in entries(store, stored)}
    return [texts[row.seq] for row in rows if row.active]


def test_reading_again_without_news_adds_nothing(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        before = [(one.seq, one.text) for one in entries(store, stored)]
        result = take(store, database.path, OPENCODE, SESSION)
        assert (result.records, result.entries) == (0, 0)
        assert [(one.seq, one.text) for one in entries(store, stored)] == before


def test_a_changed_part_is_a_new_version_and_the_old_one_stays_recallable(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        old = next(row for row in store.archive.entries(stored.no) if row.kind == "tool_call")
        last = stored.last_seq
        finish_tool(database)
        stored = read(store, database)
        row = store.archive.entry(stored.no, old.seq)
        assert row is not None
        assert row.replaced_by == last + 1
        assert [one.kind for one in entries(store, stored) if one.seq > last] == ["tool_call", "tool_result"]
        assert old.seq not in {one.seq for one in store.archive.observable(stored.no, 0)}
        (source,) = find(store, f"{stored.session.handle}.{old.seq}").sources
        assert source.entry is not None
        assert "make" in source.entry.text
        assert source.entry.place is not None
        assert source.entry.place.table == "rows"
        assert "made it" in " ".join(newest(store, stored))


def test_each_version_is_observed_once_and_coverage_stays_whole(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        watch(store, stored)
        first = len(store.memory.notes(stored.session.handle))
        finish_tool(database, "12 passed in 3s")
        stored = read(store, database)
        watch(store, stored)
        assert store.memory.covered_to(stored.session.handle) == stored.last_seq
        handle = stored.session.handle
        parts = [(one.first_seq, one.last_seq) for one in store.memory.stretches(handle)]
        assert parts == sorted(parts)
        assert len(store.memory.notes(handle)) > first
        ids = [one.note.id for one in store.memory.notes(handle)]
        assert len(ids) == len(set(ids))


def test_cards_of_a_changed_row_are_those_that_a_rebuilt_index_gives(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        finish_tool(database, "12 passed in 3s")
        stored = read(store, database)
        cards = cards_of(store, stored)
        store.rebuild_index()
        assert cards_of(store, stored) == cards
        commands = [fact for card in cards for fact in card.facts if fact.kind == "command"]
        assert len(commands) == 1


def test_reverted_rows_are_inactive_until_the_revert_is_undone(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        watch(store, stored)
        seen = [note.text for note in remember(store, stored).notes]
        whole = active_texts(store, stored)
        database.revert(messageID="msg_2")
        stored = read(store, database)
        assert active_texts(store, stored) == ["first wish"]
        assert {note.text for note in remember(store, stored).notes} < set(seen)
        database.revert()
        stored = read(store, database)
        assert active_texts(store, stored) == whole
        assert [note.text for note in remember(store, stored).notes] == seen


def test_a_revert_reaches_the_older_versions_of_its_rows(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        watch(store, stored)
        finish_tool(database)
        read(store, database)
        finish_tool(database, "made it better")
        stored = read(store, database)
        database.revert(messageID="msg_2")
        stored = read(store, database)
        assert active_texts(store, stored) == ["first wish"]
        database.revert()
        stored = read(store, database)
        assert len(active_texts(store, stored)) == stored.last_seq + 1


def test_deleted_rows_are_inactive_and_recallable(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        watch(store, stored)
        database.connection.execute("DELETE FROM part WHERE message_id='msg_3'")
        database.connection.execute("DELETE FROM message WHERE id='msg_3'")
        stored = read(store, database)
        assert "second wish" not in active_texts(store, stored)
        assert any(one.text == "second wish" for one in entries(store, stored))
        assert not any("second wish" in note.text for note in remember(store, stored).notes)
        gone = next(one for one in entries(store, stored) if one.text == "second wish")
        assert find(store, f"{stored.session.handle}.{gone.seq}").status == "ok"


def test_words_that_a_row_no_longer_says_are_off_the_live_path(database: Database) -> None:
    with opened() as store:
        stored = read(store, database)
        database.connection.execute("""UPDATE part SET data='{"type":"text","text":""}' WHERE id='prt_3'""")
        stored = read(store, database)
        assert "second wish" not in active_texts(store, stored)
        database.connection.execute("""UPDATE part SET data='{"type":"text","text":"third wish"}' WHERE id='prt_3'""")
        stored = read(store, database)
        assert "third wish" in active_texts(store, stored)


def test_everything_archived_is_the_rows_as_they_were_read(database: Database) -> None:
    from obsmem.harnesses import load
    from obsmem.harnesses.base import Source

    with opened() as store:
        stored = read(store, database)
        (source,) = store.archive.sources(stored.no)
        rows = b"".join(raw.data for raw in load(OPENCODE).records(Source(str(database.path), SESSION), 0, 0))
        assert b"".join(store.archive.bytes_of(source.no)) == rows
        check_after = list(store.archive.entries(stored.no))
        assert all(store.archive.record(row) for row in check_after)
        watch(store, stored)
        check_coverage(store, stored)


def test_two_sessions_of_one_database_stay_apart(database: Database) -> None:
    other = "ses_0bbb11112222ExampleSession2"
    database.session(other)
    database.message("msg_9", "user", 100, session=other)
    database.part("prt_9", "msg_9", 100, {"type": "text", "text": "another wish"}, session=other)
    with opened() as store:
        first = read(store, database)
        second = session_of(store, database.path, OPENCODE, other)
        database.revert(messageID="msg_1")
        read(store, database)
        assert active_texts(store, second) == ["another wish"]
        assert active_texts(store, first) == []


def test_a_later_version_of_a_shortened_result_is_tied_to_the_same_whole(database: Database) -> None:
    whole = "collected 100 items\n" + "dots\n" * 500 + "== 100 passed in 1.2s =="
    id_ = raw_id(OPENCODE, SESSION, "c1")
    save_raw(
        session_folder(data_home(), OPENCODE, str(database.path), SESSION), id_, {"call": "c1", "at": 1}, whole.encode()
    )
    with opened() as store:
        finish_tool(database, f"[… shortened …; id {id_}]")
        stored = read(store, database)
        assert whole in newest(store, stored)
        finish_tool(database, f"[… shortened …; id {id_}]  ")
        again = read(store, database)
        assert again.last_seq > stored.last_seq
        assert newest(store, again).count(whole) == 1
        ((source, seq),) = raws_of(store.archive, again.no)
        assert (source.kind, seq) == ("raw", again.last_seq)
        assert [one.seq for one in store.memory.reductions()] == [again.last_seq]
        assert check(store) == []
