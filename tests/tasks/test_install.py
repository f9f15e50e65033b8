"""Installing puts our handlers into configs that people keep, and uninstalling leaves no trace of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from obsmem.core import jsonc
from obsmem.core.errors import ConfigError, ObsmemError
from obsmem.harnesses import REGISTRY, load
from obsmem.system.launcher import launcher_path, recall_path
from obsmem.tasks import config_files, install
from obsmem.tasks.config_files import recognise_ours, records

FOREIGN = {
    "missing": None,
    "empty": b"",
    "empty object": b"{}",
    "comments and tabs": b'{\n\t// mine\n\t"model": "x", /* why */\n\t"hooks": {\n\t\t"Stop": [],\n\t},\n}\n',
    "carriage returns": b'{\r\n  "hooks": {\r\n    "Stop": [{"hooks": [{"type": "command", "command": "say"}]}]\r\n  }\r\n}\r\n',
    "one line": b'{"a":[1,2,{"b":null}],"hooks":{"stop":[{"command":"say"}]}}',
    "byte order mark": b'\xef\xbb\xbf{\n  "a": 1\n}',
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds a user's home; its name needs quoting. The data folder lies in the home."""
    home = tmp_path / 'the user\'s "home" $HOME'
    home.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(home / "data"))
    return home


def data(world: Path) -> str:
    return str(world / "data")


def installed(world: Path, harness: str, **options: Any) -> install.Plan:
    plan = install.plan_install(data(world), harness, **options)
    install.carry_out(data(world), plan)
    return plan


def removed(world: Path) -> None:
    for harness in REGISTRY:
        install.uninstall(data(world), harness)
    install.remove_launchers(data(world))


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below a folder, with its mode and bytes; without the data folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if "data" not in path.relative_to(folder).parts[:1]:
            found[str(path.relative_to(folder))] = (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
    return found


def write_foreign(harness: str, content: bytes | None) -> Path:
    path = Path(load(harness).config_file(install.user_home(), ""))
    if content is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        path.chmod(0o640)
    return path


@pytest.mark.parametrize("harness", REGISTRY)
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_install_and_uninstall_leave_the_home_as_it_was(world: Path, harness: str, content: bytes | None) -> None:
    path = write_foreign(harness, content)
    before = snapshot(world)
    installed(world, harness, allow_recall=True)
    assert jsonc.count(path.read_text(encoding="utf-8"), recognise_ours(data(world))) > 0
    removed(world)
    assert snapshot(world) == before
    assert not os.path.exists(launcher_path(data(world))) and not os.path.exists(recall_path(data(world)))
    assert not (world / "data" / "install").exists()


@pytest.mark.parametrize("harness", REGISTRY)
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_installing_three_times_is_installing_once(world: Path, harness: str, content: bytes | None) -> None:
    write_foreign(harness, content)
    installed(world, harness)
    once = snapshot(world)
    for _ in range(2):
        assert not installed(world, harness).is_needed
    assert snapshot(world) == once


@pytest.mark.parametrize("harness", REGISTRY)
def test_what_others_write_after_the_install_survives_the_uninstall(world: Path, harness: str) -> None:
    path = write_foreign(harness, b'{\n  // mine\n  "hooks": {\n    "Stop": []\n  }\n}\n')
    installed(world, harness, allow_recall=True)
    path.write_text(jsonc.merge(path.read_text(encoding="utf-8"), {"mine": {"too": [1]}}), encoding="utf-8")
    removed(world)
    assert jsonc.load(path.read_text(encoding="utf-8"))["mine"] == {"too": [1]}
    assert jsonc.load(path.read_text(encoding="utf-8"))["hooks"] == {"Stop": []}
    assert "// mine" in path.read_text(encoding="utf-8")
    assert jsonc.count(path.read_text(encoding="utf-8"), recognise_ours(data(world))) == 0


def test_an_uninstall_without_its_records_takes_out_our_entries_alone(world: Path) -> None:
    path = write_foreign(
        "claude-code", b'{\n  "model": "x",\n  "hooks": {"Stop": [{"hooks": [{"command": "say"}]}]}\n}\n'
    )
    before = path.read_bytes()
    installed(world, "claude-code")
    shutil.rmtree(world / "data" / "install")
    removed(world)
    assert jsonc.load(path.read_text(encoding="utf-8")) == json.loads(before)


def test_handlers_of_an_older_version_are_replaced_and_the_first_bytes_still_come_back(world: Path) -> None:
    path = write_foreign("claude-code", b'{"hooks": {}}')
    installed(world, "claude-code")
    older = path.read_text(encoding="utf-8").replace('"timeout": 60', '"timeout": 61')
    path.write_text(older, encoding="utf-8")
    assert installed(world, "claude-code").is_needed
    assert "61" not in path.read_text(encoding="utf-8")
    removed(world)
    assert jsonc.load(path.read_text(encoding="utf-8")) == {"hooks": {}}


def test_a_plan_writes_nothing(world: Path) -> None:
    write_foreign("claude-code", b"{}")
    before = snapshot(world)
    plan = install.plan_install(data(world), "claude-code", allow_recall=True)
    assert plan.is_needed and "+" in install.difference(plan.changes[0])
    assert snapshot(world) == before and not (world / "data").exists()


def test_a_symbolic_link_is_followed_and_stays_one(world: Path) -> None:
    target = world / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_bytes(b'{"model": "x"}')
    link = Path(load("claude-code").config_file(install.user_home(), ""))
    link.parent.mkdir()
    link.symlink_to(target)
    installed(world, "claude-code")
    assert link.is_symlink() and "hooks" in json.loads(target.read_bytes())
    removed(world)
    assert link.is_symlink() and target.read_bytes() == b'{"model": "x"}'


def test_the_mode_of_a_file_stays(world: Path) -> None:
    path = write_foreign("claude-code", b"{}")
    path.chmod(0o664)
    installed(world, "claude-code")
    assert path.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"hooks": []}', b"\xff\xfe{}", b'{"hooks": {"Stop": 1}}'])
def test_a_config_that_is_not_understood_is_refused_and_left_alone(world: Path, content: bytes) -> None:
    path = write_foreign("claude-code", content)
    with pytest.raises(ConfigError, match="Nothing was changed"):
        install.plan_install(data(world), "claude-code")
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_told_in_one_sentence(world: Path) -> None:
    (world / ".claude").write_bytes(b"a file is in the way")
    with pytest.raises(ObsmemError, match=r"cannot be (read|written)"):
        installed(world, "claude-code")
    assert records(data(world), "claude-code") == {}


def test_of_two_files_both_are_written_or_none(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(world)
    real = config_files._replace

    def fail(path: str, content: bytes, mode: int) -> None:
        if path.endswith("cli-config.json"):
            raise OSError(28, "No space left on device")
        real(path, content, mode)

    monkeypatch.setattr(config_files, "_replace", fail)
    with pytest.raises(ObsmemError, match="No space left"):
        installed(world, "cursor", allow_recall=True)
    assert snapshot(world) == before and records(data(world), "cursor") == {}


def test_a_file_that_changes_after_it_was_shown_is_not_written(world: Path) -> None:
    path = write_foreign("claude-code", b"{}")
    plan = install.plan_install(data(world), "claude-code")
    path.write_bytes(b'{"model": "y"}')
    with pytest.raises(ObsmemError, match="changed while"):
        install.carry_out(data(world), plan)
    assert path.read_bytes() == b'{"model": "y"}'


def test_the_launcher_stays_while_another_harness_calls_it(world: Path) -> None:
    installed(world, "claude-code")
    installed(world, "codex")
    install.uninstall(data(world), "codex")
    named = [os.path.realpath(world / name) for name in (".claude.json", os.path.join(".claude", "settings.json"))]
    assert sorted(install.remove_launchers(data(world))) == sorted(named)
    assert os.path.exists(launcher_path(data(world)))


def test_a_rule_for_recall_stays_when_install_runs_again_without_it(world: Path) -> None:
    installed(world, "claude-code", allow_recall=True)
    plan = install.plan_install(data(world), "claude-code")
    assert plan.recall and not plan.is_needed


def test_a_project_gets_a_config_of_its_own(world: Path) -> None:
    project = world / "work"
    project.mkdir()
    installed(world, "claude-code", project=str(project))
    assert "hooks" in json.loads((project / ".claude" / "settings.local.json").read_bytes())
    assert not (world / ".claude").exists()
    removed(world)
    assert list(project.iterdir()) == []


def test_harnesses_are_found_by_the_folder_of_their_config(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world))
    assert install.detect() == []
    (world / ".codex").mkdir()
    assert install.detect() == ["codex"]


def test_a_second_upgrade_changes_no_byte_of_the_hook_entries(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness that trusts handlers by their hash goes on trusting them."""
    installed(world, "codex")
    before = snapshot(world)
    monkeypatch.setattr(install, "installed_script", lambda: "/elsewhere/observational_memory.py")
    installed(world, "codex")
    assert snapshot(world) == before
    assert "/elsewhere/" in Path(launcher_path(data(world))).read_text(encoding="utf-8")
