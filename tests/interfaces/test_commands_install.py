"""The first ten minutes, as a person types them: install, what a session then says, doctor, uninstall, setup."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsmem.harnesses import load
from obsmem.system import environment
from obsmem.system.launcher import calls, launcher_path, recall_path
from obsmem.system.notice import WELCOME_TEXT
from obsmem.system.paths import data_home
from obsmem.tasks import install as installing
from obsmem.tasks.called import recall_command
from tests.interfaces.place import LIMIT, SCRIPT

Run = Callable[..., Any]

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's home with one harness's folder in it, and a PATH with no harness program on it."""
    home = Path(os.path.expanduser("~"))
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{\n  "model": "x"\n}\n', encoding="utf-8")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return home


def config(harness: str) -> Path:
    return Path(load(harness).config_file(installing.user_home(), ""))


def trials(out: str, harness: str) -> str:
    """The line under a harness's name that tells of its handlers."""
    lines = out.split("\n")
    (at,) = [number for number, line in enumerate(lines) if line.startswith(f"{harness}: ")]
    return lines[at + 1]


@POSIX
def test_install_shows_the_difference_runs_each_handler_and_names_what_is_left_to_do(user: Path, run: Run) -> None:
    (user / ".codex").mkdir()
    done = run("install", "--yes")
    assert done.status == 0, done
    assert '+    "SessionStart": [' in done.out and '+  "model": "x",' in done.out
    for harness, start in (("claude-code", "SessionStart 4 parts "), ("codex", "SessionStart ")):
        assert trials(done.out, harness).count("✓") == 5 and start in trials(done.out, harness)
    assert "4 parts" not in trials(done.out, "codex"), "one handler gives it the whole block"
    assert "start `codex` once and approve" in done.out
    assert "observer: extractive; no model; add one under 'workers' in" in done.out
    again = run("install", "--yes")
    assert again.status == 0 and "claude-code: nothing to do" in again.out and "+++" not in again.out
    assert "start `codex` once" in again.out, "the trust is still missing"


@POSIX
def test_the_next_session_says_once_that_memory_is_on(user: Path, run: Run) -> None:
    run("install", "--yes")
    run("install", "--yes")  # which runs the handlers again
    (command,) = [
        handler["command"]
        for group in json.loads(config("claude-code").read_bytes())["hooks"]["SessionStart"]
        for handler in group["hooks"]
        if handler["command"].endswith("--part 1/4")
    ]
    given = json.dumps({"session_id": "s", "transcript_path": "/nowhere/s.jsonl", "cwd": "/", "source": "startup"})
    said = [
        subprocess.run(["/bin/sh", "-c", command], input=given, capture_output=True, text=True).stdout for _ in "12"
    ]
    assert json.loads(said[0]) == {"systemMessage": WELCOME_TEXT} and said[1] == ""


def test_a_dry_run_writes_nothing(user: Path, run: Run) -> None:
    before = (user / ".claude" / "settings.json").read_bytes()
    done = run("install", "--dry-run", "claude-code", "codex")
    assert done.status == 0 and done.out.count("+++") == 4  # hooks, and the server of the tools, of each
    assert (user / ".claude" / "settings.json").read_bytes() == before
    assert not os.path.exists(data_home()) and not (user / ".codex").exists()


def test_nothing_is_written_without_a_yes(user: Path, run: Run) -> None:
    done = run("install")
    assert done.status == 1 and "--yes" in done.err
    assert b"hooks" not in (user / ".claude" / "settings.json").read_bytes()


def test_where_no_harness_is_found_the_names_are_told(user: Path, run: Run) -> None:
    (user / ".claude" / "settings.json").unlink()
    (user / ".claude").rmdir()
    done = run("install", "--yes")
    assert done.status == 2 and "codex" in done.err and done.err.count("\n") == 1


def test_an_unknown_harness_is_refused_before_anything_is_done(user: Path, run: Run) -> None:
    assert run("install", "--yes", "claude-code", "emacs").status == 2
    assert b"hooks" not in (user / ".claude" / "settings.json").read_bytes()


@POSIX
def test_what_one_harness_lacks_does_not_keep_another_from_being_done(user: Path, run: Run) -> None:
    (user / ".codex").mkdir()
    (user / ".codex" / "hooks.json").write_text("{ broken", encoding="utf-8")
    done = run("install", "--yes", "codex", "claude-code")
    assert done.status == 1 and "claude-code: installed" in done.out
    assert done.err.startswith("codex: ") and done.err.count("\n") == 1
    assert (user / ".codex" / "hooks.json").read_text(encoding="utf-8") == "{ broken"


@POSIX
def test_uninstall_gives_the_file_back_and_keeps_the_data(user: Path, run: Run) -> None:
    before = config("claude-code").read_bytes()
    run("install", "--yes", "--allow-recall")
    assert "recall" in config("claude-code").read_text(encoding="utf-8")
    done = run("uninstall")
    assert done.status == 0 and "restored byte for byte" in done.out and data_home() in done.out
    assert config("claude-code").read_bytes() == before
    assert os.path.isdir(data_home()) and not os.path.exists(launcher_path(data_home()))
    assert "Nothing of ours" in run("uninstall").out


@POSIX
def test_uninstall_removes_the_data_only_when_told_and_agreed(user: Path, run: Run) -> None:
    run("install", "--yes")
    assert run("uninstall", "--data").status == 1 and os.path.isdir(data_home())
    assert run("uninstall", "--data", "--yes").status == 0 and not os.path.exists(data_home())


def test_a_folder_that_is_no_data_folder_is_never_removed(
    user: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(user))
    assert run("uninstall", "--data", "--yes").status == 1
    assert (user / ".claude" / "settings.json").exists()


@POSIX
def test_a_hook_that_outlives_the_checkout_still_exits_well(user: Path, run: Run) -> None:
    run("install", "--yes")
    launcher = Path(launcher_path(data_home()))
    text = launcher.read_text(encoding="utf-8").replace(str(SCRIPT), "/gone/observational_memory.py")
    launcher.write_text(text, encoding="utf-8")
    done = subprocess.run([str(launcher), "hook", "claude-code", "Stop"], input=b"{}", capture_output=True, env={})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@POSIX
def test_recall_runs_by_its_launcher_with_no_environment_at_all(user: Path, run: Run, stored: Path) -> None:
    run("install", "--yes")
    assert recall_command() == recall_path(str(stored))
    done = subprocess.run(
        ["env", "-i", recall_path(str(stored)), f"g3vo.{LIMIT}"], capture_output=True, encoding="utf-8"
    )
    assert "30 per minute per address" in done.stdout, done.stderr
    assert run("block").out.count(recall_path(str(stored))) >= 1


@POSIX
@pytest.mark.parametrize("name", ["with blank", "it's", 'a "b"', "$HOME", "ünï"])
def test_paths_that_need_quoting_work_in_every_command(user: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:  # fmt: skip
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(user / name))
    done = run("install", "--yes", "--allow-recall", "claude-code", "codex", "cursor")
    assert done.status == 0 and "✗" not in done.out, done
    for harness in ("claude-code", "codex", "cursor"):
        assert trials(done.out, harness).count("✓") == 5
    assert run("install", "--yes").out.count("nothing to do") >= 1
    run("uninstall")
    assert b"hooks" not in config("claude-code").read_bytes()


def test_a_launcher_is_known_by_its_whole_path() -> None:
    assert calls("/d/launch hook x Stop", "/d/launch") and calls("'/d it'\"'\"'s/launch' hook", "/d it's/launch")
    assert not calls("/d/launcher hook", "/d/launch") and not calls("/d/launch.cmd hook", "/d/launch")


@POSIX
def test_json_tells_programs_the_same(user: Path, run: Run) -> None:
    value = json.loads(run("install", "--yes", "--json").out)
    (one,) = value["harnesses"]
    assert (one["harness"], one["outcome"], one["wrong"]) == ("claude-code", "installed", [])
    assert [trial["event"] for trial in one["trials"]].count("SessionStart") == 4
    files = json.loads(run("uninstall", "--json").out)["files"]
    assert {file["harness"] for file in files} == {"claude-code"}
    done = [file["what"] for file in files if "/commands/" not in file["path"].replace("\\", "/")]
    assert sorted(done) == ["removed, as it was not there before", "restored byte for byte"]


# --- setup


def wheel(folder: Path, project: str, module: str) -> None:
    """A package that has nothing but its name."""
    stem = f"{project}-99.0"
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: 99.0\n"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{module}.py", "")
        archive.writestr(f"{stem}.dist-info/METADATA", metadata)
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")


def bare(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command under an interpreter that has nothing but the standard library."""
    python = [os.path.realpath(sys.executable), "-I", "-S"]
    return subprocess.run(
        [*python, str(SCRIPT), *words], capture_output=True, encoding="utf-8", env={**os.environ, **variables}
    )


def test_setup_makes_an_environment_with_the_packages_and_everything_runs_under_it(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for module, project in environment.NEEDED.items():
        wheel(wheels, project, module)
    monkeypatch.setattr(sys, "executable", os.path.realpath(sys.executable))
    real = environment.look
    monkeypatch.setattr(environment, "look", lambda python: None if python == sys.executable else real(python))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    python = environment.set_up(data_home())
    assert python == environment.environment_python(data_home())
    assert (Path(data_home()) / "interpreter").read_text(encoding="utf-8") == python
    assert environment.look(python) == (sys.version_info[:2], [])
    assert environment.set_up(data_home()) == python, "a second time finds it"


def test_setup_says_in_one_sentence_that_no_registry_can_be_reached(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = bare("setup", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_TIMEOUT="1")
    if "setup again with a network" not in done.stderr:
        assert environment.look(os.path.realpath(sys.executable)) == (sys.version_info[:2], [])
        pytest.skip("the interpreter behind the tests' environment has the packages itself")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert not (Path(data_home()) / "interpreter").exists()


def test_a_command_without_the_packages_names_setup(user: Path) -> None:
    done = bare("sessions")
    assert done.returncode == 1 and "'setup'" in done.stderr and done.stderr.count("\n") == 1


def test_doctor_and_uninstall_run_without_the_packages(user: Path) -> None:
    assert "not installed" in bare("doctor").stdout
    assert bare("uninstall").returncode == 0


@POSIX
def test_a_config_that_broke_since_keeps_the_launcher_so_that_no_hook_fails(user: Path, run: Run) -> None:
    run("install", "--yes")
    broken = config("claude-code").read_text(encoding="utf-8") + "}"
    config("claude-code").write_text(broken, encoding="utf-8")
    done = run("uninstall", "--data", "--yes")
    assert done.status == 1 and done.err.startswith("claude-code: ") and "The launcher stays" in done.out
    assert config("claude-code").read_text(encoding="utf-8") == broken
    assert os.path.exists(launcher_path(data_home()))
