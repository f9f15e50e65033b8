"""Opening databases: migrations once, newer ones refused, two at once, busy is not damaged, read-only places."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from obsmem.core.errors import StoreError, StoreTooNew
from obsmem.store import archive_schema, memory_schema, schema
from obsmem.store.archive import Archive
from obsmem.store.index import Index
from obsmem.store.memory import MemoryStore
from obsmem.store.schema import Damaged, damage, move_aside, open_database
from obsmem.system.config import defaults
from obsmem.tasks.cards import cards_of
from obsmem.tasks.entries import read_entries
from obsmem.tasks.remember import remember
from obsmem.tasks.store import open_store
from tests.tasks.talk import session_of, turns, watch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE things(name TEXT)")


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO things VALUES('one')")


def fail(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO things VALUES('half')")
    connection.execute("SELECT nothing FROM nowhere")


def things(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT name FROM things")]
    finally:
        connection.close()


def test_each_migration_is_applied_once(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    for migrations in ([("m1", create)], [("m1", create), ("m2", fill)], [("m1", create), ("m2", fill)]):
        open_database(path, migrations, journal="TRUNCATE").close()
    assert things(tmp_path / "a.db") == ["one"]


def test_a_failing_migration_leaves_neither_its_changes_nor_its_record(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with pytest.raises(StoreError):
        open_database(path, [("m1", create), ("m2", fail)], journal="TRUNCATE")
    assert things(tmp_path / "a.db") == []
    open_database(path, [("m1", create), ("m2", fill)], journal="TRUNCATE").close()
    assert things(tmp_path / "a.db") == ["one"]


@pytest.mark.parametrize("kind", [Archive, MemoryStore, Index])
def test_a_store_of_a_newer_version_is_refused_in_a_sentence_and_left_as_it_is(kind: type, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    kind(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO migrations VALUES('m900_far_ahead', 1)")
    connection.commit()
    connection.close()
    for readonly in (False, True):
        with pytest.raises(StoreTooNew, match="m900_far_ahead") as caught:
            kind(str(path), readonly=readonly)
        assert str(caught.value).count(". ") <= 1
    assert [name for name in os.listdir(tmp_path) if "damaged" in name] == []


def test_an_older_store_is_brought_up_to_date_with_what_it_holds(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    connection = open_database(path, archive_schema.MIGRATIONS[:1], journal="TRUNCATE")
    connection.execute("INSERT INTO sessions(harness, id, handle) VALUES('claude-code', 'old', 'abcd')")
    connection.close()
    archive = Archive(path)
    assert archive.by_handle("abcd").session.id == "old"
    assert archive.by_handle("abcd").rewinds == 0
    archive.close()


def test_two_processes_opening_a_new_store_at_once_both_succeed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from obsmem.tasks.store import open_store\n"
        "with open_store(sys.argv[2]) as store: store.index.check(); store.key()\n"
    )
    for number in range(3):
        home = str(tmp_path / str(number))
        running = [
            subprocess.Popen([sys.executable, "-c", code, str(ROOT), home], stderr=subprocess.PIPE) for _ in range(6)
        ]
        for process in running:
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, b"")
        assert [name for name in os.listdir(home) if "damaged" in name or name.endswith(".tmp")] == []


def test_files_are_the_users_alone(tmp_path: Path) -> None:
    MemoryStore(str(tmp_path / "new" / "memory.db")).close()
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "new" / "memory.db").st_mode) == 0o600


def test_precious_databases_are_fully_synchronous_and_have_no_write_ahead_log(tmp_path: Path) -> None:
    for store in (Archive(str(tmp_path / "archive.db")), MemoryStore(str(tmp_path / "memory.db"))):
        assert store.connection.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
        assert store.connection.execute("PRAGMA synchronous").fetchone() == (2,)
        store.close()


def test_a_busy_index_is_not_taken_for_a_damaged_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place / "index.db"
    Index(str(path)).close()
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(path)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError) as caught:
        Index(str(path))
    assert not isinstance(caught.value, Damaged)
    other.rollback()
    other.close()
    assert os.listdir(place) == ["index.db"]


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"this is not a database, and long enough to be looked at" * 50)
    assert damage(str(path))
    with pytest.raises(Damaged, match="fsck"):
        MemoryStore(str(path))
    assert path.read_bytes().startswith(b"this is not")


def test_looking_for_damage_changes_nothing_and_takes_any_name(place: Path) -> None:
    path = place / "a?b#c%41.db"
    MemoryStore(str(path)).close()
    before = path.read_bytes()
    assert damage(str(path)) == ""
    assert path.read_bytes() == before
    assert sorted(os.listdir(place)) == [path.name, f"{path.name}-journal"]


def test_a_journal_goes_aside_with_its_database(place: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        (place / f"memory.db{ending}").write_bytes(b"x")
    move_aside(str(place / "memory.db"))
    assert sorted(os.listdir(place)) == [f"memory.db.damaged{e}" for e in ("", "-journal", "-shm", "-wal")]


def test_reading_only_needs_a_store_that_is_there(place: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        MemoryStore(str(place / "memory.db"), readonly=True)
    assert os.listdir(place) == []


def test_reading_only_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    open_database(str(path), memory_schema.MIGRATIONS, journal="TRUNCATE").close()
    store = MemoryStore(str(path), readonly=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store.connection.execute("DELETE FROM notes")
    store.close()


def read_all(home: str) -> str:
    """What somebody sees who may only read."""
    try:
        with open(os.path.join(home, "probe"), "w", encoding="utf-8"):
            return "the folder can be written"
    except OSError:
        pass
    with open_store(home, defaults(), readonly=True) as store:
        (stored,) = store.archive.sessions()
        read = read_entries(store, stored, store.archive.entries(stored.no))
        return f"{len(read)} {len(remember(store, stored).notes)} {len(cards_of(store, stored))}"


def as_somebody_else(home: str) -> str:
    """``read_all`` in a child that is not the superuser, who may write anywhere."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            os.write(writing, read_all(home).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, "rb") as file:
        return file.read().decode()


def test_a_store_in_a_read_only_folder_can_be_read(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = os.path.join(place, "memory")
        with open_store(home) as store:
            stored = session_of(store, turns(2).write(tmp_path))
            watch(store, stored)
        for folder, _, names in os.walk(place):
            os.chmod(folder, 0o555)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o444)
        seen = as_somebody_else(home)
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o755)
    assert seen == "8 6 2"
