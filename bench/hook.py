"""What the hooks cost that a harness waits for, above one bare start of the interpreter.

    python -m bench.hook [--pairs 200] [--json FILE]

Each hook runs as harnesses run it (``python -I -S``, a payload on standard input), in turn with ``python -I -S -c pass``,
so that whatever else the machine does meets both alike. With ``strace`` there, the system calls of the turn-end hook
and the bytes that it reads are counted for transcripts of 10 KB, 10 MB and 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import facts
from bench.compact import SESSION as SESSION_WITH_NOTES
from bench.compact import many_notes
from bench.corpus import PROJECT
from bench.facts import Goal
from obsmem.system.blockfile import GIVEN, make_due, write_next
from obsmem.system.files import remove, write_atomic
from obsmem.system.indexfile import KEPT, MAGIC, TIME, index_path
from obsmem.system.paths import HOME_VARIABLE, session_folder
from obsmem.system.seats import wait_until_free
from obsmem.system.shortening import Settings, write_settings
from obsmem.system.state import SEEN_FILE, State, write_state
from obsmem.system.workspace import workspace_of

PYTHON = os.path.realpath(sys.executable)
SCRIPT = str(PROJECT / "observational_memory.py")
HARNESS, SESSION = "claude-code", "00000000-0000-4000-8000-000000000001"
STOP = ["hook", HARNESS, "Stop"]
PROMPT = ["hook", HARNESS, "UserPromptSubmit"]
START = ["hook", HARNESS, "SessionStart", "--part", "1/4"]
BARE = [PYTHON, "-I", "-S", "-c", "pass"]
PART_BYTES = 9500
SMALL = 10_000  # bytes
SIZES = (("10 KB", SMALL), ("10 MB", 10_000_000), ("1 GB", 1 << 30))
MANY_NOTES = 600
LONG_OUTPUT = 300  # lines of an output that is shortened
_CALL = re.compile(r"\d+ +(?P<name>\w+)\(.* = (?P<result>-?\d+)?")
_LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
sys.argv[:] = sys.argv[2:]
import observational_memory
observational_memory.main()
sys.stderr.write("\\n".join(sorted(sys.modules)))
"""


class World(NamedTuple):
    """A data folder with one session that was read to its end, a block ready for it, and payload files."""

    home: str
    stop: str
    start: str

    @property
    def environment(self) -> dict[str, str]:
        """What the hook's process is given."""
        return {"PATH": os.environ.get("PATH", ""), HOME_VARIABLE: self.home}


def make_world(folder: str, size: int) -> World:
    """Make a world whose transcript is ``size`` bytes long (a sparse file: a turn-end hook must not read it)."""
    os.makedirs(folder)
    home, transcript = os.path.join(folder, "home"), os.path.join(folder, f"{SESSION}.jsonl")
    with open(transcript, "wb") as file:
        file.truncate(size)
    state_folder = session_folder(home, HARNESS, transcript, SESSION)
    write_state(state_folder, State(read=size))
    write_next(state_folder, "k3f9", ("x" * PART_BYTES,) * 3)
    make_due(state_folder)
    payload = {"session_id": SESSION, "transcript_path": transcript, "cwd": folder}
    stop, start = os.path.join(folder, "stop.json"), os.path.join(folder, "start.json")
    more = {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."}
    Path(stop).write_text(json.dumps({**payload, **more}), encoding="utf-8")
    more = {"hook_event_name": "SessionStart", "source": "compact"}
    Path(start).write_text(json.dumps({**payload, **more}), encoding="utf-8")
    return World(home, stop, start)


def run(command: list[str], world: World, payload: str) -> tuple[float, bytes, bytes]:
    """Run one process; (milliseconds, stdout, stderr). ``close_fds=False`` lets ``subprocess`` use posix_spawn."""
    with open(payload, "rb") as stdin:
        start = time.perf_counter()
        done = subprocess.run(command, env=world.environment, stdin=stdin, capture_output=True, close_fds=False, check=True)  # fmt: skip
        return (time.perf_counter() - start) * 1000, done.stdout, done.stderr


def pairs(
    name: str, arguments: list[str], world: World, payload: str, count: int, before: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Medians of a hook and of a bare start, run in turn; which of the two is first changes every time. ``before`` makes
    the world ready for each."""
    hook = [PYTHON, "-I", "-S", SCRIPT, *arguments]
    give_again(world)
    before()
    run(hook, world, payload)
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(count):
        for is_hook in (number % 2 == 0, number % 2 == 1):
            give_again(world)
            before()
            times[is_hook].append(run(hook if is_hook else BARE, world, payload)[0])
    ours, bare = median(times[True]), median(times[False])
    slow = sorted(times[True])[int(count * 0.95)]
    print(
        f"{name}: {ours:.2f} ms, bare start {bare:.2f} ms, ratio {ours / bare:.3f} ({count} pairs, medians); p95 {slow:.2f} ms"
    )
    figures = {"hook_ms": ours, "bare_ms": bare, "ratio": ours / bare, "p95_ms": slow}
    return {**{name: round(value, 4) for name, value in figures.items()}, "pairs": count}


def give_again(world: World) -> None:
    """Let a part be given once more: each is given once a delivery."""
    for mark in Path(world.home).glob(f"sessions/*/*/{GIVEN}*"):
        mark.unlink()


def loaded_modules(world: World) -> tuple[list[str], list[str]]:
    """What stands in ``sys.modules`` after the turn-end hook, and in a bare interpreter."""
    command = [PYTHON, "-I", "-S", "-c", _LOADED, str(PROJECT), SCRIPT, *STOP]
    bare = [PYTHON, "-I", "-S", "-c", "import sys; sys.stderr.write('\\n'.join(sorted(sys.modules)))"]
    _, _, ours = run(command, world, world.stop)
    _, _, theirs = run(bare, world, world.stop)
    return ours.decode().split(), theirs.decode().split()


def system_calls(world: World, folder: str) -> dict[str, int]:
    """How often the turn-end hook makes each system call, and under "bytes read" what all reads gave."""
    trace = os.path.join(folder, "calls")
    run(["strace", "-f", "-o", trace, PYTHON, "-I", "-S", SCRIPT, *STOP], world, world.stop)
    calls = Counter({"bytes read": 0})
    for line in Path(trace).read_text(encoding="utf-8", errors="replace").split("\n"):
        match = _CALL.match(line)
        if match:
            calls[match["name"]] += 1
            if match["name"] in ("read", "pread64", "readv"):
                calls["bytes read"] += max(0, int(match["result"] or 0))
    return dict(calls)


def compare_calls(folder: str) -> dict[str, Any]:
    """The counted system calls for a short, a long and a huge transcript; {} without strace."""
    if not shutil.which("strace"):
        print("system calls: strace is not there, not counted")
        return {}
    # Names of one length, since a longer path is no more work but may be one more read.
    worlds = {
        name: make_world(os.path.join(folder, f"size-{number}"), size) for number, (name, size) in enumerate(SIZES)
    }
    counted = {name: system_calls(world, folder) for name, world in worlds.items()}
    told = ", ".join(
        f"{name} {sum(calls.values()) - calls['bytes read']} calls, {calls['bytes read']} bytes read"
        for name, calls in counted.items()
    )
    # Bytes may differ by a few: the state file says in digits how far the transcript was read.
    same = len({tuple(sorted({**calls, "bytes read": 0}.items())) for calls in counted.values()}) == 1
    print(f"system calls of Stop: {told}: {'the same' if same else 'DIFFERENT'}")
    return {"equal": same, **counted}


def starting(folder: str, count: int) -> dict[str, Any]:
    """Medians of a Stop hook that starts a maintainer and of a bare start, each waiting until the maintainer is gone."""
    world = make_world(folder, SMALL)
    state_folder = session_folder(world.home, HARNESS, os.path.join(folder, f"{SESSION}.jsonl"), SESSION)

    def be_due() -> None:
        wait_until_free(world.home, 60)
        write_state(state_folder, State(read=0, after=1))

    return pairs("Stop, starts a maintainer", STOP, world, world.stop, count, be_due)


def delivering(folder: str, count: int) -> dict[str, Any]:
    """Medians of a SessionStart hook that gives a part of the block of a session with many notes, and of a bare start."""
    place = many_notes(folder, MANY_NOTES)
    payload = os.path.join(folder, "start.json")
    more = {"hook_event_name": "SessionStart", "source": "compact"}
    known = {"session_id": SESSION_WITH_NOTES, "transcript_path": place.transcript, "cwd": folder}
    Path(payload).write_text(json.dumps({**known, **more}), encoding="utf-8")
    world = World(place.home, payload, payload)
    figures = pairs(f"SessionStart, a part of {MANY_NOTES} notes", START, world, payload, count)
    give_again(world)
    if not run([PYTHON, "-I", "-S", SCRIPT, *START], world, payload)[1]:
        raise SystemExit("SessionStart delivered nothing at the end: its figure is not that of a delivery")
    return figures


def beginning(folder: str, count: int) -> dict[str, Any]:
    """Medians of a SessionStart hook of a new session that is told of its workspace, and of a bare start."""
    home, session = os.path.join(folder, "home"), os.path.join(folder, f"{SESSION}.jsonl")
    sessions = [
        ("sessions", f"h{number:03d}", f'- h{number:03d} (x, {TIME}1{TIME}): "{"word " * 18}"') for number in range(6)
    ]
    files = [("files", "", f"- src/folder/module_{number}.py") for number in range(12)]
    since = [
        ("since", str(number), "x", f"id{number}", "abcd", f'- abcd: "{"word " * 40}"') for number in range(12, 0, -1)
    ]
    rows = ["\t".join(row) for row in [("head", "word " * 90), *since, *sessions, *files]]
    write_atomic(index_path(home, workspace_of(folder)), "\n".join([MAGIC, *rows]).encode())
    payload = os.path.join(folder, "start.json")
    known = {"session_id": SESSION, "transcript_path": session, "cwd": folder}
    more = {"hook_event_name": "SessionStart", "source": "startup"}
    Path(payload).write_text(json.dumps({**known, **more}), encoding="utf-8")
    world = World(home, payload, payload)
    mark = os.path.join(session_folder(home, HARNESS, session, SESSION), KEPT)
    told = ["hook", HARNESS, "SessionStart", "--part", "4/4"]
    figures = pairs("SessionStart, the index", told, world, payload, count, lambda: remove(mark))
    quiet = pairs("SessionStart, startup, another part", START, world, payload, count)
    remove(mark)
    if b"observational-memory index" not in run([PYTHON, "-I", "-S", SCRIPT, *told], world, payload)[1]:
        raise SystemExit("SessionStart told nothing at the end: its figure is not that of an index")
    return {**figures, "another_part": quiet}


def shortening(folder: str, count: int) -> dict[str, Any]:
    """Medians of a PostToolUse hook and of a bare start: for an output that is too short, where shortening is off, and for one
    that is shortened, its whole kept on the disk first."""
    home, session = os.path.join(folder, "home"), os.path.join(folder, f"{SESSION}.jsonl")
    tests = "".join(f"tests/test_{n}.py::test_that_{n}_is_so PASSED\n" for n in range(LONG_OUTPUT))
    outputs = {"short": "ok\n", "long": f"collected {LONG_OUTPUT} items\n{tests}== {LONG_OUTPUT} passed in 1.2s =="}
    worlds = {}
    for name, text in outputs.items():
        payload = os.path.join(folder, f"{name}.json")
        value = {
            "session_id": SESSION, "transcript_path": session, "cwd": folder, "hook_event_name": "PostToolUse",
            "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "pytest -q"},
            "tool_response": {"stdout": text, "stderr": "", "interrupted": False, "isImage": False},
        }  # fmt: skip
        Path(payload).write_text(json.dumps(value), encoding="utf-8")
        worlds[name] = World(home, payload, payload)
    os.makedirs(home)
    words = ["hook", HARNESS, "PostToolUse"]
    off = pairs("PostToolUse, switched off", words, worlds["long"], worlds["long"].stop, count)
    write_settings(home, Settings(reduce=True))
    idle = pairs("PostToolUse, nothing to do", words, worlds["short"], worlds["short"].stop, count)
    seen = os.path.join(session_folder(home, HARNESS, session, SESSION), SEEN_FILE)
    done = pairs(
        f"PostToolUse, shortens {len(outputs['long'])} bytes", words, worlds["long"], worlds["long"].stop, count,
        lambda: remove(seen),
    )  # fmt: skip
    remove(seen)
    if b"shortened" not in run([PYTHON, "-I", "-S", SCRIPT, *words], worlds["long"], worlds["long"].stop)[1]:
        raise SystemExit("PostToolUse shortened nothing at the end: its figure is not that of shortening")
    return {"off": off, "idle": idle, "shortens": done}


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.hook", description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        world = make_world(os.path.join(folder, "world"), SMALL)
        stop = pairs("Stop, nothing to do ", STOP, world, world.stop, options.pairs)
        prompt = pairs("prompt, nothing owed", PROMPT, world, world.stop, options.pairs)
        started = starting(os.path.join(folder, "starting"), options.pairs)
        start = delivering(os.path.join(folder, "delivering"), options.pairs)
        os.makedirs(os.path.join(folder, "beginning"))
        began = beginning(os.path.join(folder, "beginning"), options.pairs)
        os.makedirs(os.path.join(folder, "shortening"))
        shortened = shortening(os.path.join(folder, "shortening"), options.pairs)
        ours, bare = loaded_modules(world)
        added = sorted(set(ours) - set(bare))
        print(f"modules after Stop: {len(ours)}, of which a bare start has {len(bare)}; added: {' '.join(added)}")
        calls = compare_calls(folder)
    for goal in (
        Goal("Stop, nothing to do / a bare start", stop["ratio"], 1.5, at_most=True),
        Goal("Stop that starts a maintainer / a bare start", started["ratio"], 2.5, at_most=True),
        Goal("SessionStart, a part / a bare start", start["ratio"], 2.0, at_most=True),
        Goal("SessionStart, the index / a bare start", began["ratio"], 3.0, at_most=True),
        Goal("PostToolUse, nothing to do / a bare start", shortened["idle"]["ratio"], 2.0, at_most=True),
    ):
        print(goal.line())
    if options.json:
        figures = {"machine": machine, "stop": stop, "prompt": prompt, "stop_starting": started, "session_start": start, "index": began, "shortening": shortened, "modules": ours, "added": added, "system_calls": calls}  # fmt: skip
        facts.write(options.json, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
