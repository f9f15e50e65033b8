"""What a figure needs beside it to mean something: the machine's facts, the goal, and one way of writing both down.

Invariant: nothing here names the machine or a place on it.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
from typing import Any, NamedTuple


class Goal(NamedTuple):
    """A figure with what it should be. ``at_most`` tells whether less is better."""

    name: str
    value: float
    goal: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        """True if the figure is as good as it should be."""
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    def line(self) -> str:
        """The figure, its goal and the verdict as one line."""
        sign = "<=" if self.at_most else ">="
        return f"{'met   ' if self.met else 'MISSED'}  {self.name}: {self.value:.2f} (goal {sign} {self.goal:g})"


def machine() -> dict[str, Any]:
    """CPU count, versions, date, and how busy the machine was when the bench began (load of the last minute)."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpus": os.cpu_count(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "date": time.strftime("%Y-%m-%d"),
        "load_before": load if load is None else round(load, 2),
    }


def show_machine(facts: dict[str, Any]) -> None:
    """Print the machine's facts as one line."""
    print(
        f"{facts['date']}  {facts['system']} {facts['architecture']}, {facts['cpus']} CPUs, Python {facts['python']}, "
        f"SQLite {facts['sqlite']}, load before {facts['load_before']}"
    )


def write(path: str, figures: dict[str, Any]) -> None:
    """Write the artefact of ``--json``."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=2)
        file.write("\n")


def peak_memory() -> int:
    """The most memory in bytes that this process held at once.

    Linux says it of the program that runs now; ``getrusage`` there also counts what stood in the process before it
    became this program, which after a spawn is its parent.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak << 10
