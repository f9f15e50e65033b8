"""Writes a small session for a harness, damages it where that is asked for, and prints what the harness's program says of it.

A program of its own (``python -m tests.e2e.read_back HARNESS HOME [gone|cut]``), so that it runs within a world.
"""

from __future__ import annotations

import json
import os
import sys
import time

from obsmem.core.turns import Draft, Parentage, Turn, Words
from obsmem.harnesses import load
from obsmem.tasks.fork_check import run_command

TURNS = tuple(Turn((Words(f"Question {n}?", f"abcd.{n}0"),), (Words(f"Answer {n}.", f"abcd.{n}1"),)) for n in (1, 2))


def main() -> None:
    """Print a list: for each command that looks, its name and what it says is wrong."""
    harness, home, *damage = sys.argv[1:]
    now = int(time.time() * 1000)
    of = Parentage("somebody", "id", "abcd", 21)
    folder = os.path.realpath(os.getcwd())
    written = load(harness).write_session(Draft(TURNS, "It goes on.", "", "Title", folder, of, now, keep=home), home)
    if damage == ["gone"]:
        os.remove(written.path)
    elif damage == ["cut"]:
        with open(written.path, "r+b") as file:
            text = file.read()
            file.truncate(text.rindex(b"\n", 0, text.index(b"Answer 2.")) + 1)
    if written.bring is not None and damage != ["gone"]:
        assert run_command(written.bring, folder, home).wrong == ""
    print(json.dumps([[check.name, run_command(check, folder, home).wrong] for check in written.checks]))


if __name__ == "__main__":
    main()
