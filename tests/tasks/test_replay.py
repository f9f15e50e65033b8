"""Replays stop where they are told, show what the model would get, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from obsmem.core.tokens import estimate
from obsmem.system.paths import data_home
from obsmem.tasks.discover import find_below
from obsmem.tasks.replay import NO_CUT, Cut, count, replay
from tests.tasks.talk import SESSION, Talk, entries, opened, session_of, turns, utc

SCRIPT = Path(__file__).resolve().parents[2] / "observational_memory.py"


def compacted() -> Talk:
    """Three turns, each followed by a compaction, and a last one."""
    conversation = Talk()
    for number in range(3):
        conversation.turn(number)
        conversation.compact()
    conversation.turn(3)
    return conversation


@pytest.mark.parametrize(("cut", "turns_read"), [("1", 1), ("2", 2), ("3", 3), ("4", 4), ("", 4)])
def test_a_cut_stops_before_the_record_of_that_compaction(cut: str, turns_read: int, tmp_path: Path) -> None:
    (found,) = find_below(str(compacted().write(tmp_path)))
    with opened() as store:
        done = replay(store, found, utc, cut=Cut.parse(cut) if cut else NO_CUT)
        assert done is not None
        read = entries(store, done.stored)
        assert sum(one.kind == "user" and one.speaker == "human" for one in read) == turns_read
        assert sum(one.kind == "boundary" for one in read) == min(turns_read, 4) - 1
        assert done.compactions == turns_read - 1
        text = "".join(done.block.parts)
        assert f"number_{turns_read - 1}" in text
        assert f"number_{turns_read}" not in text


@pytest.mark.parametrize("tokens", [1, 100, 150, 400])
def test_a_cut_in_tokens_reads_no_record_beyond_it(tokens: int, tmp_path: Path) -> None:
    (found,) = find_below(str(turns(6).write(tmp_path)))
    with opened() as store:
        whole = [estimate(one.text) for one in entries(store, session_of(store, found.source.path))]
    with opened() as store:
        home = str(tmp_path / "cut")
        from obsmem.tasks.store import open_store

        with open_store(home) as other:
            done = replay(other, found, utc, cut=Cut.parse(f"{tokens}t"))
            assert done is not None
            read = [estimate(one.text) for one in entries(other, done.stored)]
    assert sum(read) <= tokens < sum(read) + whole[len(read)]


@pytest.mark.parametrize("text", ["0", "-1", "0t", "x", "", "t", "1.5"])
def test_what_is_no_cut_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Cut.parse(text)


def test_reading_on_after_a_cut_gives_the_whole(tmp_path: Path) -> None:
    conversation = compacted()
    path = conversation.write(tmp_path)
    (found,) = find_below(str(path))
    with opened() as store:
        assert replay(store, found, utc, cut=Cut.parse("2")) is not None
        stored = session_of(store, path)
        texts = [one.text for one in entries(store, stored)]
        assert all(one.active for one in entries(store, stored))
    with opened() as store:
        from obsmem.tasks.store import open_store

        with open_store(str(tmp_path / "whole")) as other:
            assert [one.text for one in entries(other, session_of(other, path))] == texts


def test_a_cut_replay_of_a_moved_file_hides_nothing_of_what_it_did_not_read(tmp_path: Path) -> None:
    conversation = compacted()
    path = conversation.write(tmp_path / "a")
    with opened() as store:
        stored = session_of(store, path)
        moved = tmp_path / "b" / path.name
        moved.parent.mkdir()
        shutil.move(path, moved)
        (found,) = find_below(str(moved))
        assert replay(store, found, utc, cut=Cut.parse("1")) is not None
        assert all(one.active for one in entries(store, stored))


def test_counting_stores_nothing_and_accounts_for_every_line(tmp_path: Path) -> None:
    path = compacted().write(tmp_path)
    path.write_bytes(path.read_bytes() + b"{torn")
    (found,) = find_below(str(path))
    counted = count(found)
    assert counted.lines == len(compacted().records) + 1
    assert counted.compactions == 3
    assert counted.unaccounted == 0
    assert counted.skipped["torn last line"] == 1
    assert counted.session == SESSION
    assert not os.path.exists(data_home())


def test_the_command_leaves_nothing_behind(tmp_path: Path) -> None:
    path = compacted().write(tmp_path / "given")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = {name: Path(name).stat().st_mtime_ns for name in map(str, tmp_path.rglob("*"))}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "replay", "--at", "2", str(path)],
        env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "number_1" in done.stdout
    assert "number_2" not in done.stdout
    assert {name: Path(name).stat().st_mtime_ns for name in map(str, tmp_path.rglob("*"))} == before | {
        str(temporary): temporary.stat().st_mtime_ns
    }
    assert os.listdir(temporary) == []
    assert not os.path.exists(data_home())
    assert tempfile.gettempdir()
