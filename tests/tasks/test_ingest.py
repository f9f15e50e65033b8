"""Reading on: whatever the cuts, the same entries as in one reading; only what is new is read; bad lines cost nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsmem import harnesses
from obsmem.harnesses.base import Raw, Source
from tests.harnesses.cases import FIXTURES
from tests.tasks import talk
from tests.tasks.talk import CLAUDE, Talk, entries, opened, plain, session_of, take, turns

LINES = [
    pytest.param(path.parent.parent.name, path, id=f"{path.parent.parent.name}-{path.parent.name}")
    for path in sorted(FIXTURES.glob("*/*/transcript.jsonl"))
    if path.parent.name != "worker"
]


def whole(path: Path, harness: str) -> list[tuple[object, ...]]:
    """What one reading of the file gives, in a store of its own."""
    with talk.open_store(str(path.parent / "whole-store")) as store:
        return plain(entries(store, session_of(store, path, harness, final=True)))


def archived(path: Path) -> bytes:
    """All that the newest generation of a path holds."""
    with opened() as store:
        (number,) = store.archive.connection.execute(
            "SELECT no FROM sources WHERE path=? ORDER BY generation DESC LIMIT 1", (str(path),)
        ).fetchone()
        return b"".join(store.archive.bytes_of(number))


@pytest.mark.parametrize(("harness", "source"), LINES)
@pytest.mark.parametrize("seed", range(1))
def test_reading_in_any_byte_cuts_equals_one_reading(harness: str, source: Path, seed: int, tmp_path: Path) -> None:
    data = source.read_bytes()
    chance = random.Random(f"{source} {seed}")
    path = tmp_path / source.name
    cuts = sorted(chance.sample(range(1, len(data)), min(8, len(data) - 1)))
    for end in [*cuts, len(data)]:
        path.write_bytes(data[:end])
        with opened() as store:
            take(store, path, harness)
    with opened() as store:
        read = plain(entries(store, session_of(store, path, harness, final=True)))
    assert read == whole(path, harness)
    assert archived(path) == data


def test_every_cut_inside_one_record_and_its_characters(tmp_path: Path) -> None:
    conversation = Talk()
    conversation.user("first")
    data = conversation.write(tmp_path).read_bytes()
    line = json.dumps({**conversation.records[0], "uuid": "x2", "message": {"role": "user", "content": "日本 é 🚀 end"}},
                      ensure_ascii=False).encode() + b"\n"  # fmt: skip
    path = tmp_path / f"{conversation.session}.jsonl"
    for cut in range(1, len(line) + 1):
        path.write_bytes(data + line[:cut])
        with opened() as store:
            stored = session_of(store, path)
            assert stored.last_seq == (1 if cut >= len(line) - 1 else 0)
    with opened() as store:
        assert [one.text for one in entries(store, session_of(store, path))] == ["first", "日本 é 🚀 end"]
    assert archived(path) == data + line


def test_glued_records_cut_in_the_second_are_read_as_one_line_later(tmp_path: Path) -> None:
    conversation = turns(1)
    first, second, *rest = conversation.lines()
    data = first[:-1] + second + b"".join(rest)
    path = tmp_path / f"{conversation.session}.jsonl"
    path.write_bytes(data[: len(first) + 20])
    with opened() as store:
        session_of(store, path)
    path.write_bytes(data)
    with opened() as store:
        read = plain(entries(store, session_of(store, path)))
    assert read == whole(path, CLAUDE)
    assert len(read) == 4


def test_a_torn_last_line_archived_as_it_stands_is_read_again_when_it_has_grown(tmp_path: Path) -> None:
    conversation = turns(2)
    data = b"".join(conversation.lines())
    path = tmp_path / f"{conversation.session}.jsonl"
    for end in (len(data) - 200, len(data) - 100, len(data) - 30):
        path.write_bytes(data[:end])
        with opened() as store:
            result = take(store, path, final=True)
            assert result.stored is not None
            source = store.archive.sources(result.stored.no)[-1]
            assert b"".join(store.archive.bytes_of(source.no)) == data[:end]
            assert source.torn
    path.write_bytes(data)
    with opened() as store:
        stored = session_of(store, path)
        assert plain(entries(store, stored)) == whole(path, CLAUDE)
        (source,) = store.archive.sources(stored.no)
        assert b"".join(store.archive.bytes_of(source.no)) == data
        assert "torn last line" not in json.loads(source.skipped)


def test_the_same_store_sees_the_grown_line_not_the_torn_one(tmp_path: Path) -> None:
    """The torn segment's number is given again: nothing may be remembered of it."""
    conversation = turns(1)
    data = b"".join(conversation.lines())
    path = tmp_path / f"{conversation.session}.jsonl"
    with opened() as store:
        path.write_bytes(data[:-40])
        stored = session_of(store, path, final=True)
        (source,) = store.archive.sources(stored.no)
        assert b"".join(store.archive.bytes_of(source.no)) == data[:-40]
        path.write_bytes(data)
        session_of(store, path, final=True)
        assert b"".join(store.archive.bytes_of(source.no)) == data


def test_a_file_rewritten_after_its_torn_line_was_archived_is_noticed(tmp_path: Path) -> None:
    first, other = turns(2), turns(2)
    other.records[0]["message"]["content"] = "something else altogether, and rather longer than before " * 3
    path = tmp_path / f"{first.session}.jsonl"
    path.write_bytes(b"".join(first.lines())[:-30])
    with opened() as store:
        session_of(store, path, final=True)
    path.write_bytes(b"".join(other.lines()))
    with opened() as store:
        stored = session_of(store, path, final=True)
        assert [row.generation for row in store.archive.sources(stored.no)] == [0, 1]
    assert archived(path) == path.read_bytes()


class Counting:
    """A harness module whose records are counted as they are read."""

    def __init__(self) -> None:
        self.module = harnesses.load(CLAUDE)
        self.offsets: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.module, name)

    def records(self, source: Source, offset: int, line: int) -> Iterator[Raw]:
        self.offsets.append(offset)
        return self.module.records(source, offset, line)


def test_reading_on_begins_where_the_last_reading_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = turns(30)
    path = conversation.write(tmp_path)
    with opened() as store:
        session_of(store, path)
    size = path.stat().st_size
    conversation.turn(31)
    conversation.write(tmp_path)
    counting = Counting()
    monkeypatch.setattr("obsmem.tasks.ingest.load", lambda name: counting)
    with opened() as store:
        result = take(store, path)
    assert counting.offsets == [0, size]  # the first look only learns whose file it is
    assert result.bytes == path.stat().st_size - size
    assert result.records == 4


def test_reading_again_without_news_changes_nothing(tmp_path: Path) -> None:
    path = turns(3).write(tmp_path)
    with opened() as store:
        before = plain(entries(store, session_of(store, path)))
        again = take(store, path, final=True)
        assert (again.records, again.entries, again.bytes) == (0, 0, 0)
        assert again.stored is not None
        assert plain(entries(store, again.stored)) == before


def test_unparsable_lines_are_archived_counted_and_cost_only_themselves(tmp_path: Path) -> None:
    lines = turns(1).lines()
    bad = [b"\x00\x00\x00\n", b"{torn\n", b"\xff\xfe\n", b"\n", b'"a string"\n', b"[1,2]\n", b"{}\r\n"]
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(x for pair in zip(lines, bad, strict=False) for x in pair) + b"".join(bad[4:]))
    with opened() as store:
        result = take(store, path)
        assert result.entries == 4
        assert sum(result.skipped.values()) >= len(bad)
    assert archived(path) == path.read_bytes()


def test_what_is_excluded_is_not_read(tmp_path: Path) -> None:
    path = Talk(cwd="/w/secret/deep").write(tmp_path / "x")
    conversation = Talk(cwd="/w/secret/deep")
    conversation.user("hush")
    path = conversation.write(tmp_path / "x")
    for glob in ("*/x/*.jsonl", "/w/secret", "/w/secret/*", "/w/sec*", "/w/secret/deep"):
        with opened(exclude=[glob]) as store:
            result = take(store, path)
            assert (result.stored, result.reason) == (None, "excluded")
            assert store.archive.sessions() == []
    with opened(exclude=["/w/other", "/w/secre", "*/y/*"]) as store:
        assert take(store, path).stored is not None


def test_a_workers_own_session_is_not_read() -> None:
    path = FIXTURES / CLAUDE / "worker" / "transcript.jsonl"
    with opened() as store:
        assert take(store, path).reason == "worker"
        assert store.archive.sessions() == []


def test_a_missing_file_is_an_error_that_leaves_no_session(tmp_path: Path) -> None:
    with opened() as store:
        with pytest.raises(OSError):
            take(store, tmp_path / "gone.jsonl")
        assert store.archive.sessions() == []


def test_a_reading_that_meets_another_starts_again_where_that_one_ended(tmp_path: Path) -> None:
    conversation = turns(2)
    path = conversation.write(tmp_path)
    with opened() as slow, opened() as fast:
        stopped: list[bool] = []

        def interfere(raw: Raw, parsed: object) -> bool:
            if not stopped:
                stopped.append(True)
                session_of(fast, path)
            return False

        stored = session_of(slow, path, stop=interfere)
        assert plain(entries(slow, stored)) == whole(path, CLAUDE)
        assert len(slow.archive.sources(stored.no)) == 1
    assert archived(path) == path.read_bytes()
