"""The archive: handles that are never shared, commits that appear whole or not at all, bytes by id."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound, StoreError
from obsmem.core.ids import handle_candidates
from obsmem.core.model import Entry, Session
from obsmem.store import archive_write
from obsmem.store.archive import Archive
from obsmem.store.archive_known import set_parent
from obsmem.store.archive_rows import key_number, key_text
from obsmem.store.archive_write import SEGMENT, TAIL, Changed, SourceWriter


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(str(tmp_path / "archive.db"))


def session(name: str) -> Session:
    return Session("claude-code", name)


def entry(text: str, block: int = 0) -> Entry:
    return Entry(-1, "", "user", "human", text, block=block)


def line(number: int, size: int = 20) -> bytes:
    return f"{number:06d} ".encode() + b"x" * size + b"\n"


def write(archive: Archive, no: int, lines: list[bytes], path: str = "/t.jsonl") -> list[Entry]:
    writer = SourceWriter(archive, no, path, "file")
    for data in lines:
        writer.add(data, writer.line + 1, writer.position, (entry(data.decode().strip()),))
    found = writer.commit({"read": writer.line}, session("a"))
    writer.close()
    return found


def test_a_session_is_registered_once(archive: Archive) -> None:
    first = archive.register(session("a"))
    assert archive.register(session("a")) == first
    assert first.last_seq == -1
    assert archive.by_handle(first.session.handle) == archive.by_id("claude-code", "a") == first
    with pytest.raises(NotFound):
        archive.by_handle("zzzz")


def test_handles_that_collide_grow_and_stay_unique(archive: Archive) -> None:
    short = next(iter(handle_candidates("claude-code", "wanted")))
    archive.connection.execute("INSERT INTO sessions(harness, id, handle) VALUES('codex', 'other', ?)", (short,))
    made = archive.register(session("wanted"))
    assert made.session.handle.startswith(short)
    assert len(made.session.handle) == 5


def test_the_end_of_what_was_read_is_known_by_its_hash_however_it_fell_into_commits(archive: Archive) -> None:
    stored = archive.register(session("a"))
    writer = SourceWriter(archive, stored.no, "/t.jsonl", "file")
    whole = b""
    for size in (100, SEGMENT, 30, 40, TAIL, 1, 2 * TAIL, 700):
        data = line(len(whole), size)
        kept = b" " * (len(data) - 1) + b"\n" if size == 30 else data  # a forgotten record's
        writer.add(kept, writer.line + 1, writer.position, (entry("words"),), as_read=data)
        whole += data
        if size != 40:
            writer.commit({}, session("a"))
            (row,) = archive.sources(stored.no)
            end = whole[-TAIL:]
            assert (row.tail, row.tail_size) == (hashlib.sha256(end).digest(), len(end))
    writer.close()


def test_the_segments_of_a_source_are_its_bytes_and_each_entry_finds_its_record(archive: Archive) -> None:
    stored = archive.register(session("a"))
    lines = [line(number, 50 + number % 700) for number in range(1000)]
    found = write(archive, stored.no, lines[:400]) + write(archive, stored.no, lines[400:])
    (source,) = archive.sources(stored.no)
    assert b"".join(archive.bytes_of(source.no)) == b"".join(lines)
    assert (source.offset, source.line) == (len(b"".join(lines)), 1000)
    assert [one.seq for one in found] == list(range(1000))
    (segments,) = archive.connection.execute("SELECT count(*) FROM segments").fetchone()
    assert segments >= len(b"".join(lines)) // (SEGMENT + 800)
    for one, data in zip(archive.entries(stored.no), lines, strict=True):
        assert archive.record(one, alone=True) == data
        assert archive.record(one) == data
        assert one.sha256 == hashlib.sha256(data).digest()
        place = archive.place(one)
        assert b"".join(lines)[place.offset : place.offset + place.length] == data
        assert place.line == one.seq + 1


def test_a_commit_that_fails_half_way_leaves_nothing(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = archive.register(session("a"))
    write(archive, stored.no, [line(0)])
    before = list(archive.connection.iterdump())
    with monkeypatch.context() as patch, pytest.raises(KeyError):
        patch.setattr(SourceWriter, "_save_session", lambda *a: (_ for _ in ()).throw(KeyError("killed")))
        write(archive, stored.no, [line(1), line(2)])
    assert list(archive.connection.iterdump()) == before
    write(archive, stored.no, [line(1)])
    assert archive.by_number(stored.no).last_seq == 1


def test_of_two_that_read_the_same_stretch_only_the_first_commits(archive: Archive, tmp_path: Path) -> None:
    stored = archive.register(session("a"))
    other = Archive(str(tmp_path / "archive.db"))
    slow, fast = SourceWriter(archive, stored.no, "/t", "file"), SourceWriter(other, stored.no, "/t", "file")
    for writer in (slow, fast):
        writer.add(line(0), 1, 0, (entry("one"),))
    fast.commit({}, session("a"))
    with pytest.raises(Changed):
        slow.commit({}, session("a"))
    assert archive.by_number(stored.no).last_seq == 0
    again = SourceWriter(archive, stored.no, "/t", "file")
    assert (again.position, again.line) == (len(line(0)), 1)
    rival = SourceWriter(other, stored.no, "/t", "file")
    again.restart()
    with pytest.raises(Changed):
        rival.restart()


def test_a_second_commit_within_a_millisecond_is_noticed_too(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = archive.register(session("a"))
    monkeypatch.setattr(archive_write.time, "time", lambda: 1_700_000_000.0)
    slow, fast = (SourceWriter(archive, stored.no, "/t", "file") for _ in range(2))
    fast.commit({}, session("a"))
    with pytest.raises(Changed):
        slow.commit({}, session("a"))


def test_damaged_bytes_are_never_given_out(archive: Archive) -> None:
    stored = archive.register(session("a"))
    write(archive, stored.no, [line(0)])
    (row,) = archive.entries(stored.no)
    archive.connection.execute("UPDATE entries SET start=3")
    (moved,) = archive.entries(stored.no)
    for alone in (False, True):
        with pytest.raises(StoreError, match="hash"):
            archive.record(moved, alone=alone)
        archive.drop_cache()
    archive.connection.execute("UPDATE segments SET data=substr(data, 1, 8)")
    with pytest.raises(StoreError):
        archive.record(row, alone=True)
    archive.connection.execute("DELETE FROM segments")
    archive.drop_cache()
    with pytest.raises(StoreError, match="missing"):
        archive.record(row)


def test_seqs_of_one_session_never_run_into_the_next(archive: Archive) -> None:
    first, second = archive.register(session("a")), archive.register(session("b"))
    write(archive, first.no, [line(0), line(1)])
    write(archive, second.no, [line(2)], "/u.jsonl")
    assert [row.seq for row in archive.entries(first.no)] == [0, 1]
    assert [row.seq for row in archive.entries(second.no)] == [0]
    assert [row.seq for row in archive.observable(first.no, 1)] == [1]
    assert archive.observable_tokens(second.no, -1) == archive.observable_tokens(second.no, 0) + sum(
        row.tokens for row in archive.entries(second.no)
    )


def test_a_family_has_no_circle(archive: Archive) -> None:
    a, b, c = (archive.register(session(name)) for name in "abc")
    set_parent(archive, b.no, a.no, 3)
    set_parent(archive, c.no, b.no, 4)
    for child, parent in ((a, c), (a, a), (b, c)):
        set_parent(archive, child.no, parent.no, 1)
    parents = [archive.by_number(one.no).session.parent for one in (a, b, c)]
    assert parents == [None, (a.session.handle, 3), (b.session.handle, 4)]


def test_link_keys_survive_being_numbers() -> None:
    for key in ("", "0000000000000001", "7fffffffffffffff", "8000000000000000", "ffffffffffffffff"):
        number = key_number(key)
        assert -(1 << 63) <= number < 1 << 63
        assert key_text(number) == key


def test_a_reader_in_another_process_sees_whole_commits_only(archive: Archive, tmp_path: Path) -> None:
    stored = archive.register(session("a"))
    write(archive, stored.no, [line(0)])
    reader = Archive(str(tmp_path / "archive.db"), readonly=True)
    assert reader.by_number(stored.no).last_seq == 0
    write(archive, stored.no, [line(1)])
    assert reader.by_number(stored.no).last_seq == 1
    with pytest.raises(sqlite3.OperationalError):
        reader.set_active(stored.no, [0], active=False)
