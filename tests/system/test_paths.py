"""Where things lie: what platformdirs says, the same session folder whoever asks, names that are safe."""

from __future__ import annotations

import os
import zlib

import platformdirs
import pytest

from obsmem.system.paths import APP, crc32, data_home, safe_name, session_folder


@pytest.mark.parametrize("value", [None, "", "  ", "/x/share", "/x/share/"])
def test_the_data_folder_is_the_platforms(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OBSERVATIONAL_MEMORY_HOME")
    if value is None:
        monkeypatch.delenv("XDG_DATA_HOME")
    else:
        monkeypatch.setenv("XDG_DATA_HOME", value)
    assert os.path.normpath(data_home()) == os.path.normpath(platformdirs.user_data_dir(APP, appauthor=False))


def test_a_variable_moves_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", "relative/place")
    assert data_home() == os.path.abspath("relative/place")


@pytest.mark.parametrize(
    ("transcript", "session", "name"),
    [
        ("/a/b/5e55.jsonl", "other", "5e55"),
        ("C:\\a\\5e55.jsonl", "", "5e55"),
        ("/a/rollout-1.jsonl.zst", "x", "rollout-1"),
        ("/a/opencode.db", "ses_1", "ses_1"),
        ("/a/state.vscdb", "comp 1/2", "comp_1_2"),
        ("", "ses_1", "ses_1"),
        ("", "", "unknown"),
        ("/a/..jsonl", "", "_."),
    ],
)
def test_hook_and_maintainer_find_the_same_session_folder(transcript: str, session: str, name: str) -> None:
    folder = session_folder("/h", "codex", transcript, session)
    assert folder == session_folder("/h", "codex", transcript, session)
    assert os.path.dirname(folder) == os.path.join("/h", "sessions", "codex")
    assert os.path.basename(folder).rpartition("-")[0] == name


def test_files_of_one_name_in_two_projects_have_two_folders() -> None:
    assert session_folder("/h", "codex", "/a/x.jsonl", "") != session_folder("/h", "codex", "/b/x.jsonl", "")


@pytest.mark.parametrize("text", ["../../etc", "..", ".", "", "a/b\\c:d", "日本", "x" * 500, "a\x00b"])
def test_no_name_leaves_its_folder(text: str) -> None:
    name = safe_name(text)
    assert name
    assert os.path.basename(name) == name
    assert name not in (".", "..")
    assert len(name) <= 121


def test_the_checksum_is_crc_32() -> None:
    for length in (0, 1, 2, 3, 64, 255, 4096):
        data = bytes(number * 7 % 256 for number in range(length))
        assert crc32(data) == zlib.crc32(data)
    assert crc32(bytes(range(256)) + "/Users/jö/日本.jsonl".encode()) == zlib.crc32(
        bytes(range(256)) + "/Users/jö/日本.jsonl".encode()
    )
