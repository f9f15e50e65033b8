"""A day's limits hold whoever spends; what is known of a worker is known to every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from obsmem.store.memory import MemoryStore
from obsmem.store.spending import Knowledge, Spending

ROOT = Path(__file__).resolve().parents[2]
SPEND = """
import sys
sys.path.insert(0, sys.argv[1])
from obsmem.store.memory import MemoryStore
from obsmem.store.spending import Spending
spending = Spending(MemoryStore(sys.argv[2]).connection)
sys.stdin.readline()
print(sum(spending.reserve("w", 1000, 100, 0, None, 5_000) > 0 for _ in range(40)))
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def spending(path: str) -> Spending:
    return Spending(MemoryStore(path).connection)


def test_a_limit_on_tokens_counts_the_call_that_is_asked_for(spending: Spending) -> None:
    assert spending.reserve("a", 1000, 600, 0, None, 1000)
    assert not spending.reserve("b", 1000, 401, 0, None, 1000)
    assert spending.reserve("b", 1000, 400, 0, None, 1000)
    assert spending.spent(0) == (2, 1000)


def test_a_limit_on_calls(spending: Spending) -> None:
    assert [bool(spending.reserve("a", 1000, 1, 0, 2, None)) for _ in range(3)] == [True, True, False]
    assert not spending.reserve("a", 1000, 1, 0, 0, None), "a limit of nothing lets nothing through"


def test_yesterday_does_not_count(spending: Spending) -> None:
    assert spending.reserve("a", 999, 1000, 0, None, 1000)
    assert spending.reserve("a", 1000, 1000, 1000, None, 1000)
    assert spending.spent(1000) == (1, 1000)


def test_what_was_not_used_can_be_spent_again(spending: Spending) -> None:
    reservation = spending.reserve("a", 1000, 900, 0, None, 1000)
    spending.settle(reservation, 200)
    assert spending.spent(0) == (1, 200)
    assert spending.reserve("a", 1000, 800, 0, None, 1000)


def test_processes_that_reserve_at_once_stay_within_the_limit(spending: Spending, path: str) -> None:
    command = [sys.executable, "-c", SPEND, str(ROOT), path]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    granted = [int(process.communicate()[0]) for process in running]
    assert sum(granted) == 50 and spending.spent(0) == (50, 5_000)


def test_what_one_learns_of_a_worker_another_knows(spending: Spending, path: str) -> None:
    other = Spending(MemoryStore(path).connection)
    assert other.known("a") == Knowledge()
    spending.leave_alone("a", 5000, "over its quota")
    spending.learn_window("a", 8192)
    assert other.known("a") == Knowledge(8192, 1.0, 5000, "over its quota")
    spending.leave_alone("a", 3000, "not reached")
    assert other.known("a").until == 5000, "the longer one holds"
    other.trust_again("a")
    assert spending.known("a") == Knowledge(8192)


def test_the_ratio_follows_what_is_counted_within_bounds(spending: Spending) -> None:
    for _ in range(30):
        spending.measure("a", 1000, 1400)
    assert spending.known("a").ratio == pytest.approx(1.4, abs=0.01)
    for _ in range(30):
        spending.measure("a", 1000, 900_000)
    assert spending.known("a").ratio == pytest.approx(3.0, abs=0.01)
    spending.measure("a", 0, 10)
    spending.measure("a", 10, 0)
    assert spending.known("a").ratio == pytest.approx(3.0, abs=0.01)
