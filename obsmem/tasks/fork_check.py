"""Whether a session that was written can be gone on with: read back by our own reader, and by the program that it is for.

Invariants: a program that is run has a deadline, is killed with all of its group, asks no model, and none of our hooks acts
within it; what is read back must be what was to be written, call by call.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.model import Entry
from obsmem.core.turns import Command, Draft, tool_uses, unsaid
from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.system.programs import ask_program, run_program
from obsmem.system.state import WORKER_VARIABLE

SECONDS = 120.0  # a first start of a harness can take this long
LAST = 300  # characters of what a program said that a message shows


class Ran(NamedTuple):
    """How a program ended. ``wrong`` is '' where it did as expected; ``there`` is False where it is not on this machine."""

    there: bool
    wrong: str = ""


def run_command(command: Command, folder: str, home: str, seconds: float = SECONDS) -> Ran:
    """Run a harness's program in a folder, for the user of this home folder, and look at what it says."""
    program = shutil.which(command.arguments[0])
    if program is None:
        return Ran(False, f"{command.arguments[0]} is not on PATH")
    argv = [program, *command.arguments[1:]]
    environment = {**os.environ, "HOME": home, **command.environment, WORKER_VARIABLE: "1"}
    try:
        if command.enough:
            done = ask_program(argv, folder, environment, seconds, command.lines, command.enough)
        else:
            done = run_program(argv, folder, environment, seconds)
    except OSError as error:
        return Ran(True, f"it could not be started ({error.strerror})")
    if done.status is None:
        return Ran(True, f"it did not end within {seconds:.0f} s")
    if done.status:
        said = (done.stdout + done.stderr).strip()[-LAST:]
        return Ran(True, f"exit status {done.status}: {said}")
    return Ran(True, command.wrong(done.stdout))


def read_back(harness: str, source: Source, session: str, draft: Draft) -> str:
    """Read a written session with our own reader and compare; '' where it says what was to be written, else what is off."""
    module = load(harness)
    reader = module.reader(source, None, lambda: ())
    entries: list[Entry] = []
    for raw in module.records(source, 0, 0):
        parsed = reader.read(raw)
        if parsed.repeats is None and parsed.entries:
            return f"record {raw.line} has lost its mark"
        entries += parsed.entries
    if reader.session.id != session:
        return f"it names the session {reader.session.id!r}"
    return _paired(entries) or _compared(entries, draft)


def _paired(entries: Sequence[Entry]) -> str:
    calls = [entry.call_id for entry in entries if entry.kind == "tool_call"]
    results = [entry.call_id for entry in entries if entry.kind == "tool_result"]
    if len(calls) != len(set(calls)) or sorted(calls) != sorted(results):
        return f"{len(calls)} tool calls have {len(results)} results"
    return ""


def _compared(entries: Sequence[Entry], draft: Draft) -> str:
    said = "\n".join(entry.text for entry in entries if entry.kind not in ("tool_call", "tool_result"))
    if missing := unsaid(draft.turns, said):
        return f"the words of {missing} are not in it"
    calls = sum(entry.kind == "tool_call" for entry in entries)
    wanted = sum(len(tool_uses(turn)) for turn in draft.turns)
    return f"it holds {calls} tool calls, not {wanted}" if calls != wanted else ""
