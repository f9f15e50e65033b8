"""The command that runs a harness in a loop: run."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from obsmem.core.errors import NotFound, UsageError
from obsmem.harnesses import load
from obsmem.interfaces.report import warn
from obsmem.system.local_time import local_clock
from obsmem.system.programs import run_program
from obsmem.system.shown import Streams
from obsmem.tasks.resolve import find_session
from obsmem.tasks.run_loop import LEAST_TURNS, ROTATE_AT, STOP_AT, TURN_SECONDS, Loop, Plan, Told
from obsmem.tasks.run_session import harness_of
from obsmem.tasks.store import open_store

APART = "---"
EACH_SECONDS = 600.0  # for the command that makes the next prompt
INTERRUPTED = 130


def run_run(arguments: argparse.Namespace) -> int:
    """``run HARNESS -- ARGS``: 0 all prompts were served, 3 the program failed, 4 a fresh window is too small, 130 interrupted."""
    harness = harness_of(arguments.harness)
    program = next((path for name in load(harness).PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        raise NotFound(
            f"None of {', '.join(load(harness).PROGRAMS)} is on this machine's PATH. Install it, or name another harness."
        )
    plan = Plan(
        harness,
        program,
        tuple(arguments.others),
        os.getcwd(),
        arguments.rotate_at or ROTATE_AT,
        arguments.stop_at or STOP_AT,
        arguments.least_turns or LEAST_TURNS,
        arguments.style,
        arguments.turn_seconds or TURN_SECONDS,
    )
    if plan.rotate_at > plan.stop_at:
        raise UsageError(f"--rotate-at {plan.rotate_at} is beyond --stop-at {plan.stop_at}; it must come first.")
    with open_store() as store:
        stored = find_session(store, arguments.session) if arguments.session else None
        if stored is not None and stored.session.harness != harness:
            raise UsageError(f"Session {stored.session.handle} is one of {stored.session.harness}, not of {harness}.")
        loop = Loop(store, plan, local_clock, _teller(arguments), Streams(sys.stdout.buffer, sys.stderr.buffer), stored)
        try:
            return loop.run(_prompts_of(arguments, loop))
        except KeyboardInterrupt:
            return INTERRUPTED


def _teller(arguments: argparse.Namespace) -> Callable[[Told], None]:
    def tell(told: Told) -> None:
        value = {"at": int(time.time() * 1000), **told._asdict(), "numbers": dict(told.numbers)}
        if arguments.log:
            with open(arguments.log, "a", encoding="utf-8") as file:
                file.write(json.dumps(value) + "\n")
        warn(json.dumps(value) if arguments.json else _line(told))

    return tell


def _line(told: Told) -> str:
    numbers = " ".join(f"{name}={_short(value)}" for name, value in told.numbers.items())
    return f"[run] {told.session or '-'} {told.what}: {told.why} ({numbers})"


def _short(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _prompts_of(arguments: argparse.Namespace, loop: Loop) -> Iterator[str]:
    if arguments.each:
        yield from _printed(arguments.each, loop)
        return
    if arguments.prompts == "-":
        text = sys.stdin.read()
    else:
        try:
            with open(arguments.prompts, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The prompts in {arguments.prompts} cannot be read ({error}).") from error
    yield from split_prompts(text)


def split_prompts(text: str) -> list[str]:
    """The prompts of a text: what stands between lines of ``---``, or each line where there are none; blank ones are none."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if APART not in lines:
        return [line.strip() for line in lines if line.strip()]
    prompts: list[list[str]] = [[]]
    for line in lines:
        if line == APART:
            prompts.append([])
        else:
            prompts[-1].append(line)
    return [prompt for one in prompts if (prompt := "\n".join(one).strip())]


def _printed(command: str, loop: Loop) -> Iterator[str]:
    """What a command of the user's prints, again and again; nothing, or a status other than 0, ends the loop."""
    while True:
        session = loop.stored.session.handle if loop.stored is not None else ""
        more = {"OBSERVATIONAL_MEMORY_RUN_PROMPT": str(loop.number + 1), "OBSERVATIONAL_MEMORY_RUN_SESSION": session}
        ended = run_program(["/bin/sh", "-c", command], os.getcwd(), {**os.environ, **more}, EACH_SECONDS)
        if ended.stderr:
            warn(ended.stderr.rstrip())
        if ended.status != 0 or not ended.stdout.strip():
            return
        yield ended.stdout.strip()
