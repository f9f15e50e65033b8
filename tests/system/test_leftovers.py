"""Files that killed writers left are removed, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from obsmem.system.leftovers import EVERY_SECONDS, MARK, OLD_SECONDS, sweep

WRITER = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from obsmem.system import files
files.os.replace = files.os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
getattr(files, sys.argv[2])(sys.argv[3], b"half")
"""
ROOT = Path(__file__).resolve().parents[2]


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()} - {MARK}


def age(folder: Path, seconds: float) -> None:
    for path in folder.rglob("*"):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home of data"
    folder.mkdir()
    return folder


def test_what_killed_writers_left_goes_once_it_is_old(home: Path) -> None:
    for how, name in (("write_atomic", "state"), ("write_new", "key")):
        path = home / "sessions" / name
        subprocess.run([sys.executable, "-c", WRITER, str(ROOT), how, str(path)], timeout=60)
    halves = left(home)
    assert len(halves) == 2
    kept = ("block.next", "notes.tmp", "my.new", "memory-20260101.db", "a.12.tmp.txt")
    for name in kept:
        (home / name).write_text("mine", encoding="utf-8")
    assert sweep(str(home)) == 0
    assert left(home) == halves | set(kept), "they may still be written"
    age(home, EVERY_SECONDS + OLD_SECONDS)
    assert sweep(str(home)) == 2
    assert left(home) == set(kept)


def test_it_looks_once_a_day(home: Path) -> None:
    assert sweep(str(home)) == 0
    half = home / "state.12.tmp"
    half.write_bytes(b"")
    age(home, OLD_SECONDS * 2)
    assert sweep(str(home)) == 0
    age(home, EVERY_SECONDS)
    assert sweep(str(home)) == 1
