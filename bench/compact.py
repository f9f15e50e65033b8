"""What a compaction waits for: the PreCompact hook with nothing to do, with much to catch up on, with a worker that hangs.

    python -m bench.compact [--runs 30] [--json FILE]

Each hook runs as harnesses run it, on a session that is written for the purpose. A hook with nothing to do is compared,
run in turn, with a start of the interpreter that has the packages (bare, and importing them).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TextIO

from bench import facts
from bench.corpus import PROJECT
from bench.facts import Goal
from obsmem.core.tokens import estimate
from obsmem.system import blockfile
from obsmem.system.paths import HOME_VARIABLE, session_folder
from obsmem.system.seats import wait_until_free
from obsmem.tasks.store import open_store

SCRIPT = str(PROJECT / "observational_memory.py")
HARNESS, SESSION = "claude-code", "00000000-0000-4000-8000-0000000000c0"
LAST = "Rename the shop to Nightjar in the very last turn."
CATCH_UP_TOKENS, CATCH_UP_RUNS = 30_000, 5
STARTS = {
    "a bare start": [sys.executable, "-c", "pass"],
    "a start that imports the packages": [sys.executable, "-c", "import filelock, jsonschema, platformdirs, yaml"],
}


class Place(NamedTuple):
    """A session's transcript, and a data folder that knows nothing of it yet."""

    folder: str

    @property
    def home(self) -> str:
        """The data folder."""
        return os.path.join(self.folder, "home")

    @property
    def transcript(self) -> str:
        """The session's file."""
        return os.path.join(self.folder, f"{SESSION}.jsonl")

    def hook(self, event: str, settings: dict[str, str] | None = None, **more: str) -> tuple[float, bytes]:
        """Run a hook; (seconds, what it printed)."""
        payload = {"session_id": SESSION, "transcript_path": self.transcript, "cwd": self.folder,
                   "hook_event_name": event, **more}  # fmt: skip
        environment = {"PATH": os.environ.get("PATH", ""), HOME_VARIABLE: self.home, "HOME": self.folder}
        command = [sys.executable, "-I", "-S", SCRIPT, "hook", HARNESS, event]
        started = time.perf_counter()
        done = subprocess.run(command, env={**environment, **(settings or {})}, input=json.dumps(payload).encode(),
                              capture_output=True, check=True)  # fmt: skip
        return time.perf_counter() - started, done.stdout

    def due_block(self) -> str:
        """The block that waits for the compaction."""
        folder = session_folder(self.home, HARNESS, self.transcript, SESSION)
        return "\n".join(blockfile.read(os.path.join(folder, blockfile.DUE))[1])


def write_session(place: Place, tokens: int, last: str = LAST) -> int:
    """Write a session of about so many tokens, whose turns ask, run commands, fail and edit; returns what it holds."""
    os.makedirs(place.folder, exist_ok=True)
    with open(place.transcript, "w", encoding="utf-8") as file:
        held, number = write_turns(file, tokens)
        file.write(_record("user", last, number))
    return held


def write_turns(file: TextIO, tokens: int, number: int = 0) -> tuple[int, int]:
    """Go on with a session from its turn ``number``; (tokens that were written, the number of the next turn)."""
    held = 0
    while held < tokens:
        for role, content in _turn(number):
            held += estimate(content if isinstance(content, str) else json.dumps(content))
            file.write(_record(role, content, number))
        number += 1
    return held, number


def _turn(number: int) -> list[tuple[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{number:06}", "name": "Bash",
            "input": {"command": f"pytest tests/test_part_{number % 40}.py -q"}}  # fmt: skip
    printed = "\n".join(f"tests/test_part_{number % 40}.py::test_case_{one} PASSED in 0.0{one} s" for one in range(12))
    fails = number % 3 == 0
    if fails:
        printed += f"\nE   AssertionError: part {number} gave {number * 7}, not {number * 7 + 1}\n1 failed, 12 passed"
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": printed, "is_error": fails}
    return [
        ("user", f"Make part {number} of the shop show prices in currency {number}, and never touch the file legacy_{number}.py."),
        ("assistant", [{"type": "text", "text": f"I look at what the tests of part {number} say first."}, call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": f"Decided: part {number} keeps its prices in cents, since rounding differs."}]),
    ]  # fmt: skip


def _record(role: str, content: Any, number: int) -> str:
    minute = f"{number // 60 % 24:02}:{number % 60:02}"
    record = {"type": role, "uuid": os.urandom(16).hex(), "sessionId": SESSION, "cwd": "/srv/shop",
              "timestamp": f"2026-03-02T{minute}:00.000Z", "message": {"role": role, "content": content}}  # fmt: skip
    return json.dumps(record) + "\n"


def nothing_to_do(folder: str, runs: int) -> dict[str, Any]:
    """The hook where everything is observed already, in turn with starts of the interpreter."""
    place = Place(folder)
    write_session(place, CATCH_UP_TOKENS)
    place.hook("PreCompact", trigger="manual")
    times: dict[str, list[float]] = {name: [] for name in ("hook", *STARTS)}
    for _ in range(runs):
        times["hook"].append(place.hook("PreCompact", trigger="manual")[0])
        for name, command in STARTS.items():
            started = time.perf_counter()
            subprocess.run(command, check=True)
            times[name].append(time.perf_counter() - started)
    middle = {name: median(values) * 1000 for name, values in times.items()}
    ratios = {name: middle["hook"] / middle[name] for name in STARTS}
    told = ", ".join(f"{ratios[name]:.2f} x {name} ({middle[name]:.0f} ms)" for name in STARTS)
    print(f"PreCompact, nothing to do: {middle['hook']:.0f} ms = {told} ({runs} runs in turn, medians)")
    return {"ms": middle, "ratios": ratios, "runs": runs}


def catching_up(folder: str) -> dict[str, Any]:
    """The hook where nobody has read anything yet; each run in a data folder of its own."""
    seconds = []
    for number in range(CATCH_UP_RUNS):
        place = Place(os.path.join(folder, str(number)))
        held = write_session(place, CATCH_UP_TOKENS)
        seconds.append(place.hook("PreCompact", trigger="auto")[0])
        if LAST not in place.due_block():
            raise SystemExit("the block lacks the last turn")
    print(f"PreCompact, {held} tokens to catch up on: {median(seconds):.2f} s ({CATCH_UP_RUNS} runs, medians)")
    return {"tokens": held, "seconds": median(seconds), "worst": max(seconds)}


def hanging(folder: str) -> dict[str, Any]:
    """The hook with a configured worker that never answers, with the settings as they come."""
    place = Place(folder)
    write_session(place, CATCH_UP_TOKENS)
    script = os.path.join(folder, "script.json")
    Path(script).write_text(json.dumps({"*": {"run": ["sleep", "600"]}}), encoding="utf-8")
    settings = {"OBSERVATIONAL_MEMORY_SET_WORKERS": json.dumps([{"kind": "scripted", "path": script}])}
    seconds, _ = place.hook("PreCompact", settings, trigger="auto")
    holds = LAST in place.due_block()
    print(f"PreCompact, a worker that hangs: {seconds:.1f} s; the block {'holds' if holds else 'LACKS'} the last turn")
    return {"seconds": seconds, "holds_last_turn": holds}


def many_notes(folder: str, notes: int) -> Place:
    """A session with at least so many notes, and its block due."""
    place = Place(folder)
    tokens = 20_000
    while True:
        write_session(place, tokens)
        place.hook("PreCompact", trigger="manual")
        wait_until_free(place.home, 60)
        with open_store(place.home) as store:
            (stored,) = store.archive.sessions()
            if len(store.memory.notes(stored.session.handle)) >= notes:
                return place
        tokens *= 2


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.compact", description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        nothing = nothing_to_do(os.path.join(folder, "nothing"), options.runs)
        much = catching_up(os.path.join(folder, "much"))
        hung = hanging(os.path.join(folder, "hung"))
    goals = [
        Goal("nothing to do / a start that imports the packages", nothing["ratios"]["a start that imports the packages"], 3.0, True),
        Goal("catching up, seconds", much["seconds"], 2.0, True),
        Goal("a worker that hangs, seconds", hung["seconds"], 20.0, True),
    ]  # fmt: skip
    for goal in goals:
        print(goal.line())
    if options.json:
        facts.write(options.json, {"machine": machine, "nothing": nothing, "catching_up": much, "hanging": hung})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
