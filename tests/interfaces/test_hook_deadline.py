"""However a worker hangs before a compaction, the hook comes back in time, the block holds the last turn, and no process
is left. Limits are lowered through the configuration; nothing here asserts how long anything took beyond its limit."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from obsmem.store.memory import MemoryStore
from obsmem.system import blockfile
from tests.interfaces.place import ROOT, SESSION, Place, alive, until
from tests.tasks.talk import Talk

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are a thing of POSIX systems")

LAST = "Rename the shop to Nightjar in the very last turn."
HOOK_LIMIT = 20.0  # seconds, the promise; the workers get one of them here

# What a worker may do instead of answering. {pids} is a file to which every process writes its id.
SLEEPS = "import time; note(); time.sleep(600)"
IGNORES = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN); note(); time.sleep(600)"
SPAWNS = (
    "import subprocess, sys, time; note(); child = subprocess.Popen(['sleep', '600']); note(child.pid); time.sleep(600)"
)
LEAVES_A_CHILD = "import subprocess; note(); child = subprocess.Popen(['sleep', '600']); note(child.pid); print('[]')"
PRINTS = "note()\nwhile True: print('x' * 100_000)"
SPINS = "note()\nwhile True: pass"
CRASHES = "note(); import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
WAYS = {"sleeps": SLEEPS, "ignores": IGNORES, "spawns": SPAWNS, "leaves": LEAVES_A_CHILD, "prints": PRINTS,
        "spins": SPINS, "crashes": CRASHES}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "place")
    talk = Talk(SESSION, str(place.project))
    for number in range(6):
        talk.turn(number)
    talk.user(LAST)
    talk.write(place.folder)
    place.environment["OBSERVATIONAL_MEMORY_SET_PRECOMPACT_SECONDS"] = "1"
    return place


def hire(place: Place, code: str) -> Path:
    """Configure a worker that runs ``code``; the file that its processes write their ids to."""
    pids, script = place.folder / "pids", place.folder / "script.json"
    note = f"import os\ndef note(pid=None):\n    open({str(pids)!r}, 'a').write(f'{{pid or os.getpid()}}\\n')\n"
    script.write_text(json.dumps({"*": {"run": [sys.executable, "-c", note + code]}}), encoding="utf-8")
    place.environment["OBSERVATIONAL_MEMORY_SET_WORKERS"] = json.dumps([{"kind": "scripted", "path": str(script)}])
    return pids


def memory(place: Place) -> sqlite3.Connection:
    return MemoryStore(str(place.home / "memory.db"), readonly=True).connection


@pytest.mark.parametrize("way", WAYS, ids=WAYS)
def test_a_worker_that_hangs_holds_up_nothing(place: Place, way: str) -> None:
    pids = hire(place, WAYS[way])
    started = time.monotonic()
    place.remember()
    assert time.monotonic() - started <= HOOK_LIMIT
    numbers = [int(word) for word in pids.read_text(encoding="utf-8").split()]
    assert numbers and until(lambda: not any(alive(number) for number in numbers))
    block = "\n".join(blockfile.read(str(place.notes_folder / "block.due"))[1])
    assert LAST in block
    rows = memory(place).execute("SELECT count(*) FROM gaps").fetchone()
    assert rows[0] == 0, "the extractive observer did what the worker left"
    assert memory(place).execute("SELECT count(*) FROM notes").fetchone()[0] > 0


def test_what_a_worker_finished_in_time_is_kept(place: Place) -> None:
    """One stretch is answered, the next one hangs."""
    place.environment["OBSERVATIONAL_MEMORY_SET_CHUNK_MAX_TOKENS"] = "300"
    place.environment["OBSERVATIONAL_MEMORY_SET_PRECOMPACT_SECONDS"] = "3"
    mark = place.folder / "mark"
    hire(place, f"import os, time; note()\nif os.path.exists({str(mark)!r}): time.sleep(600)\nopen({str(mark)!r}, 'w'); print('[]')")  # fmt: skip
    place.remember()
    workers = [
        row[0] for row in memory(place).execute("SELECT worker FROM worker_calls WHERE task='observe' ORDER BY no")
    ]
    assert workers[0] == "scripted" and set(workers[1:]) == {"extractive"}
    assert "outcome=workers-killed" in place.log


def test_what_a_worker_left_running_when_it_answered_is_ended(place: Place) -> None:
    pids = hire(place, "import subprocess as s; note(s.Popen(['sleep', '600'], stdout=s.DEVNULL).pid); print('[]')")
    place.environment["OBSERVATIONAL_MEMORY_SET_PRECOMPACT_SECONDS"] = "10"
    place.remember()
    numbers = [int(word) for word in pids.read_text(encoding="utf-8").split()]
    assert numbers and until(lambda: not any(alive(number) for number in numbers))
    assert "workers-" not in place.log


def test_without_time_for_them_no_worker_is_asked(place: Place) -> None:
    pids = hire(place, SLEEPS)
    place.environment["OBSERVATIONAL_MEMORY_SET_PRECOMPACT_SECONDS"] = "0"
    place.remember()
    assert not pids.exists()


def test_a_session_start_that_waits_for_the_block_asks_no_worker(place: Place) -> None:
    pids = hire(place, SLEEPS)
    assert LAST.encode() in place.start(1)
    assert not pids.exists()


def test_when_the_maintainer_itself_is_killed_its_worker_ends(place: Place) -> None:
    """Nobody is left to end it: its own alarm does."""
    pids = hire(place, SPAWNS)
    command = [sys.executable, str(place.hook_command()[3]), "maintain", "claude-code", "--transcript", str(place.transcript), "--session", SESSION, "--before-compact"]  # fmt: skip
    child = subprocess.Popen(command, env=place.environment, start_new_session=True)
    assert until(lambda: pids.exists() and len(pids.read_text(encoding="utf-8").split()) == 2)
    os.killpg(child.pid, 9)
    child.wait()
    numbers = [int(word) for word in pids.read_text(encoding="utf-8").split()]
    assert until(lambda: not any(alive(number) for number in numbers))


def test_a_reader_that_is_stopped_holds_up_no_compaction(place: Place) -> None:
    """Somebody holds the lock of this transcript and does not move: what is archived is rendered."""
    place.remember()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(ROOT), str(place.home), str(place.transcript)], stdout=subprocess.PIPE, env=place.environment
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    try:
        started = time.monotonic()
        done = place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
        assert done.returncode == 0 and time.monotonic() - started <= HOOK_LIMIT
        assert LAST.encode() in place.start(1)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


HOLD = """
import sys, time
sys.path.insert(0, sys.argv.pop(1))
from obsmem.system.lock import hold
from obsmem.system.paths import safe_name
with hold(sys.argv[1], "ingest-" + safe_name("claude-code-" + sys.argv[2] + "-")):
    print("held", flush=True)
    time.sleep(600)
"""
