"""The words of ``run``: its prompts, what is the program's own, and what it refuses. The loop itself runs in tests/e2e."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from obsmem.core.errors import UsageError
from obsmem.interfaces.arguments_run import split_run
from obsmem.interfaces.cli import main
from obsmem.interfaces.commands_run import split_prompts
from obsmem.system.shown import Streams, run_shown
from obsmem.tasks.run_session import harness_of, turn_line


def ours() -> Streams:
    return Streams(sys.stdout.buffer, sys.stderr.buffer)


@pytest.mark.parametrize(
    ("text", "prompts"),
    [
        ("", []),
        ("one\n\n two \r\n", ["one", "two"]),
        ("one\nand more\n---\n\n---\ntwo\u2028still two\n", ["one\nand more", "two\u2028still two"]),
        ("---\n", []),
    ],
)
def test_prompts_stand_a_line_or_between_lines_of_dashes(text: str, prompts: list[str]) -> None:
    assert split_prompts(text) == prompts


def test_what_stands_behind_two_dashes_is_the_programs_own() -> None:
    words = ["run", "codex", "--style", "anchor", "--", "--json", "--", "x"]
    assert split_run(words) == (["run", "codex", "--style", "anchor"], ["--json", "--", "x"])
    assert split_run(["pin", "--", "-x"]) == (["pin", "--", "-x"], [])


def test_a_harness_is_known_by_its_programs_name_and_one_that_nobody_ran_so_is_refused() -> None:
    assert harness_of("claude") == harness_of("claude-code") == "claude-code"
    with pytest.raises(UsageError, match="does not"):
        harness_of("cursor-agent")
    with pytest.raises(UsageError, match="Known are"):
        harness_of("vim")


def test_each_program_gets_the_users_arguments_and_the_session() -> None:
    assert turn_line("claude-code", "claude", ["--model", "haiku"], "") == ["claude", "-p", "--model", "haiku"]
    assert turn_line("codex", "codex", ["--json"], "t1") == ["codex", "exec", "--json", "resume", "t1", "-"]
    assert turn_line("opencode", "opencode", [], "s1") == ["opencode", "run", "--session", "s1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "claude", "--rotate-at", "1.5"], "between 0 and 1"),
        (["run", "claude", "--least-turns", "0"], "from 1 on"),
        (["run", "claude", "--turn-seconds", "never"], "number of seconds"),
    ],
)
def test_a_slip_is_named(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_program_that_is_not_here_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["run", "codex"]) != 0
    assert "None of codex is on this machine's PATH" in capsys.readouterr().err


def test_what_a_program_says_is_passed_on_and_its_end_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys; t = sys.stdin.read(); print('x' * 100_000 + t); print('aside', file=sys.stderr); sys.exit(7)"
    shown = run_shown([sys.executable, "-c", code], str(tmp_path), os.environ, 30.0, "héllo", ours())
    said = capfd.readouterr()
    assert shown.status == 7
    assert said.out.endswith("xhéllo\n") and len(said.out) == 100_006 and said.err == "aside\n"
    assert "xhéllo" in shown.tail and "aside" in shown.tail and len(shown.tail) < 70_000


def test_a_program_is_killed_at_its_deadline_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    shown = run_shown([sys.executable, "-c", code], str(tmp_path), os.environ, 2.0, "", ours())
    assert shown.status is None
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    end = time.monotonic() + 20
    while time.monotonic() < end and _runs(pid):
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
