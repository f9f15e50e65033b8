"""The fault bench's parts at a few points each; ``python -m bench.faults`` tries them all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.faults import shim
from bench.faults.__main__ import PARTS

ROOT = Path(__file__).resolve().parents[1]
FAST = ("instants", "growing", "questions", "hostile", "secrets", "read-only")
SLOW = [name for name in PARTS if name not in FAST]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the bench forks, and looks at /proc")


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.faults", "--short", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=900)


@pytest.mark.parametrize("name", [*FAST, *[pytest.param(name, marks=pytest.mark.slow) for name in SLOW]])
def test_after_a_fault_nothing_is_lost_nothing_doubled_and_nothing_let_out(name: str) -> None:
    done = bench("--part", name)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


DYING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from bench.faults import shim
shim.arm(shim.SYNC, shim.DIE, 3)
for number in range(1, 6):
    print(number, flush=True)
    file = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    os.fsync(file)
"""


def test_the_shim_ends_a_process_at_the_call_that_it_was_armed_for(tmp_path: Path) -> None:
    path = shim.build()
    if not path:
        pytest.skip("no C compiler")
    command = [sys.executable, "-c", DYING, str(ROOT), str(tmp_path / "file")]
    done = subprocess.run(command, env={**os.environ, shim.PRELOAD: path}, capture_output=True, timeout=60)
    assert done.returncode == -9
    assert done.stdout == b"1\n2\n3\n"


def test_a_seed_gives_the_same_inputs_again() -> None:
    from bench.faults.mutate import mutated

    seeds = [b'{"type": "user", "a": [1, {"b": "c"}]}\n{"type": "x"}\n', b"plain words"]

    def inputs(seed: int) -> list[bytes]:
        chance = random.Random(seed)
        return [mutated(chance.choice(seeds), seeds, chance) for _ in range(200)]

    assert inputs(3) == inputs(3) != inputs(4)
    assert len(set(inputs(3))) > 150
