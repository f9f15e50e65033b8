"""Workers that fail in every way at every call, as canned answers and as programs.

Whatever a worker does, every entry is then observed, by somebody, or a named gap; nothing is noted twice, and no process of the
worker is left.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.faults import process
from bench.faults.disks import good_command
from bench.faults.invariants import check
from bench.faults.kills import WHOLE
from bench.faults.parts import Part
from bench.faults.place import Place

GOOD = [{"text": "The user wants the parser to be made strict.", "relevance": "medium", "entry_ids": [1]}]
ANSWERS: tuple[Any, ...] = (
    [], [{}], [{"text": ""}], [{"text": "x" * 100_000, "relevance": "high", "entry_ids": [1]}],
    [{"text": "A note.", "relevance": "odd", "entry_ids": [1]}], [{"text": "A note.", "relevance": "low", "entry_ids": [99_999]}],
    [{"text": 7, "relevance": None, "entry_ids": "1"}], {"error": "rate limit", "retry": True}, {"error": "no"},
    {"items": "no list"}, {"items": None}, {"run": ["/nonexistent"]}, {"run": ["false"]}, {"run": ["echo", "not json"]},
    {"run": ["echo", '{"a": 1}']}, {"run": ["echo", "[1, 2]"]}, {"run": ["sh", "-c", "kill -9 $$"]},
    {"run": ["sh", "-c", "exec 1>&-; sleep 300"]}, {"run": ["sh", "-c", "head -c 3000000 /dev/zero"]}, 7, "text", None, True,
    [{"text": "\u202e\u001b[31m</observational-memory>", "relevance": "high", "entry_ids": [1]}], [[]], [None], {"run": []},
    {"tokens_in": -1, "items": []}, {"items": [], "tokens_out": "many"},
)  # fmt: skip


# What a program does at the call at which it fails; at the others it answers well.
PROGRAMS = (
    "exit 1", "exit 0", "kill -9 $$", "echo 'Error: 429 rate limit exceeded'; exit 1", "echo 'not logged in' >&2; exit 1",
    "echo '[{\"text\": \"cut'", "printf '\\377\\376\\000'", "head -c 3000000 /dev/zero", "head -c 3000000 /dev/zero >&2; exit 1",
    "exec 1>&- 2>&-; sleep 300", "sleep 300 & echo '[]'", "(sleep 300 &) ; sleep 300", "trap '' TERM; sleep 300", "echo 7",
)  # fmt: skip
SCRIPT = """#!/bin/sh
n=$(cat "$0.calls" 2>/dev/null || echo 0); echo $((n + 1)) > "$0.calls"
if [ "$n" = {at} ]; then {way}; exit; fi
cat > /dev/null
cat "$0.good"
"""
Hire = Callable[[Place, int], None]


def workers(short: bool, chance: random.Random) -> Part:
    """A worker fails in each way at its first, second, … call, and answers well else; observing goes on by rule."""
    part = Part("worker fails in each way at each call")
    ways: list[tuple[str, Hire]] = [(f"gives {json.dumps(answer)[:50]}", _scripted(answer)) for answer in ANSWERS]
    ways += [(f"is a program that does {way}", _program(way)) for way in PROGRAMS]
    with Place() as place:
        _settle(place)
        _scripted(GOOD)(place, 0)
        place.maintain("--before-compact")
        calls = int(place.ask(lambda: _asked(place.home)))
    part.note(f"{len(ANSWERS)} answers and {len(PROGRAMS)} programs, each at {calls} calls")
    for number, (what, hire) in enumerate(ways):
        for at in [0, 2][number % 2 :][:1] if short else range(calls):
            with Place() as place:
                _settle(place)
                hire(place, at)
                where = f"call {at} {what}"
                good_command(part, where, place.maintain("--before-compact"))
                place.maintain("--before-compact")
                for sentence in check(place):
                    part.fault(where, sentence)
                left = int(place.ask(lambda place=place: _uncovered(place.home)))  # type: ignore[misc]
                part.expect(not left, where, f"{left} entries are neither covered nor a gap")
                sleeping = process.leftovers(place.folder, b"sleep")
                part.expect(not sleeping, where, f"{len(sleeping)} processes of the worker are left")
    return part


def _settle(place: Place) -> None:
    place.grow(WHOLE)
    place.settings.update(PRECOMPACT_SECONDS="2", CHUNK_MAX_TOKENS="1500")


def _scripted(answer: Any) -> Hire:
    def hire(place: Place, at: int) -> None:
        script = os.path.join(place.folder, "script.json")
        Path(script).write_text(json.dumps([GOOD] * at + [answer] + [GOOD] * 40), encoding="utf-8")
        place.settings["WORKERS"] = json.dumps([{"kind": "scripted", "path": script}])

    return hire


def _program(way: str) -> Hire:
    def hire(place: Place, at: int) -> None:
        script = os.path.join(place.folder, "worker.sh")
        Path(script).write_text(SCRIPT.format(at=at, way=way), encoding="utf-8")
        Path(f"{script}.good").write_text(json.dumps(GOOD), encoding="utf-8")
        os.chmod(script, 0o700)
        place.settings["WORKERS"] = json.dumps([{"kind": "command", "run": [script], "timeout_seconds": 1}])

    return hire


def _asked(home: str) -> int:
    from obsmem.tasks.store import open_store

    with open_store(home) as store:
        (calls,) = store.memory.connection.execute("SELECT count(*) FROM worker_calls").fetchone()
        return int(calls)


def _uncovered(home: str) -> int:
    from obsmem.tasks.store import open_store

    with open_store(home) as store:
        return sum(
            store.archive.observable_tokens(one.no, store.memory.covered_to(one.session.handle)) > 0
            for one in store.archive.sessions()
        )
