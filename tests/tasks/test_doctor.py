"""The doctor finds what is wrong, names what to do, and changes nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.system.launcher import launcher_path, record_interpreter
from obsmem.tasks import install
from obsmem.tasks.doctor import diagnose, exit_status, unlogged_trouble
from obsmem.tasks.doctor_mcp import check_server
from obsmem.tasks.finding import BROKEN, GOOD, WARNING, Check
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A data folder with one harness installed, all sound."""
    user = Path(os.path.expanduser("~"))
    (user / ".claude").mkdir(parents=True)
    folder = os.environ["OBSERVATIONAL_MEMORY_HOME"]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    install.carry_out(folder, install.plan_install(folder, "claude-code"))
    return folder


def look(home: str, cwd: str = "") -> dict[str, Check]:
    """The worst finding of each name."""
    levels = (GOOD, WARNING, BROKEN)
    found: dict[str, Check] = {}
    for check in diagnose(home, cwd):
        if check.name not in found or levels.index(check.level) > levels.index(found[check.name].level):
            found[check.name] = check
    return found


def settings() -> Path:
    return Path(load("claude-code").config_file(install.user_home(), ""))


def test_a_sound_installation_has_no_remedy(home: str) -> None:
    checks = diagnose(home, "")
    assert [check for check in checks if check.remedy] == []
    assert exit_status(checks) == 0
    assert {"interpreter", "launcher", "claude-code hooks", "disk", "store", "log", "observer", "switches"} <= {
        check.name for check in checks
    }


def test_a_model_is_named_with_who_pays_for_it(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def configure(*workers: dict[str, str]) -> None:
        monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_WORKERS", json.dumps(workers))

    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    configure({"kind": "command", "preset": "claude"})
    assert look(home)["observer"] == Check(
        "observer", GOOD, "command:claude, paid by the login of claude; extractive where it fails"
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    found = look(home)["observer"]
    assert (
        found.level == WARNING and "by the API key in ANTHROPIC_API_KEY" in found.what and "sk-secret" not in str(found)
    )
    configure(
        {"kind": "http", "api": "openai", "url": "http://127.0.0.1:1", "model": "m", "key_env": "ANTHROPIC_API_KEY"}
    )
    assert look(home)["observer"].level == GOOD, "that key was meant"
    configure({"kind": "http"})
    assert look(home)["observer"].level == WARNING


def test_what_hooks_cannot_log_is_found_without_the_log(home: str) -> None:
    assert unlogged_trouble(home, "") == []
    os.unlink(launcher_path(home))
    record_interpreter(home, "/nowhere/python3")
    assert [check.name for check in unlogged_trouble(home, "")] == ["interpreter", "launcher"]
    install.uninstall(home, "claude-code")
    assert [check.name for check in unlogged_trouble(home, "")] == ["interpreter"], "nothing calls the launcher now"


def test_a_transcript_in_which_nobodys_words_are_found_is_named(home: str, tmp_path: Path) -> None:
    """A real session, and the same as a later version of the program might write it: under other names."""
    whole = next((ROOT / "fixtures" / "demo" / "codex").glob("rollout-*")).read_bytes()
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(whole)
    with open_store(home) as store:
        assert ingest(store, "codex", Source(str(path))).entries
    assert look(home)["reading"].level == GOOD
    path = tmp_path / "rollout-y.jsonl"
    path.write_bytes(
        whole.replace(b'"type":"response_item"', b'"type":"thread_item"')
        .replace(b'"type":"event_msg"', b'"type":"thread_event"')
        .replace(b'"type":"compacted"', b'"type":"thread_summary"')
        .replace(b'"id":"', b'"id":"new-')
    )
    with open_store(home) as store:
        ingest(store, "codex", Source(str(path)))
    found = look(home)["reading"]
    assert found.level == WARNING and "type:thread_item" in found.what and str(path) in found.remedy


def lose_interpreter(home: str) -> None:
    record_interpreter(home, "/nowhere/python3")


def lack_packages(home: str) -> None:
    program = Path(home) / "bare-python"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    record_interpreter(home, str(program))


def lose_launcher(home: str) -> None:
    os.unlink(launcher_path(home))


def age_launcher(home: str) -> None:
    path = Path(launcher_path(home))
    path.write_text(path.read_text(encoding="utf-8") + "# old\n", encoding="utf-8")


def lock_launcher(home: str) -> None:
    os.chmod(launcher_path(home), 0o600)


def drop_a_handler(home: str) -> None:
    text = settings().read_text(encoding="utf-8").replace("hook claude-code Stop", "hook claude-code SubagentStop")
    settings().write_text(text, encoding="utf-8")


def change_a_timeout(home: str) -> None:
    settings().write_text(settings().read_text(encoding="utf-8").replace("60", "61"), encoding="utf-8")


def break_the_config(home: str) -> None:
    settings().write_text("{", encoding="utf-8")


def enable_the_plugin(home: str) -> None:
    text = (
        settings()
        .read_text(encoding="utf-8")
        .replace("{", '{"enabledPlugins": {"observational-memory@here": true},', 1)
    )
    settings().write_text(text, encoding="utf-8")


def add_another_copy(home: str) -> None:
    text = settings().read_text(encoding="utf-8")
    other = '"Stop": [{"hooks": [{"command": "python3 /x/observational_memory.py hook claude-code Stop"}]},'
    settings().write_text(text.replace('"Stop": [', other, 1), encoding="utf-8")


def remove_the_hooks(home: str) -> None:
    settings().write_text("{}", encoding="utf-8")


def switch_off(home: str) -> None:
    (Path(home) / "off").touch()


def damage_the_memory(home: str) -> None:
    (Path(home) / "memory.db").write_bytes(b"no database" * 1000)


def fail_lately(home: str) -> None:
    from obsmem.system import log

    log.write(home, "maintain", harness="claude-code", outcome="failed-KeyError", ms=3)


@pytest.mark.parametrize(
    ("spoil", "name", "level", "word"),
    [
        (lose_interpreter, "interpreter", BROKEN, "setup"),
        (lack_packages, "interpreter", BROKEN, "setup"),
        (lose_launcher, "launcher", BROKEN, "install"),
        (age_launcher, "launcher", WARNING, "install"),
        (lock_launcher, "launcher", BROKEN, "install"),
        (drop_a_handler, "claude-code hooks", BROKEN, "install claude-code"),
        (change_a_timeout, "claude-code hooks", BROKEN, "install claude-code"),
        (break_the_config, "claude-code hooks", BROKEN, "correct"),
        (enable_the_plugin, "claude-code hooks", WARNING, "keep one"),
        (add_another_copy, "claude-code hooks", WARNING, "keep one"),
        (remove_the_hooks, "claude-code hooks", WARNING, "install claude-code"),
        (switch_off, "switches", WARNING, "remove"),
        (damage_the_memory, "store", BROKEN, "fsck --repair"),
        (fail_lately, "log", WARNING, "log.txt"),
    ],
)
def test_each_thing_that_breaks_is_found_with_its_remedy(home: str, spoil: Callable[[str], None], name: str, level: str, word: str) -> None:  # fmt: skip
    if os.name == "nt" and spoil in (lack_packages, lock_launcher):
        pytest.skip("needs POSIX modes")
    if spoil is lock_launcher and os.access(launcher_path(home), os.X_OK) and os.geteuid() == 0:
        os.chmod(launcher_path(home), 0o600)  # even root cannot run what nobody may run
    spoil(home)
    checks = diagnose(home, "")
    found = look(home)[name]
    assert (found.level, word in found.remedy) == (level, True), found
    assert exit_status(checks) == (5 if level == BROKEN else 1)


def test_looking_changes_nothing(home: str) -> None:
    world = Path(home).parent
    before = {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in world.rglob("*")}
    diagnose(home, str(world))
    assert {
        path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in world.rglob("*")
    } == before


def test_nothing_installed_is_a_warning_and_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    checks = diagnose(str(tmp_path / "none"), "")
    assert exit_status(checks) == 1
    assert not (tmp_path / "none").exists()


def test_handlers_that_the_harness_will_not_run_are_broken_until_the_user_trusts_them(home: str) -> None:
    install.carry_out(home, install.plan_install(home, "codex"))
    (Path(os.path.expanduser("~")) / ".codex").mkdir(exist_ok=True)
    found = look(home)["codex trust"]
    assert found.level == BROKEN and "5 untrusted" in found.what and "`codex` once" in found.remedy


def test_a_project_that_is_the_home_folder_is_not_taken_for_a_second_config(home: str) -> None:
    install.carry_out(home, install.plan_install(home, "codex"))
    assert look(home, os.path.expanduser("~"))["codex hooks"].level == GOOD


def test_handlers_in_the_users_and_in_the_projects_config_are_called_twice(home: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    install.carry_out(home, install.plan_install(home, "claude-code", str(project)))
    found = look(home, str(project))["claude-code hooks"]
    assert found.level == WARNING and str(project) in found.what


def test_it_tells_what_became_of_the_last_block(home: str, tmp_path: Path) -> None:
    """The fixture is a real session of two compactions whose blocks came back in the transcript."""
    case = (
        Path(__file__).resolve().parents[2] / "fixtures/harnesses/claude-code/recorded-two-compactions/transcript.jsonl"
    )
    with open_store(home) as store:
        ingest(store, "claude-code", Source(str(case)))
    found = look(home)["delivery"]
    assert (found.level, "after compaction 2" in found.what) == (GOOD, True), found


def test_tools_that_a_plugin_brings_are_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second registration is advised beside the plugin's own; without the plugin, one is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"enabledPlugins": {"observational-memory@here": true}}', encoding="utf-8")
    (found,) = check_server(str(tmp_path / "data"), str(tmp_path))
    assert (found.level, found.what) == (GOOD, "brought by the plugin observational-memory@here")
    path.write_text("{}", encoding="utf-8")
    (found,) = check_server(str(tmp_path / "data"), str(tmp_path))
    assert found.level == WARNING and "registered nowhere" in found.what
