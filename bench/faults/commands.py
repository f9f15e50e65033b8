"""Commands that die before their n-th step: what they write for other programs is the old or the new, and once more does it.

Other programs' files are the reason: a config that is cut short stops a harness, and half a session breaks it.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bench.faults import shim
from bench.faults.disks import ready
from bench.faults.invariants import check
from bench.faults.parts import Part
from bench.faults.place import HARNESS, Place
from bench.faults.process import Arm, until_quiet
from bench.faults.ways_out import _handle

SETTINGS = {"model": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
NAMED_ANEW = ".codex/sessions"  # each fork is another session
WORD = b"Norrpost"  # stands all over the demo
FIRST_WORDS = b"second carrier and their signed webhooks"  # stands in its first prompt
GONE = 3  # the status of a command whose session is not there


class Act(NamedTuple):
    """A command's words for the handle of a session. ``forgets``: words that are to stand nowhere afterwards."""

    words: Callable[[str], tuple[str, ...]]
    before: tuple[str, ...] = ()
    forgets: bytes = b""


INSTALL = ("install", HARNESS, "--yes")
ACTS: dict[str, Act] = {
    "install": Act(lambda _: INSTALL),
    "uninstall": Act(lambda _: ("uninstall", HARNESS, "--yes"), INSTALL),
    "fork": Act(lambda handle: ("fork", handle, "--to", "codex")),
    "rotate": Act(lambda handle: ("rotate", handle, "--force")),
    "fsck --repair": Act(lambda _: ("fsck", "--repair")),
    "forget a session": Act(lambda handle: ("forget", handle, "--yes"), forgets=WORD),
    "forget an entry": Act(lambda handle: ("forget", f"{handle}.0", "--yes"), forgets=FIRST_WORDS),
}


def command_kills(short: bool, chance: random.Random, name: str) -> Part:
    """A death at every step of a command, at every write too where it writes for others."""
    part = Part(f"dies before each step: {name}")
    if not shim.available():
        return part.skip("no C compiler, or not Linux")
    act = ACTS[name]
    kinds = shim.STEPS if act.forgets or name == "fork" else shim.STEPS | shim.WRITE
    with Place() as place:
        ready(place)
        settings = Path(place.folder, ".claude", "settings.json")
        settings.parent.mkdir()
        settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
        words = act.words(str(place.ask(lambda: _handle(place.home))))
        if act.before:
            place.command(*act.before)
        until_quiet(place.home)
        place.keep("before")
        old = _outside(place)
        counted = place.command(*words, arm=Arm(kinds))
        part.expect(counted.status == 0, "undisturbed", f"ends with {counted.status}: {counted.err[-200:]!r}")
        until_quiet(place.home)
        new = _outside(place)
        step = max(1, -(-counted.seen // 8)) if short else 1
        for number in range(1, counted.seen + 1, step):
            place.restore("before")
            where = f"killed at call {number} of {counted.seen}"
            ended = place.command(*words, arm=Arm(kinds, shim.DIE, number))
            part.expect(ended.killed, where, f"did not die there, but ended with {ended.status}")
            for sentence in _half(_outside(place), old, new):
                part.fault(where, sentence)
            again = place.command(*words)
            if again.status not in (0, GONE if act.forgets else 0) or again.hung:
                part.fault(where, f"the next run ended with {again.status}: {again.err[-300:]!r}")
            until_quiet(place.home)
            for sentence in _half(_outside(place), new, new):
                part.fault(f"{where}, and once more", sentence)
            if not act.forgets:
                place.maintain()
            else:
                for left in _speaking(place, act.forgets):
                    part.fault(where, f"{left} still has what was forgotten")
            wrong = check(place, whole=not act.forgets)
            for sentence in wrong if not act.forgets else [one for one in wrong if "have holes" not in one]:
                part.fault(where, sentence)
    return part


def _outside(place: Place) -> dict[str, bytes]:
    """What stands in the user's files."""
    top, found = Path(place.folder), {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_file() and not name.startswith(("data" + os.sep, "transcripts" + os.sep)):
            found[name] = path.read_bytes()
    return found


def _half(now: dict[str, bytes], old: dict[str, bytes], new: dict[str, bytes]) -> list[str]:
    wrong = []
    for name in sorted(now.keys() | new.keys() | old.keys()):
        if name.startswith(NAMED_ANEW):
            if name in now and not all(_is_json(line) for line in now[name].split(b"\n") if line):
                wrong.append(f"{name} is half a session")
        elif now.get(name) not in (old.get(name), new.get(name)) and not name.endswith((".tmp", ".new")):
            wrong.append(f"{name} is neither as it was nor as it is to be: {now.get(name, b'')[:80]!r}")
    return wrong


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _speaking(place: Place, words: bytes) -> list[str]:
    """The files of the data folder, and the stretches of the archive, in which these words still stand."""
    home = Path(place.home)
    found = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and words in path.read_bytes()]
    if words == FIRST_WORDS:  # they stand in a record without entries, too
        return found
    with closing(sqlite3.connect(home / "archive.db")) as archive:
        kept = [zlib.decompress(data) for (data,) in archive.execute("SELECT data FROM segments WHERE length(data)>0")]
    return found + ["a segment"] * sum(words in data for data in kept)
