"""A process ends itself before its n-th commit, fsync, rename or spawn, for every n; and is killed at drawn instants.

A commit of SQLite is the truncation of a journal, so the calls counted are fsync, rename, link, unlink, truncation and the
start of a process; with ``--long`` also every write. After each death the same call is made again, then the maintainer
goes to the end of the transcript; what is there then must be what an undisturbed run leaves.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bench.faults import shim
from bench.faults.invariants import check, contents, litter
from bench.faults.parts import Part
from bench.faults.place import HARNESS, SESSION, Place
from bench.faults.process import Arm, Ended, until_quiet
from bench.faults.programs import RowsPlace, formats

FIRST, THEN, WHOLE = 44, 64, 80  # lines of a demo's transcript
ANSWER = json.dumps([{"text": "A worker wrote this note.", "relevance": "medium", "entry_ids": [1]}])
Act = Callable[[Place, "Arm | None"], Ended]


class Scene(NamedTuple):
    """What stands before, and the call that dies. ``same``: the result equals an undisturbed run's, note for note."""

    name: str
    prepare: Callable[[Place], None]
    act: Act
    same: bool = True
    place: Callable[[], Place] = Place
    few: int = 16


def _maintain(*more: str) -> Act:
    return lambda place, arm: place.maintain(*more, arm=arm)


def _hook(event: str, payload: str, *more: str, **changes: str) -> Act:
    return lambda place, arm: place.hook(event, place.payload(payload, **changes), *more, arm=arm)


def _new(place: Place) -> None:
    place.grow(FIRST)


def _grown(place: Place) -> None:
    place.grow(FIRST)
    place.maintain()
    place.grow(THEN)


def _compacted(place: Place) -> None:
    _grown(place)
    place.maintain("--before-compact")


def _hired(place: Place) -> None:
    _grown(place)
    script = os.path.join(place.folder, "script.json")
    run = {"run": [sys.executable, "-S", "-c", f"print({ANSWER!r})"]}
    with open(script, "w", encoding="utf-8") as file:
        json.dump({"*": run}, file)
    place.settings["WORKERS"] = json.dumps([{"kind": "scripted", "path": script}])
    place.settings["CHUNK_MAX_TOKENS"] = "2000"


def older(place: Place) -> None:
    """A store as the first version left it: its first migration only, with the rows that fit."""
    _grown(place)
    place.ask(lambda: _age(place.home))


def _age(home: str) -> None:
    from obsmem.store import archive_schema, memory_schema
    from obsmem.store.schema import copy_rows, open_database, transaction

    for name, migrations in (("archive.db", archive_schema.MIGRATIONS), ("memory.db", memory_schema.MIGRATIONS)):
        path = os.path.join(home, name)
        source = sqlite3.connect(path)
        target = open_database(f"{path}.old", migrations[:1], journal="TRUNCATE")
        target.execute("PRAGMA foreign_keys=OFF")
        with transaction(target):
            for (table,) in target.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
                if table != "migrations" and not table.startswith("sqlite_"):
                    copy_rows(source, target, table, "1", ())
        target.close()
        source.close()
        os.replace(f"{path}.old", path)
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(os.path.join(home, f"index.db{ending}")):
            os.unlink(os.path.join(home, f"index.db{ending}"))


SCENES = (
    Scene("maintainer, new store", _new, _maintain()),
    Scene("maintainer, grown transcript", _grown, _maintain()),
    Scene("maintainer, program as worker", _hired, _maintain(), same=False),
    Scene("before a compaction", _grown, _maintain("--before-compact", "--announced", "auto:24000/200000"), same=False),
    Scene("migration of the first version's store", older, _maintain()),
    Scene("session ended", _compacted, _maintain("--ended"), same=False),
    Scene("maintainer, codex", _grown, _maintain(), place=partial(Place, harness="codex")),
    Scene("maintainer, cursor", _grown, _maintain(), place=partial(Place, harness="cursor")),
    *(Scene(f"maintainer, {form.name}", _grown, _maintain(), place=partial(RowsPlace, form)) for form in formats()),
)
HOOKS = (
    Scene("Stop", _grown, _hook("Stop", "Stop"), same=False),
    Scene("PreCompact", _grown, _hook("PreCompact", "PreCompact-auto"), same=False),
    Scene(
        "SessionStart compact 1/4",
        _compacted,
        _hook("SessionStart", "SessionStart-compact", "--part", "1/4"),
        same=False,
    ),
    Scene(
        "SessionStart resume 1/4", _compacted, _hook("SessionStart", "SessionStart-resume", "--part", "1/4"), same=False
    ),
    Scene("UserPromptSubmit", _compacted, _hook("UserPromptSubmit", "UserPromptSubmit"), same=False),
    Scene("SessionEnd", _grown, _hook("SessionEnd", "SessionEnd"), same=False),
)


def enumerate_kills(short: bool, chance: random.Random, scene: Scene, kinds: int = shim.STEPS) -> Part:
    """A death at every point of a scene (with ``short``, at so many as fit, evenly spread). A hook counts its writes, too."""
    part = Part(f"dies before each {'write or step' if kinds & shim.WRITE else 'step'}: {scene.name}")
    if not shim.available():
        return part.skip("no C compiler, or not Linux")
    _kill_scene(part, scene, kinds, scene.few if short else 0)
    return part


def _kill_scene(part: Part, scene: Scene, kinds: int, most: int) -> None:
    with scene.place() as place:
        scene.prepare(place)
        until_quiet(place.home)
        place.keep("before")
        counted = scene.act(place, Arm(kinds))
        if counted.status:
            part.fault(scene.name, f"an undisturbed run ends with {counted.status}: {counted.err[-200:]!r}")
            return
        _finish(place)
        wanted = contents(place)
        for sentence in check(place, whole=not isinstance(place, RowsPlace)):
            part.fault(f"{scene.name}, undisturbed", sentence)
        step = max(1, -(-counted.seen // most)) if most else 1
        numbers = range(1, counted.seen + 1, step)
        part.note(f"{scene.name}: {len(numbers)} of {counted.seen}")
        for number in numbers:
            place.restore("before")
            part.tried += 1
            where = f"{scene.name}, killed at call {number} of {counted.seen}"
            ended = scene.act(place, Arm(kinds, shim.DIE, number))
            if not ended.killed:
                part.fault(where, f"did not die there, but ended with {ended.status}")
            if ended.out and not _is_json(ended.out):
                part.fault(where, f"printed half an answer: {ended.out[:80]!r}")
            again = scene.act(place, None)
            if again.status not in (0, 4) or again.hung:
                part.fault(where, f"the next run ended with {again.status}: {again.err[-300:]!r}")
            _finish(place)
            for sentence in check(place, whole=not isinstance(place, RowsPlace)):
                part.fault(where, sentence)
            _compare(part, where, wanted, contents(place), scene.same)
            part.litter += len(litter(place))


def _finish(place: Place) -> None:
    """Let the transcript end, and the maintainer get there."""
    until_quiet(place.home)
    place.grow(WHOLE)
    place.maintain()
    place.maintain("--before-compact")


def _compare(part: Part, where: str, wanted: dict[str, object], found: dict[str, object], same: bool) -> None:
    for name in wanted if same else ("bytes", "entries"):
        if wanted[name] != found[name]:
            part.fault(where, f"{name} differ from an undisturbed run")


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def kill_at_instants(short: bool, chance: random.Random) -> Part:
    """SIGKILL at drawn moments of growing runs, one after the other in one store, and a last run that goes to the end."""
    part = Part("kill -9 at instants")
    for _ in range(2 if short else 10):
        with Place() as place:
            place.grow(FIRST)
            for number in range(20):
                place.grow(min(WHOLE, FIRST + 2 * number))
                more = ("--before-compact",) if number % 3 == 2 else ()
                place.maintain(*more, kill_after=chance.uniform(0.01, 0.6))
                part.tried += 1
            _finish(place)
            for sentence in check(place, whole=not isinstance(place, RowsPlace)):
                part.fault("after 20 kills", sentence)
            part.litter += len(litter(place))
    return part


__all__ = ["HARNESS", "SESSION", "enumerate_kills", "kill_at_instants", "older"]
