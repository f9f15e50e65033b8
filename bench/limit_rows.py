"""Processes measured in turn with what no implementation could do without: a start of the interpreter, and the floor.

Invariant: every turn runs each of them once, in an order that goes round, so that what else the machine does meets all of
them alike. Times are of the wall and of the processor, both in milliseconds, from a process's start to its end.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.hook import BARE, PYTHON
from bench.intervals import Middle, ratio
from bench.search import seconds_of_children

FLOOR = """
import sys
try:
    import posix as system
except ImportError:
    import nt as system
while system.read(0, 65536):
    pass
system.stat(sys.argv[1])
"""
SECONDS = 120  # that a process may take


class Case(NamedTuple):
    """What is measured: a command that gets ``payload`` (a file) on standard input, and what it is compared with. ``before``
    makes the world ready for each process; ``after`` is called when one has ended."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    payload: str
    bases: Mapping[str, Sequence[str]]
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None


class Row(NamedTuple):
    """What a case costs. ``wall`` and ``cpu`` in milliseconds (medians); ratios by the name of what it is compared with.
    ``calls``: system calls of one run, None where they were not counted."""

    name: str
    pairs: int
    wall: float
    cpu: float
    wall_ratios: dict[str, Middle]
    cpu_ratios: dict[str, Middle]
    calls: dict[str, int] | None

    def figures(self) -> dict[str, Any]:
        """As the artefact holds it."""
        return {
            "pairs": self.pairs, "ms": round(self.wall, 2), "processor ms": round(self.cpu, 2),
            **{f"/ {name}": one.rounded() for name, one in self.wall_ratios.items()},
            **{f"/ {name}, processor": one.rounded() for name, one in self.cpu_ratios.items()},
            "system calls": None if self.calls is None else sum(self.calls.values()),
        }  # fmt: skip


def hook_bases(transcript: str) -> dict[str, Sequence[str]]:
    """What a hook is compared with: a start with the same flags, and reading standard input, one stat, and the end."""
    return {"start": BARE, "floor": [PYTHON, "-I", "-S", "-c", FLOOR, transcript]}


def command_bases() -> dict[str, Sequence[str]]:
    """What a command is compared with."""
    return {"start": [sys.executable, "-c", "pass"], "start with sqlite3, json": [sys.executable, "-c", "import sqlite3, json"]}  # fmt: skip


def measure(case: Case, turns: int) -> Row:
    """Run a case in turn with its bases, so many times; the first turn, which compiles, does not count."""
    commands = {"": case.command, **case.bases}
    names = list(commands)
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns + 1):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            case.before()
            took, used = _run(commands[name], case)
            case.after()
            if turn:
                wall[name].append(took)
                cpu[name].append(used)
    case.before()
    calls = count_calls(case)
    case.after()
    bases = list(case.bases)
    return Row(
        case.name, turns, median(wall[""]), median(cpu[""]),
        {name: ratio(wall[""], wall[name]) for name in bases}, {name: ratio(cpu[""], cpu[name]) for name in bases}, calls,
    )  # fmt: skip


def _run(command: Sequence[str], case: Case) -> tuple[float, float]:
    with open(case.payload, "rb") as stdin:
        used, started = seconds_of_children(), time.perf_counter()
        subprocess.run(command, env=dict(case.environment), stdin=stdin, capture_output=True, close_fds=False, check=True, timeout=SECONDS)  # fmt: skip
        return (time.perf_counter() - started) * 1000, (seconds_of_children() - used) * 1000


def count_calls(case: Case) -> dict[str, int] | None:
    """The system calls of one run of a case by name; None without strace."""
    if not shutil.which("strace"):
        return None
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        trace = os.path.join(folder, "calls")
        _run(["strace", "-o", trace, *case.command], case)
        return calls_of(Path(trace).read_text(encoding="utf-8", errors="replace"))


def calls_of(trace: str) -> dict[str, int]:
    """The system calls that a trace of strace tells of, by name."""
    matches = (re.match(r"(?:\d+ +)?(\w+)\(", line) for line in trace.split("\n"))
    return dict(Counter(match[1] for match in matches if match))


def show(row: Row) -> str:
    """A row as one printed line."""
    calls = "" if row.calls is None else f"{sum(row.calls.values()):5} calls"
    told = ", ".join(f"{one} of a {name} (processor {row.cpu_ratios[name].value:.2f})" for name, one in row.wall_ratios.items())  # fmt: skip
    return f"{row.name:44} {row.wall:7.1f} ms {row.cpu:7.1f} ms cpu {calls} | {told}"
