"""One delivery hands out one text, however many ask at once; nothing half-written and nothing older is delivered."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from obsmem.system import blockfile
from obsmem.system.blockfile import CURRENT, DUE_SECONDS, HELD_SECONDS, NEXT, freeze, hold_nothing, make_due, read
from obsmem.system.blockfile import write_next as leave

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from obsmem.system.blockfile import freeze
while time.time() < float(sys.argv[3]): pass
for number in range(int(sys.argv[4])):
    parts = freeze(os.path.join(sys.argv[2], str(number)), time.time())
    print("none" if parts is None else "+".join(parts))
"""


@pytest.mark.parametrize("parts", [(), ("one",), ("one", "two\nlines\n", "", "日本 \ud800")])
def test_parts_come_back_as_they_were_left(parts: tuple[str, ...], tmp_path: Path) -> None:
    leave(str(tmp_path), "k3f9", parts)
    assert read(str(tmp_path / NEXT)) == ("k3f9", [part.encode("utf-8", "replace").decode() for part in parts])


def test_a_file_that_was_cut_anywhere_is_no_block(tmp_path: Path) -> None:
    leave(str(tmp_path), "k3f9", ("one", "two\nlines"))
    data = (tmp_path / NEXT).read_bytes()
    for end in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:end])
        assert read(str(tmp_path / "cut")) == ("", [])
    assert read(str(tmp_path / "gone")) == ("", [])


def test_eight_processes_asking_at_once_get_one_delivery(tmp_path: Path) -> None:
    count = 40
    for number in range(count):
        folder = str(tmp_path / str(number))
        leave(folder, "old", ("old",))
        make_due(folder)
        assert freeze(folder, time.time()) == ["old"]
        leave(folder, "new", ("new", "part"))
        make_due(folder)
    start = str(time.time() + 0.5)
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, str(ROOT), str(tmp_path), start, str(count)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    assert [process.communicate()[0].split() for process in asking] == [["new+part"] * count] * 8


def test_a_rendering_that_comes_later_changes_nothing_in_a_delivery(tmp_path: Path) -> None:
    folder = str(tmp_path)
    leave(folder, "a", ("first",))
    make_due(folder)
    leave(folder, "b", ("second",))
    now = time.time()
    assert freeze(folder, now) == ["first"]
    leave(folder, "c", ("third",))
    assert freeze(folder, now + HELD_SECONDS - 1) == ["first"]
    assert freeze(folder, now + HELD_SECONDS + 1) is None
    make_due(folder)
    assert freeze(folder, time.time()) == ["third"]


def test_nothing_is_delivered_that_no_compaction_asked_for_or_that_is_long_past(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert freeze(folder, time.time()) is None
    leave(folder, "a", ("first",))
    assert freeze(folder, time.time()) is None
    make_due(folder)
    assert freeze(folder, time.time() + DUE_SECONDS + 1) is None
    assert not os.path.exists(os.path.join(folder, blockfile.DUE))
    assert freeze(folder, time.time()) is None


def test_a_delivery_of_nothing_is_one_too(tmp_path: Path) -> None:
    hold_nothing(str(tmp_path))
    assert freeze(str(tmp_path), time.time()) == []
    assert (tmp_path / CURRENT).exists()
