"""Files are replaced whole or not at all, and are the user's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from obsmem.system import files


def test_a_file_is_replaced_in_one_step_and_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    for data in (b"first", b"second" * 100_000):
        files.write_atomic(str(path), data)
        assert path.read_bytes() == data
    assert os.listdir(path.parent) == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o700, 0o700]


def test_a_failing_write_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own" / "file"
    files.write_atomic(str(path), b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_atomic(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["file"]


def test_reading_is_bounded_and_a_missing_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert files.read_bytes(str(tmp_path / "file"), 4) == b"0123"
    assert files.read_bytes(str(tmp_path / "gone")) == files.read_bytes(str(tmp_path)) == b""
    files.remove(str(tmp_path / "gone"))
