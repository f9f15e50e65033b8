"""The layers in order, where each value came from, and errors that name file and key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import platformdirs
import pytest

from obsmem.core.errors import ConfigError
from obsmem.system import config
from obsmem.system.config import KEYS, PROJECT_FILE, load, override, schema, user_file
from obsmem.system.paths import APP

ROOT = Path(__file__).resolve().parents[2]


def write(path: str | Path, text: str) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return str(path)


def test_a_project_cannot_set_what_runs_programs_sends_words_away_or_hides_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have come with somebody else's repository."""
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_CONFIG", write(tmp_path / "user.yaml", "mask: ['MELON-[0-9]+']\n"))
    project = write(
        tmp_path / "p" / PROJECT_FILE,
        "workers: [{kind: command, run: [sh, -c, evil]}]\nmask: []\nexclude: []\nworker_tokens_per_day: 99000000\nbudget_tokens: 2000\n",
    )
    config = load(str(tmp_path / "p"))
    assert config["workers"] == ["extractive"] and config["mask"] == ["MELON-[0-9]+"]
    assert config["worker_tokens_per_day"] == KEYS["worker_tokens_per_day"][0] and config["budget_tokens"] == 2000
    assert config.ignored == tuple((key, project) for key in ("workers", "mask", "exclude", "worker_tokens_per_day"))


def test_without_any_file_all_values_are_defaults() -> None:
    loaded = load()
    assert {key: loaded[key] for key in KEYS} == {key: default for key, (default, _, _) in KEYS.items()}
    assert set(loaded.origins.values()) == {"default"}


def test_every_default_fits_its_own_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate({key: default for key, (default, _, _) in KEYS.items()}, schema())


@pytest.mark.parametrize("given", [None, "", "relative/place", "/x/settings"])
def test_the_users_file_lies_where_the_platform_says(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OBSERVATIONAL_MEMORY_CONFIG")
    if given is None:
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", given)
    assert user_file() == os.path.join(platformdirs.user_config_dir(APP, appauthor=False), "config.yaml")


def test_each_layer_goes_before_the_one_below_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = write(user_file(), "budget_tokens: 1000\nobserve_after_tokens: 1001\nreflect_after_tokens: 1002\n")
    project = write(tmp_path / "p" / PROJECT_FILE, "observe_after_tokens: 2001\nreflect_after_tokens: 2002\n")
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_REFLECT_AFTER_TOKENS", "3002")
    (tmp_path / "p" / "deep" / "er").mkdir(parents=True)
    loaded = load(str(tmp_path / "p" / "deep" / "er"))
    keys = ("budget_tokens", "observe_after_tokens", "reflect_after_tokens", "off")
    assert [loaded[key] for key in keys] == [1000, 2001, 3002, False]
    assert [loaded.origins[key] for key in keys] == [
        user,
        project,
        "OBSERVATIONAL_MEMORY_SET_REFLECT_AFTER_TOKENS",
        "default",
    ]
    changed = override(loaded, {"off": True}, "the test")
    assert (changed["off"], changed.origins["off"], loaded["off"]) == (True, "the test", False)


# A few hundred bytes that name more values than memory holds.
ALIASES = "".join(
    ["mask:\n  - &a0 [x, x, x, x]\n"]
    + [f"  - &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12)]
    + ["observe_after_tokens: *a11\n"]
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("budget_tokens: many\n", "budget_tokens"),
        ("budget_tokens: 5\n", "budget_tokens"),
        ("off: maybe\n", "off"),
        ("exclude: [1]\n", "exclude.0"),
        ("retention_keep: all\n", "retention_keep"),
        ("budgettokens: 5000\n", "budgettokens"),
        ("- a list\n", ""),
        ("a: [unclosed\n", ""),
        ("just words\n", ""),
        ("budget_tokens: 2026-13-45\n", ""),
        ("budget_tokens: !!timestamp x\n", ""),
        (f"exclude: {'[' * 3000}\n", ""),
        (ALIASES, "alias"),
        (f"off: {'x' * (1 << 20)}\n", "longer"),
        (f"off: {'x' * 9000}\n", "off"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_key(text: str, key: str) -> None:
    path = write(user_file(), text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert path in str(caught.value)
    assert key in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_wrong_variable_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("lots", "[unclosed", "{", "-1"):
        monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_BUDGET_TOKENS", text)
        with pytest.raises(ConfigError, match="OBSERVATIONAL_MEMORY_SET_BUDGET_TOKENS"):
            load()
    monkeypatch.delenv("OBSERVATIONAL_MEMORY_SET_BUDGET_TOKENS")
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_NO_SUCH_KEY", "1")
    with pytest.raises(ConfigError, match="no_such_key"):
        load()


def test_a_file_that_cannot_be_read_is_refused_not_ignored() -> None:
    Path(user_file()).parent.mkdir(parents=True, exist_ok=True)
    Path(user_file()).write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load()
    Path(user_file()).unlink()
    Path(user_file()).mkdir()
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load()


@pytest.mark.parametrize(("text", "off"), [("off: true\n", True), ("off: false\n", False), ("'off': True\n", True)])
def test_the_off_switch_can_be_written_as_it_is_named(text: str, off: bool) -> None:
    write(user_file(), text)
    assert load()["off"] is off


def test_an_empty_file_says_nothing() -> None:
    write(user_file(), "# nothing yet\n")
    assert load().values == config.defaults().values


_ANYTHING = (
    None, True, False, -1, 0, 1, 7, 15, 300, 12_000, 12_001, 1_441, 0.5, 5.0, float("nan"), "", "keep", "cited", "workspace", "x", "on", "thin",
    [], ["extractive"], [1], [{}], {}, {"url": "u", "model": "m"}, {"url": "u"}, {"url": "", "model": "m"},
    {"url": "u", "model": "m", "more": 1}, {"url": "u", "model": "m", "key_env": "K"},
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_what_is_taken_without_the_validator_is_what_it_takes(key: str) -> None:
    rule = KEYS[key][1]
    taken = [value for value in _ANYTHING if config._fits(value, rule)]
    assert taken and all(jsonschema.Draft202012Validator(rule).is_valid(value) for value in taken)
    refused = [value for value in _ANYTHING if value not in taken and not isinstance(value, float)]
    assert not any(jsonschema.Draft202012Validator(rule).is_valid(value) for value in refused if value not in taken)


def test_a_right_file_is_read_without_the_validator(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", "budget_tokens: 2000\nworkers: [extractive, {kind: http}]\nembeddings: null\n")
    code = "import sys; from obsmem.system import config; print(config.load()['budget_tokens'], 'jsonschema' in sys.modules)"
    environment = {**os.environ, "OBSERVATIONAL_MEMORY_CONFIG": path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.split(), done.returncode) == (["2000", "False"], 0), done.stderr
