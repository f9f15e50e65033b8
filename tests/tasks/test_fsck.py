"""Checking finds what is wrong and changes nothing; repairing mends what can be mended, and brings nothing forgotten
back."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from obsmem.core.errors import StoreError
from obsmem.core.identifiers import read_terms
from obsmem.store.archive import StoredSession
from obsmem.store.search import Filter
from obsmem.system.paths import data_home
from obsmem.tasks.cards import cards_of
from obsmem.tasks.forget import forget_entry
from obsmem.tasks.fsck import check_home
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.tasks.words import index_words
from tests.tasks.talk import entries, fresh, opened, plain, raw_files, session_of, turns, watch
from tests.tasks.test_forget import holding, planted, with_side_file


def path_of(name: str) -> Path:
    return Path(data_home(), name)


def filled(store: Store, path: Path) -> StoredSession:
    stored = session_of(store, path)
    watch(store, stored)
    index_words(store, fresh(store, stored))
    store.memory.back_up(os.path.join(store.home, "backups"))
    return fresh(store, stored)


def _rows(store: Store, word: str) -> list[int]:
    """The numbers of the rows that hold a word."""
    return [match.no for match in store.index.search.matches(read_terms(word), Filter(), 20)]


def flip(number: int, at: int | None = None) -> None:
    """Flip one byte of a stored segment."""
    connection = sqlite3.connect(path_of("archive.db"))
    (data,) = connection.execute("SELECT data FROM segments WHERE no=?", (number,)).fetchone()
    place = len(data) // 2 if at is None else at
    connection.execute(
        "UPDATE segments SET data=? WHERE no=?",
        (data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :], number),
    )
    connection.commit()
    connection.close()


def spoil(name: str, offset: int = 5000) -> None:
    """Overwrite the middle of a database file."""
    with open(path_of(name), "r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * 9000)


def test_a_sound_store_has_no_findings(tmp_path: Path) -> None:
    with opened() as store:
        filled(store, turns(3).write(tmp_path))
    assert check_home(data_home()) == []


def test_checking_alone_changes_no_byte(tmp_path: Path) -> None:
    with opened() as store:
        filled(store, turns(3).write(tmp_path))
    flip(1)
    spoil("memory.db")
    spoil("index.db")
    before = raw_files()
    assert len(check_home(data_home())) >= 2
    after = raw_files()
    assert {name: data for name, data in after.items() if not name.endswith(("-shm", "-wal"))} == {
        name: data for name, data in before.items() if not name.endswith(("-shm", "-wal"))
    }


def test_a_flipped_byte_is_found_and_mended_from_the_transcript(tmp_path: Path) -> None:
    with opened() as store:
        stored = filled(store, turns(3).write(tmp_path))
        before = plain(entries(store, stored))
    flip(1)
    with opened() as store, pytest.raises(StoreError, match="fsck"):
        entries(store, stored)
    assert next(finding.repaired for finding in check_home(data_home())) is False
    findings = check_home(data_home(), repair=True)
    assert [finding.repaired for finding in findings] == [True]
    assert check_home(data_home()) == []
    with opened() as store:
        assert plain(entries(store, stored)) == before


@pytest.mark.parametrize("loss", ["gone", "rewritten"])
def test_a_flipped_byte_stays_a_finding_without_the_transcript(loss: str, tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened() as store:
        filled(store, path)
    flip(1)
    if loss == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"Fixed", b"Faked"))
    findings = check_home(data_home(), repair=True)
    assert findings
    assert not any(finding.repaired for finding in findings)
    assert any("12 entries" in finding.what for finding in findings)


def test_a_segment_without_entries_is_mended_only_by_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b'{"type":"permission-mode","permissionMode":"default","sessionId":"odd"}\n' * 3)
    with opened() as store:
        session_of(store, path)
    flip(1)
    true = path.read_bytes()
    path.write_bytes(true.replace(b"default", b"another"))
    assert not any(finding.repaired for finding in check_home(data_home(), repair=True))
    path.write_bytes(true)
    assert all(finding.repaired for finding in check_home(data_home(), repair=True))
    assert check_home(data_home()) == []


def test_mending_a_segment_does_not_bring_back_a_forgotten_record(tmp_path: Path) -> None:
    with opened() as store:
        stored = filled(store, planted().write(tmp_path))
        for seq in (4, 5, 6, 7):
            forget_entry(store, f"{stored.session.handle}.{seq}")
        before = plain(entries(store, stored))
    flip(1)
    assert all(finding.repaired for finding in check_home(data_home(), repair=True))
    with opened() as store:
        assert plain(entries(store, stored)) == before
    assert holding() == []


def test_a_damaged_side_file_is_taken_again_from_where_it_is(tmp_path: Path) -> None:
    path, side = with_side_file(tmp_path)
    with opened() as store:
        stored = filled(store, path)
        before = plain(entries(store, stored))
        numbers = [row[0] for row in store.archive.connection.execute("SELECT no FROM segments WHERE source=2")]
    assert side.exists()
    for number in numbers:
        flip(number)
    assert all(finding.repaired for finding in check_home(data_home(), repair=True))
    with opened() as store:
        assert plain(entries(store, stored)) == before


def test_a_damaged_index_is_made_anew_with_the_same_cards(tmp_path: Path) -> None:
    with opened() as store:
        stored = filled(store, turns(5).write(tmp_path))
        cards, found = cards_of(store, stored), _rows(store, "number_3")
        assert cards
        assert found
    spoil("index.db")
    (finding,) = check_home(data_home())
    assert (finding.where, finding.repaired) == ("index.db", False)
    (finding,) = check_home(data_home(), repair=True)
    assert finding.repaired
    assert check_home(data_home()) == []
    with opened() as store:
        assert cards_of(store, stored) == cards
        assert _rows(store, "number_3") == found


@pytest.mark.parametrize("harm", ["deleted", "damaged at its head", "damaged inside"])
def test_an_index_that_is_lost_is_rebuilt_on_first_use(harm: str, tmp_path: Path) -> None:
    with opened() as store:
        stored = filled(store, turns(40).write(tmp_path))
        cards = cards_of(store, stored)
    if harm == "deleted":
        path_of("index.db").unlink()
    else:
        spoil("index.db", 0 if "head" in harm else 13_000)
    with opened() as store:
        assert cards_of(store, stored) == cards
        index_words(store, stored)
        assert store.index.check() == ""


def test_a_damaged_memory_is_restored_from_the_newest_good_backup(tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = filled(store, path)
        handle = stored.session.handle
        before = remember(store, stored).notes
        store.memory.back_up(os.path.join(store.home, "backups"), now=2_000_000_000)
    broken = Path(data_home(), "backups", "memory-20990101.db")
    broken.write_bytes(b"no database at all" * 100)
    spoil("memory.db")
    path_of("memory.db-journal").write_bytes(b"")
    finding = check_home(data_home())[0]
    assert (finding.where, finding.repaired) == ("memory.db", False)
    finding = check_home(data_home(), repair=True)[0]
    assert finding.repaired
    assert "memory-2033" in finding.what
    assert check_home(data_home()) == []
    assert oct(os.stat(path_of("memory.db")).st_mode & 0o777) == "0o600"
    with opened() as store:
        assert remember(store, stored).notes == before
        conversation.turn(4)
        session_of(store, conversation.write(tmp_path))
        assert watch(store, stored).notes == 3
        assert len(store.memory.notes(handle)) == 12


def test_a_damaged_memory_without_a_backup_stays_a_finding(tmp_path: Path) -> None:
    with opened() as store:
        session_of(store, turns(1).write(tmp_path))
    spoil("memory.db", 0)
    assert [finding.repaired for finding in check_home(data_home(), repair=True)] == [False]


def test_a_damaged_archive_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    with opened() as store:
        filled(store, turns(3).write(tmp_path))
    spoil("archive.db", 0)
    findings = check_home(data_home(), repair=True)
    assert [finding.where for finding in findings] == ["archive.db"]
    assert not findings[0].repaired


def test_a_note_that_was_changed_or_cites_nothing_is_found(tmp_path: Path) -> None:
    with opened() as store:
        filled(store, turns(2).write(tmp_path))
    connection = sqlite3.connect(path_of("memory.db"))
    ids = [row[0] for row in connection.execute("SELECT id FROM notes ORDER BY no LIMIT 2")]
    connection.execute("UPDATE notes SET text='Something else.' WHERE id=?", (ids[0],))
    connection.execute("UPDATE note_entries SET seq=4000 WHERE note=?", (ids[1],))
    connection.commit()
    connection.close()
    findings = {finding.where: finding.what for finding in check_home(data_home())}
    assert "does not follow" in findings[f"note {ids[0]}"]
    assert f"note {ids[1]}" in findings


def test_coverage_beyond_the_archive_is_found_by_checking_and_taken_back_by_opening(tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = filled(store, path)
        handle = stored.session.handle
        notes = {one.note.id for one in store.memory.notes(handle)}
    for name in ("archive.db", "index.db"):
        path_of(name).unlink()
    with opened() as store:
        assert store.memory.covered_to(handle) == -1
        again = session_of(store, path)
        assert again.session.handle == handle
        watch(store, again)
        assert {one.note.id for one in store.memory.notes(handle)} == notes
    assert check_home(data_home()) == []
    connection = sqlite3.connect(path_of("memory.db"))
    connection.execute("UPDATE coverage SET last_seq=99")
    connection.commit()
    connection.close()
    (finding,) = check_home(data_home())
    assert "covered to 99" in finding.what
    with opened() as store:
        assert store.memory.covered_to(handle) == 11
