"""A maintainer that is stopped at its n-th step (a laptop sleeps, a debugger looks), goes on when all has moved, and small files
that hold other bytes.

While it is stopped hooks end in time and another maintainer works or says why not; when it goes on it takes nothing back and
does nothing twice.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from bench.faults import shim
from bench.faults.disks import COMMANDS, DATABASES, all_hooks, good_command, ready, recovered, undisturbed
from bench.faults.parts import Part
from bench.faults.place import Place
from bench.faults.process import Arm, until_quiet

MOST = 40  # points, since each waits as long as a hook may


def stopped(short: bool, chance: random.Random) -> Part:
    """The maintainer of a grown transcript, stopped at points that are evenly spread over its steps."""
    part = Part("stopped at a step while hooks and a maintainer run")
    if not shim.available():
        return part.skip("no C compiler, or not Linux")
    with Place() as place:
        ready(place)
        wanted = undisturbed(place)
        counted = place.maintain(arm=Arm()).seen
        step = max(1, -(-counted // (4 if short else MOST)))
        for number in range(1, counted + 1, step):
            place.restore("before")
            where = f"stopped at step {number} of {counted}"
            reached: list[int] = []

            def meanwhile(where: str = where, reached: list[int] = reached) -> None:
                reached.append(1)
                all_hooks(part, place, where)
                good_command(part, f"{where}, another maintainer", place.maintain("--before-compact"))

            good_command(
                part, f"{where}, goes on", place.maintain(arm=Arm(mode=shim.STOP, number=number), meanwhile=meanwhile)
            )
            part.expect(bool(reached), where, "was not stopped")
            until_quiet(place.home)
            recovered(part, place, where, wanted)
    return part


def small_files(short: bool, chance: random.Random) -> Part:
    """Each file of the data folder that is no database: emptied, cut, other bytes, a folder, a link to itself, a device."""
    part = Part("small files and config that hold other bytes")
    with Place() as place:
        ready(place)
        all_hooks(part, place, "undisturbed")
        wanted = undisturbed(place)
        names = [path.relative_to(place.folder) for path in Path(place.home).rglob("*") if path.is_file()]
        names = [Path("config.yaml"), *sorted(one for one in names if not one.name.startswith(DATABASES))]
        for name in names:
            for way in WAYS if not short else [chance.choice(WAYS)]:
                place.restore("before")
                _spoil(Path(place.folder, name), way, chance)
                where = f"{name.name}: {way}"
                all_hooks(part, place, where)
                for words in COMMANDS:
                    good_command(part, f"{where}, {words[0]}", place.command(*words))
                good_command(part, f"{where}, maintain", place.maintain())
                if way in ODD or name.name == "config.yaml":  # which only the user mends
                    _remove(Path(place.folder, name))
                recovered(part, place, where, wanted)
    return part


ODD = ("a folder", "a link to itself", "a device")
WAYS = ("emptied", "cut", "random bytes", "long", *ODD)


def _spoil(path: Path, way: str, chance: random.Random) -> None:
    data = path.read_bytes() if path.exists() else b"off: [\n"
    _remove(path)
    if way == "a folder":
        path.mkdir()
    elif way == "a link to itself":
        path.symlink_to(path)
    elif way == "a device":
        path.symlink_to("/dev/zero")
    else:
        size = len(data)
        changed = {
            "emptied": b"",
            "cut": data[: size // 2],
            "random bytes": chance.randbytes(size or 40),
            "long": chance.randbytes(3 << 20),
        }
        path.write_bytes(changed[way])


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
