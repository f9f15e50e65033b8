"""Somebody else's program runs to its end, or is gone at its deadline with all that it started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from obsmem.system.programs import ask_program, run_program
from tests.interfaces.place import alive, until

posix_only = pytest.mark.skipif(os.name != "posix", reason="process groups are a thing of POSIX systems")
HERE = {"PATH": os.environ.get("PATH", os.defpath)}


@posix_only
def test_what_it_says_and_how_it_ends_are_told(tmp_path: Path) -> None:
    done = run_program(["sh", "-c", "pwd; echo ü >&2; exit 3"], str(tmp_path), HERE, 30)
    assert (done.status, done.stdout.strip(), done.stderr.strip()) == (3, str(tmp_path.resolve()), "ü")
    joined = run_program(["sh", "-c", "echo a; echo b >&2"], str(tmp_path), HERE, 30, joined=True)
    assert (joined.stdout, joined.stderr) == ("a\nb\n", "")
    with pytest.raises(OSError):
        run_program([str(tmp_path / "none")], str(tmp_path), HERE, 30)


@posix_only
def test_at_its_deadline_all_of_its_group_is_gone(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run_program(["sh", "-c", "sleep 300 & echo $! > pid; wait"], str(tmp_path), HERE, 1)
    assert done.status is None and time.monotonic() - began < 100
    assert until(lambda: not alive(int((tmp_path / "pid").read_text(encoding="utf-8"))))


@posix_only
def test_who_is_left_behind_does_not_hold_it_up(tmp_path: Path) -> None:
    done = run_program(["sh", "-c", "sleep 300 & echo $!"], str(tmp_path), HERE, 100)
    assert done.status == 0 and until(lambda: not alive(int(done.stdout)))


ECHO = "while read line; do echo got $line; done; echo end"


@posix_only
def test_lines_are_answered_until_enough_is_said_and_then_it_ends_by_itself(tmp_path: Path) -> None:
    done = ask_program(["sh", "-c", ECHO], str(tmp_path), HERE, 30, ["a", "b"], lambda said: "got b" in said)
    assert done == (0, "got a\ngot b\nend\n", "")


@posix_only
def test_a_program_that_answers_nothing_is_gone_at_its_deadline(tmp_path: Path) -> None:
    done = ask_program(["sh", "-c", "echo $$; exec sleep 300"], str(tmp_path), HERE, 1, ["a"], lambda said: "b" in said)
    assert done.status is None and until(lambda: not alive(int(done.stdout)))


@posix_only
def test_a_program_that_ends_before_it_answers_is_told_by_its_status(tmp_path: Path) -> None:
    done = ask_program(
        ["sh", "-c", "echo no >&2; exit 3"], str(tmp_path), HERE, 30, ["a"] * 9, lambda said: "b" in said
    )
    assert done == (3, "", "no\n")
    with pytest.raises(OSError):
        ask_program([str(tmp_path / "none")], str(tmp_path), HERE, 30, ["a"], bool)


def test_nobody_answers_its_questions(tmp_path: Path) -> None:
    assert run_program(["cat"], str(tmp_path), HERE, 30).stdout == ""
