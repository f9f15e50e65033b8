"""Locks are exclusive, free when their owner dies, and never waited for where that was not asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from obsmem.system.lock import SLOTS, hold, owner, try_hold, try_slot

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from obsmem.system.lock import hold, try_hold, try_slot
take = {"try": lambda: try_hold(sys.argv[2], "it"), "slot": lambda: try_slot(sys.argv[2])}[sys.argv[3]]
with take() as held:
    print(held, flush=True)
    time.sleep(60)
"""


def holder(home: Path, kind: str = "try") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(ROOT), str(home), kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_a_lock_is_free_again_when_its_owner_is_killed(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with try_hold(str(tmp_path), "it") as held:
        assert not held
    with try_hold(str(tmp_path), "another") as held:
        assert held
    assert owner(str(tmp_path), "it") == process.pid
    with pytest.raises(TimeoutError, match="'it'"), hold(str(tmp_path), "it", seconds=0.05):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with try_hold(str(tmp_path), "it") as held:
        assert held
        assert owner(str(tmp_path), "it") == os.getpid()
    with hold(str(tmp_path), "it", seconds=0.05):
        pass


def test_there_are_two_slots(tmp_path: Path) -> None:
    processes = [holder(tmp_path, "slot") for _ in range(SLOTS)]
    with try_slot(str(tmp_path)) as held:
        assert not held
    processes[0].kill()
    processes[0].wait()
    with try_slot(str(tmp_path)) as held:
        assert held
    processes[1].kill()
    processes[1].wait()


def test_a_lock_is_released_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError), try_hold(str(tmp_path), "it"):
        raise KeyError
    with try_hold(str(tmp_path), "it") as held:
        assert held


def test_nobody_owns_what_was_never_held(tmp_path: Path) -> None:
    assert owner(str(tmp_path), "it") == 0
