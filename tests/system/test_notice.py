"""What the user is told is told once, by one of several hooks at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from obsmem.system.notice import (
    TROUBLE_TOLD,
    WELCOME_TEXT,
    clear_trouble,
    is_welcome,
    leave_lack,
    leave_trouble,
    leave_welcome,
    take_notice,
)

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_mark_nothing_is_told(tmp_path: Path) -> None:
    assert take_notice(str(tmp_path / "none"), "codex") == ""
    assert not (tmp_path / "none").exists()


def test_a_welcome_is_told_once_to_its_own_harness(tmp_path: Path) -> None:
    leave_welcome(str(tmp_path), "codex")
    assert is_welcome(str(tmp_path), "codex") and not is_welcome(str(tmp_path), "cursor")
    assert take_notice(str(tmp_path), "cursor") == ""
    assert take_notice(str(tmp_path), "codex") == WELCOME_TEXT
    assert take_notice(str(tmp_path), "codex") == "" and not is_welcome(str(tmp_path), "codex")


def test_what_is_missing_comes_before_a_welcome_and_names_a_command_that_exists(tmp_path: Path) -> None:
    leave_welcome(str(tmp_path), "codex")
    leave_lack(str(tmp_path), ["pyyaml", "filelock"], "/usr/bin/python3")
    told = take_notice(str(tmp_path), "codex")
    assert "/usr/bin/python3 lacks pyyaml, filelock" in told
    python, script = told.split('"')[1::2]
    assert os.path.exists(python) and os.path.isfile(script) and told.endswith('" setup')
    assert take_notice(str(tmp_path), "codex") == WELCOME_TEXT


def test_trouble_is_told_once_a_day_and_not_once_it_is_over(tmp_path: Path) -> None:
    home = str(tmp_path)
    leave_trouble(home, "StoreError")
    clear_trouble(home)
    assert take_notice(home, "codex") == ""
    leave_trouble(home, "StoreError")
    told = take_notice(home, "codex")
    assert "(StoreError)" in told and told.endswith('" doctor')
    leave_trouble(home, "StoreError")
    assert take_notice(home, "codex") == ""
    yesterday = time.time() - 90_000
    os.utime(tmp_path / TROUBLE_TOLD, (yesterday, yesterday))
    leave_trouble(home, "StoreError")
    assert take_notice(home, "codex") == told


def test_of_many_processes_one_tells(tmp_path: Path) -> None:
    leave_welcome(str(tmp_path), "codex")
    code = "import sys; from obsmem.system.notice import take_notice; print(take_notice(sys.argv[1], 'codex'), end='')"
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(6)]
    assert sorted(process.communicate()[0] for process in running) == [""] * 5 + [WELCOME_TEXT]
