"""The fault bench's parts at a few points each; ``python -m bench.faults`` tries them all."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.faults import process, shim
from bench.faults.__main__ import PARTS
from bench.faults.invariants import check
from bench.faults.kills import WHOLE
from bench.faults.place import Place

ROOT = Path(__file__).resolve().parents[1]
FAST = ("command-kills forget a session", "instants", "growing", "questions", "hostile", "secrets", "read-only")
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


# What a check says -> the statement, or the file cut short, that makes it true.
WRONG = {
    "is no whole block": "block.next",
    "have holes": "DELETE FROM entries WHERE (no & 0xffffffff) = 5",
    "cannot be read": "UPDATE entries SET sha256=zeroblob(32) WHERE (no & 0xffffffff) = 5",
    "and they differ": "UPDATE segments SET source=source + 1 WHERE no=(SELECT max(no) FROM segments)",
    "overlap": "INSERT INTO gaps SELECT session, first_seq + 1, last_seq + 1, '', 0 FROM coverage WHERE first_seq=0",
    "but ends at": "UPDATE coverage SET last_seq=9999 WHERE first_seq=(SELECT max(first_seq) FROM coverage)",
    "neither covered nor a gap": "DELETE FROM coverage WHERE first_seq=0",
    "calls answered for": "UPDATE worker_calls SET outcome='failed'",
    "which it was not shown": "UPDATE note_entries SET seq=9999 WHERE position=0",
    "of note_entries belong to no note": "DELETE FROM notes WHERE no=1",
    "of drops belong to no note": "INSERT INTO drops VALUES(NULL, 'x', 'nobody', 0, '', 0, 0)",
}


@pytest.fixture(scope="module")
def kept() -> Iterator[Place]:
    process.warm()
    with Place() as place:
        place.grow(WHOLE)
        place.maintain("--before-compact")
        assert check(place) == []
        place.keep("whole")
        yield place


@pytest.mark.parametrize("sentence", WRONG)
def test_each_check_of_a_data_folder_sees_what_it_is_for(sentence: str, kept: Place) -> None:
    kept.restore("whole")
    fault = WRONG[sentence]
    if " " not in fault:
        (file,) = Path(kept.home).rglob(fault)
        os.truncate(file, file.stat().st_size - 1)
    else:
        archived = any(table in fault for table in ("entries WHERE (no", "entries SET sha256", "segments"))
        path = os.path.join(kept.home, "archive.db" if archived else "memory.db")
        with closing(sqlite3.connect(path)) as database, database:
            assert database.execute(fault).rowcount
    assert [one for one in check(kept) if sentence in one]


def test_a_seed_gives_the_same_inputs_again() -> None:
    from bench.faults.mutate import mutated

    seeds = [b'{"type": "user", "a": [1, {"b": "c"}]}\n{"type": "x"}\n', b"plain words"]

    def inputs(seed: int) -> list[bytes]:
        chance = random.Random(seed)
        return [mutated(chance.choice(seeds), seeds, chance) for _ in range(200)]

    assert inputs(3) == inputs(3) != inputs(4)
    assert len(set(inputs(3))) > 150
