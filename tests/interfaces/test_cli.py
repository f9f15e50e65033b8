"""The command line as a whole: its words, its failures as sentences, its behaviour in pipes and without packages."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from obsmem import __version__
from obsmem.interfaces import cli
from obsmem.store import archive
from tests.interfaces.conftest import Run
from tests.interfaces.place import DEMO, ENTRIES, LIMIT, SCRIPT, Place, heed_interrupts, sleeps, until

COMMANDS = ("replay", "try", "demo", "ingest", "sync", "recall", "sessions", "show", "notes", "block", "status", "usage", "config", "forget", "fsck", "index", "maintain")  # fmt: skip
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX systems")


def one_sentence(error: str) -> bool:
    """True for one line that says something and ends like a sentence."""
    return error.count("\n") == 1 and len(error) > 20 and error.rstrip()[-1] in ".'"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run: Run, command: str) -> None:
    output = run(command, "--help")
    assert output.status == 0 and f"usage: observational-memory {command}" in output.out


def test_version(run: Run) -> None:
    assert run("--version").out == __version__ + "\n"


@pytest.mark.parametrize("arguments", [(), ("bogus",), ("recall",), ("block", "--budget", "20"), ("recall", "x", "--context", "-1")])  # fmt: skip
def test_words_that_are_off_end_with_2(run: Run, arguments: tuple[str, ...]) -> None:
    output = run(*arguments)
    assert output.status == 2 and output.err.startswith("usage: ") and output.out == ""


FAILURES = [
    (("recall", "xyz"), 2, "is no id"),
    (("recall", "abcdef0123"), 3, "notes' lists them"),
    (("recall", "zzzz.1"), 3, "sessions' lists them"),
    (("recall", "g3vo.99999"), 3, f"its entries go from 0 to {ENTRIES - 1}"),
    (("recall", "g3vo.0", "--range", "5"), 2, "0:"),
    (("recall", "g3vo.0", "--range", "50:10"), 2, "the smaller first"),
    (("recall", "g3vo.0", "--range", "9999999:99999999"), 2, "is all of it"),
    (("show", "g3vo", "x"), 2, "12:40"),
    (("show", "g3vo", "9:3"), 2, "12:40"),
    (("show", "g3vo", "500"), 3, f"they go from 0 to {ENTRIES - 1}"),
    (("show", "nobody"), 3, "sessions' lists all 4"),
    (("notes", "--relevance", "huge"), 2, "low, medium, high, critical"),
    (("replay", "/nowhere"), 3, "There is no file"),
    (("ingest", "/nowhere"), 3, "There is no file"),
    (("demo", "/nowhere"), 3, "holds no session"),
    (("try",), 3, "No harness has kept a session"),
    (("try", "nothing-like-it"), 3, "sync --list"),
    (("forget", "nobody"), 3, "sessions"),
    (("forget", "codex/nobody", "--undo"), 3, "HARNESS/SESSION-ID"),
    (("hooks", "nobody"), 2, "There is no harness"),
    (("sync", "--harness", "nobody"), 2, "There is no harness"),
    (("ingest", str(DEMO), "--harness", "nobody"), 2, "There is no harness"),
    (("replay", str(DEMO), "--at", "x"), 2, "150000t"),
    (("replay", str(DEMO), "--at", "-3"), 2, "150000t"),
]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(("arguments", "status", "hint"), FAILURES, ids=[" ".join(one[0])[-30:] for one in FAILURES])
def test_a_failure_is_one_sentence_that_says_what_to_do(
    run: Run, arguments: tuple[str, ...], status: int, hint: str
) -> None:
    output = run(*arguments)
    assert output.status == status
    assert one_sentence(output.err) and hint in output.err
    assert output.out == ""


def test_hints_name_the_program_as_it_is_called_here(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert f"Run '{sys.executable} {SCRIPT} ingest PATH'" in run("sessions").err


@pytest.mark.parametrize("arguments", [("sessions",), ("status",), ("recall", "3fa9c1d"), ("notes",), ("block",)])
def test_without_a_store_a_command_says_how_to_make_one(run: Run, arguments: tuple[str, ...]) -> None:
    output = run(*arguments)
    assert output.status in (3, 5) and one_sentence(output.err) and "ingest PATH" in output.err


def test_a_damaged_store_is_a_sentence(run: Run, stored: Path) -> None:
    (stored / "archive.db").write_bytes(b"no database at all" * 100)
    output = run("sessions")
    assert output.status == 5 and one_sentence(output.err)


def test_a_wrong_configuration_names_key_and_file(run: Run, stored: Path) -> None:
    path = Path(os.environ["OBSERVATIONAL_MEMORY_CONFIG"])
    path.write_text("budget_tokens: lots\n", encoding="utf-8")
    output = run("status")
    assert output.status == 2 and one_sentence(output.err)
    assert "budget_tokens" in output.err and str(path) in output.err


def test_what_the_machine_refuses_is_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch, stored: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/data/archive.db")

    monkeypatch.setattr(archive.Archive, "sessions", full)
    output = run("sessions")
    assert output.status == 1 and one_sentence(output.err)
    assert "/data/archive.db: No space left on device" in output.err


def test_an_interruption_says_that_nothing_is_lost(run: Run, monkeypatch: pytest.MonkeyPatch, stored: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(archive.Archive, "sessions", interrupt)
    output = run("sessions")
    assert output.status == 130 and "run the command again" in output.err


def interrupted(child: subprocess.Popen[bytes]) -> int | None:
    """Press Ctrl-C as a user does, again after a while: Python notices one that comes on the way into a read only after
    that read, and this one never ends."""
    for _ in range(6):
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=10)
    return child.poll()


@posix_only
def test_ctrl_c_ends_a_waiting_command_without_a_traceback(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    command = [sys.executable, str(SCRIPT), "replay", "-"]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=place.environment, preexec_fn=heed_interrupts
    )
    assert child.stdin is not None and child.stderr is not None
    child.stdin.write(b"x" * 200_000)  # more than a pipe holds: once it is through, the command reads
    child.stdin.flush()
    assert until(lambda: sleeps(child.pid))
    assert interrupted(child) == 130
    error = child.stderr.read()
    child.stdin.close()
    assert b"Traceback" not in error and b"Interrupted." in error


@posix_only
@pytest.mark.parametrize("arguments", [("sessions",), ("show", "g3vo", "--whole"), ("block", "g3vo"), ("recall", "g3vo.0", "--raw")])  # fmt: skip
def test_a_pipe_that_closes_early_is_no_failure(stored: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=os.environ)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_knows_only_ascii_shows_question_marks(stored: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, str(SCRIPT), "block", "g3vo"]
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0 and done.stderr == b"" and b"## Now" in done.stdout and b" ? " in done.stdout


def test_missing_packages_are_named_with_the_command_that_installs_them(tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(SCRIPT), "status"]
    done = subprocess.run(command, capture_output=True, env=os.environ)
    if done.returncode == 0:
        pytest.skip("this interpreter has the packages outside of its site folders")
    assert done.returncode == 1 and done.stdout == b""
    assert b"-m pip install pyyaml jsonschema platformdirs filelock" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("word", "status"), [("hook", 0), ("status", 1)])
def test_a_script_that_lost_its_folder_says_so(tmp_path: Path, word: str, status: int) -> None:
    lonely = tmp_path / "observational_memory.py"
    lonely.write_bytes(SCRIPT.read_bytes())
    done = subprocess.run([sys.executable, "-I", str(lonely), word], capture_output=True, input=b"")
    assert done.returncode == status and done.stdout == b""
    assert b"must stand beside its folder 'obsmem'" in done.stderr


def test_the_script_works_through_a_link_and_from_any_folder(stored: Path, tmp_path: Path) -> None:
    link = tmp_path / "om"
    link.symlink_to(SCRIPT)
    done = subprocess.run([sys.executable, str(link), "sessions"], capture_output=True, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0 and b"g3vo" in done.stdout


def test_recall_is_a_command_of_its_own(monkeypatch: pytest.MonkeyPatch, stored: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["recall", f"g3vo.{LIMIT}"])
    assert cli.recall_main() == 0
    assert "30 per minute per address" in capsys.readouterr().out


def test_the_launcher_runs_commands_under_the_interpreter_that_has_the_packages(tmp_path: Path) -> None:
    """Hooks need no packages and run without them; a command called through the same launcher finds its own way."""
    (tmp_path / "interpreter").write_text(sys.executable, encoding="utf-8")
    environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": str(tmp_path)}
    bare = [os.path.realpath(sys.executable), "-I", "-S", str(SCRIPT), "config", "--json"]
    done = subprocess.run(bare, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert "needs the Python packages" not in done.stderr
    assert done.returncode == 0, done.stderr
