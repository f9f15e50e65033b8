"""The windows of models by OpenCode's own files, and what it makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsmem.harnesses import opencode


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(path: Path, value: object, before: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + json.dumps(value), encoding="utf-8")


def test_the_smallest_of_equal_names_is_taken_from_the_list_of_models(home: Path) -> None:
    providers = {
        "a": {"models": {"big": {"limit": {"context": 200_000, "output": 64_000}}}},
        "b": {"models": {"big": {"limit": {"context": 128_000, "output": 16_000}}, "odd": {"limit": "none"}}},
    }
    write(home / ".cache" / "opencode" / "models.json", providers)
    assert opencode.model_window(str(home), "big") == (128_000, 16_000, "the harness's list of models")
    assert opencode.model_window(str(home), "odd") == (0, 0, "")
    assert opencode.model_window(str(home), "other") == (0, 0, "")


def test_what_the_user_configured_goes_first_and_comments_are_read(home: Path) -> None:
    write(home / ".cache" / "opencode" / "models.json", {"a": {"models": {"m1": {"limit": {"context": 9_000}}}}})
    config = {
        "provider": {"mine": {"models": {"m1": {"limit": {"context": 100_000, "input": 90_000, "output": 8_000}}}}}
    }
    write(home / ".config" / "opencode" / "opencode.jsonc", config, before="// mine\n")
    assert opencode.model_window(str(home), "m1") == (90_000, 8_000, "the harness's configuration")


@pytest.mark.parametrize("damage", ["", "{", "[1, 2]", "{}", '{"provider": 3}'])
def test_a_damaged_file_says_nothing(home: Path, damage: str) -> None:
    path = home / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text(damage, encoding="utf-8")
    assert opencode.model_window(str(home), "m1") == (0, 0, "")


def test_it_compacts_once_all_but_the_answers_room_is_full() -> None:
    assert opencode.limits(200_000, 8_000)[0::2] == (8_000, 192_000)
    assert opencode.limits(200_000, 64_000)[0::2] == (32_000, 168_000)
    assert opencode.limits(200_000, 0)[0::2] == (32_000, 168_000)
    assert opencode.limits(20_000, 0) == (0, "", 0, "")
