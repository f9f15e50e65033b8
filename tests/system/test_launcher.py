"""The launchers: their path and the commands that name them never change, and where nothing can be run they say nothing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from obsmem.system import launcher

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="these are the POSIX launchers")

PLACES = ["plain", "with blank", "it's", 'a "quoted" one', "$HOME `id`", "ünï", "-x"]


def script(folder: Path) -> str:
    path = folder / "script.py"
    path.write_text("import os, sys\nprint(sys.argv[1:], os.environ['OBSERVATIONAL_MEMORY_HOME'])\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", PLACES)
def test_a_quoted_path_is_one_word_of_a_shell_command(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    path = launcher.write_launcher(str(home), script(tmp_path))
    assert shlex.split(launcher.quoted(path)) == [path]
    line = f"{launcher.quoted(path)} hook x 'two words'"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, encoding="utf-8", env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == f"['hook', 'x', 'two words'] {home}\n", done.stderr
    assert launcher.calls(line, path)


@pytest.mark.parametrize("name", PLACES)
def test_recall_runs_under_the_recorded_interpreter(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    path = launcher.write_recall(str(home), script(tmp_path))
    launcher.record_interpreter(str(home))
    done = subprocess.run(["env", "-i", path, "7c2e.812"], capture_output=True, encoding="utf-8")
    assert done.stdout == f"['recall', '7c2e.812'] {home}\n", done.stderr


def test_writing_again_changes_nothing_and_another_script_changes_the_content_alone(tmp_path: Path) -> None:
    path = launcher.write_launcher(str(tmp_path), script(tmp_path))
    before = os.stat(path)
    assert launcher.write_launcher(str(tmp_path), script(tmp_path)) == path
    assert os.stat(path) == before and before.st_mode & 0o777 == 0o700
    assert launcher.write_launcher(str(tmp_path), "/elsewhere/script.py") == path
    assert "/elsewhere/script.py" in Path(path).read_text(encoding="utf-8")


def test_without_its_script_the_hooks_launcher_is_silent_and_the_other_one_says_so(tmp_path: Path) -> None:
    for write, status, told in (
        (launcher.write_launcher, 0, b""),
        (launcher.write_recall, 1, b"is gone from /nowhere"),
    ):
        done = subprocess.run([write(str(tmp_path), "/nowhere/script.py"), "x"], capture_output=True, env={})
        assert done.returncode == status and done.stdout == b"" and told in done.stderr


TOO_OLD = "case $3 in -c) exit 1;; esac; exit 77"
STUBS = ["exit 49", "echo 'python3: command not found' >&2; exit 127", "cat; exit 1", TOO_OLD]


@pytest.mark.parametrize("write", [launcher.write_launcher, launcher.write_recall])
@pytest.mark.parametrize("stub", STUBS)
def test_what_is_only_called_python_is_passed_over(write: Callable[[str, str], str], stub: str, tmp_path: Path) -> None:
    path = write(str(tmp_path / "home"), script(tmp_path))
    text = Path(path).read_text(encoding="utf-8")
    for real in {sys.executable, os.path.realpath(sys.executable)}:
        text = text.replace(real, "/nowhere/python3")
    Path(path).write_text(text, encoding="utf-8")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").write_text(f"#!/bin/sh\n{stub}\n", encoding="utf-8")
    (folder / "python3").chmod(0o755)
    place = {"PATH": f"{folder}:/nowhere"}
    done = subprocess.run([path, "x"], input=b"payload", capture_output=True, env=place)
    silent = write is launcher.write_launcher
    assert (done.returncode, done.stdout) == (0 if silent else 1, b"")
    assert done.stderr == b"" if silent else b"No Python was found" in done.stderr
    (folder / "python").symlink_to(sys.executable)
    done = subprocess.run([path, "x"], input=b"payload", capture_output=True, env=place)
    assert done.returncode == 0 and b"'x']" in done.stdout, done.stderr


def test_without_any_interpreter_the_hooks_launcher_is_silent(tmp_path: Path) -> None:
    path = launcher.write_launcher(str(tmp_path), script(tmp_path))
    text = Path(path).read_text(encoding="utf-8").replace(os.path.realpath(sys.executable), "/nowhere/python3")
    Path(path).write_text(text, encoding="utf-8")
    done = subprocess.run([path, "hook"], capture_output=True, env={"PATH": "/nowhere"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("/d/launch hook x Stop", True),
        ('"/d/launch" hook x Stop', True),
        ("Bash(/d/launch:*)", True),
        ("/d/launch", True),
        ("/d/launcher hook x", False),
        ("/d/launch.cmd hook x", False),
        ("/d/launch-other hook x", False),
        ("/e/launch hook x", False),
    ],
)
def test_a_command_is_ours_if_it_names_the_launcher(text: str, known: bool) -> None:
    assert launcher.calls(text, "/d/launch") is known
