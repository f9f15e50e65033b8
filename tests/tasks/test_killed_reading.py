"""A reading that is killed right after its commit: the next one makes up for all that was still to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from obsmem.tasks import ingest as module
from tests.harnesses.cases import FIXTURES
from tests.tasks.talk import CLAUDE, entries, opened, session_of, take, turns, watch
from tests.tasks.test_forget import PLANTED, with_side_file


class Killed(BaseException):
    pass


def read_and_die(path: Path, monkeypatch: pytest.MonkeyPatch, harness: str = CLAUDE) -> None:
    """Read a file, ending at the instant after the archive's commit."""

    def die(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, opened() as store:
        patch.setattr(module._Reading, "_after", die)
        with pytest.raises(Killed):
            take(store, path, harness)


def test_side_files_are_archived_by_the_next_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, side = with_side_file(tmp_path)
    read_and_die(path, monkeypatch)
    with opened() as store:
        stored = session_of(store, path)
        side.unlink()
        assert any(PLANTED in one.text for one in entries(store, stored))


@pytest.mark.parametrize(("harness", "case"), [(CLAUDE, "compactions"), ("codex", "own-block")])
def test_receipts_are_recorded_by_the_next_reading(
    harness: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FIXTURES / harness / case / "transcript.jsonl"
    path = tmp_path / "a" / source.name
    path.parent.mkdir()
    shutil.copy(source, path)
    with opened() as store:
        stored = session_of(store, path, harness)
        wanted = store.memory.receipts(stored.session.handle)
        assert wanted
        store.rebuild_index()
        session_of(store, path, harness)
        assert store.memory.receipts(stored.session.handle) == wanted
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(tmp_path / "other"))
    lines = path.read_bytes().split(b"\n")
    first = next(n for n, line in enumerate(lines) if b"observational-memory delivery" in line)
    path.write_bytes(b"\n".join([*lines[:first], b""]))
    with opened() as store:
        assert session_of(store, path, harness).last_seq >= 0
    path.write_bytes(b"\n".join(lines))
    read_and_die(path, monkeypatch, harness)
    with opened() as store:
        assert store.memory.receipts(stored.session.handle) == []
        session_of(store, path, harness)
        assert store.memory.receipts(stored.session.handle) == wanted


def test_a_fork_finds_its_parent_in_the_next_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = turns(2)
    child = parent.fork()
    child.turn(9)
    with opened() as store:
        mother = session_of(store, parent.write(tmp_path))
        watch(store, mother)
    path = child.write(tmp_path)
    read_and_die(path, monkeypatch)
    with opened() as store:
        daughter = session_of(store, path)
        assert daughter.session.parent == (mother.session.handle, 7)
        assert [row.copied for row in store.archive.entries(daughter.no)] == [True] * 8 + [False] * 4
