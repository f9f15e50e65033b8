"""Disks that are full at every write, homes that cannot be written, stores that are locked or hold other bytes.

After the fault is over the next maintainer must get to the end, with nothing lost and nothing doubled; while it lasts hooks
print nothing wrong and end with 0, and commands say one sentence.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.faults import process, shim
from bench.faults.invariants import check, contents
from bench.faults.kills import FIRST, THEN, WHOLE
from bench.faults.parts import Part
from bench.faults.place import Place
from bench.faults.process import Arm, Ended, Holder, until_quiet

DATABASES = ("archive.db", "memory.db", "index.db")
ROOMY = 40_000  # pages of a disk on which the product does write
COMMANDS = (("status",), ("sessions",), ("notes",), ("search", "--here", "tests"), ("fsck",), ("doctor",))
HOOKS = (
    ("Stop", "Stop"), ("UserPromptSubmit", "UserPromptSubmit"), ("PreCompact", "PreCompact-auto"),
    ("SessionStart", "SessionStart-compact"), ("SessionStart", "SessionStart-startup"), ("PostToolUse", "PostToolUse"),
)  # fmt: skip


def ready(place: Place) -> None:
    """A store that is up to date, a block that is due, and a transcript that has grown since."""
    place.grow(FIRST)
    place.maintain()
    place.maintain("--before-compact")
    place.grow(THEN)
    until_quiet(place.home)


def good_hook(part: Part, where: str, ended: Ended) -> None:
    """A hook must end with 0, in time, print valid JSON or nothing, and nothing on standard error."""
    from bench.faults.kills import _is_json

    good = ended.status == 0 and not ended.hung and not ended.err and (not ended.out or _is_json(ended.out))
    part.expect(
        good, where, f"status {ended.status}{', hung' * ended.hung}, out {ended.out[:60]!r}, err {ended.err[-200:]!r}"
    )


def good_command(part: Part, where: str, ended: Ended) -> None:
    """A command must end in time, and where it fails say so in a sentence, not with a traceback."""
    said = ended.err.decode("utf-8", "replace")
    good = not ended.hung and ended.status in range(6) and "Traceback" not in said
    part.expect(good, where, f"status {ended.status}{', hung' * ended.hung}: {said[-300:]!r}")


def all_hooks(part: Part, place: Place, where: str) -> None:
    """Every hook once."""
    for event, payload in HOOKS:
        good_hook(part, f"{where}, hook {payload}", place.hook(event, place.payload(payload), "--part", "1/4"))
    until_quiet(place.home)


def recovered(part: Part, place: Place, where: str, wanted: dict[str, object]) -> None:
    """Once the fault is over, the next run gets to the end."""
    place.grow(WHOLE)
    ended = place.maintain("--before-compact")
    place.maintain()
    if ended.status:
        part.fault(where, f"afterwards the maintainer ends with {ended.status}: {ended.err[-200:]!r}")
        return
    for sentence in check(place):
        part.fault(where, sentence)
    found = contents(place)
    for name in ("bytes", "entries"):
        if found[name] != wanted[name]:
            part.fault(where, f"{name} differ from an undisturbed run")


def undisturbed(place: Place) -> dict[str, object]:
    """What the end looks like where nothing happens; the place is as it was before."""
    place.keep("before")
    place.grow(WHOLE)
    place.maintain("--before-compact")
    wanted = contents(place)
    place.restore("before")
    return wanted


ACTS: dict[str, Callable[[Place, Arm | None], Ended]] = {
    "maintainer": lambda place, arm: place.maintain(arm=arm),
    "before a compaction": lambda place, arm: place.maintain("--before-compact", arm=arm),
    "hook Stop": lambda place, arm: place.hook("Stop", place.payload("Stop"), arm=arm),
    "hook SessionStart": lambda place, arm: place.hook(
        "SessionStart", place.payload("SessionStart-compact"), "--part", "1/4", arm=arm
    ),
    "status": lambda place, arm: place.command("status", arm=arm),
}


def full_disk(short: bool, chance: random.Random, name: str) -> Part:
    """No space at the n-th write and at all after it, or at that one alone, for one of the acts; then space again."""
    part = Part(f"disk full from, or at, each write: {name}")
    if not shim.available():
        return part.skip("no C compiler, or not Linux")
    kinds, act = shim.WRITE | shim.SYNC | shim.MOVE, ACTS[name]
    with Place() as place:
        ready(place)
        wanted = undisturbed(place)
        counted = act(place, Arm(kinds)).seen
        step = max(1, -(-counted // 8)) if short else 1
        for number in range(1, counted + 1, step):
            for mode in (shim.FULL_FROM, shim.FULL_ONCE):
                place.restore("before")
                where = f"no space {'from' if mode == shim.FULL_FROM else 'at'} write {number} of {counted}"
                ended = act(place, Arm(kinds, mode, number))
                (good_hook if name.startswith("hook") else good_command)(part, where, ended)
                until_quiet(place.home)
                recovered(part, place, where, wanted)
    return part


def no_process(short: bool, chance: random.Random) -> Part:
    """No process can be started, from the first or at the n-th: hooks stay silent, and a compaction loses nothing by it."""
    part = Part("no process can be started")
    if not shim.available():
        return part.skip("no C compiler, or not Linux")
    script = [{"kind": "scripted", "path": "/nonexistent"}, {"kind": "command", "run": ["true"]}]
    with Place() as place:
        ready(place)
        place.settings["WORKERS"] = json.dumps(script)
        wanted = undisturbed(place)
        for number in range(1, 4):
            for mode in (shim.FULL_FROM, shim.FULL_ONCE):
                arm = Arm(shim.SPAWN, mode, number)
                place.restore("before")
                where = f"{'from' if mode == shim.FULL_FROM else 'at'} start {number}"
                good_command(part, f"{where}, before a compaction", place.maintain("--before-compact", arm=arm))
                for sentence in covered(place):
                    part.fault(f"{where}, before a compaction", sentence)
                for event, payload in HOOKS:
                    ended = place.hook(event, place.payload(payload), "--part", "1/4", arm=arm)
                    good_hook(part, f"{where}, hook {payload}", ended)
                until_quiet(place.home)
                recovered(part, place, where, wanted)
    return part


def covered(place: Place) -> list[str]:
    """Sessions of which something is neither observed nor a gap."""

    def find() -> list[str]:
        from obsmem.tasks.store import open_store

        with open_store(place.home) as store:
            return [
                f"{one.session.handle}: {tokens} tokens are neither observed nor a gap"
                for one in store.archive.sessions()
                if (tokens := store.archive.observable_tokens(one.no, store.memory.covered_to(one.session.handle)))
            ]

    return process.ask(find, place.environment)


def small_disk(short: bool, chance: random.Random) -> Part:
    """A real file system of too few pages, then a larger one: mounted in memory, by root only."""
    part = Part("file system too small")
    with Place() as place:
        ready(place)
        wanted = undisturbed(place)
        for pages in range(0, 120, 12 if short else 1):
            place.restore("before")
            with _mounted(place.home, pages) as mounted:
                if not mounted:
                    return part.skip("mounting is not allowed here")
                where = f"{pages} pages free"
                good_command(part, where, place.maintain())
                good_command(part, f"{where}, to the last byte", place.maintain_to_the_last_byte("--before-compact"))
                good_command(part, f"{where}, once more", place.maintain_to_the_last_byte())
                all_hooks(part, place, where)
                _remount(place.home, 1 << 28)
                recovered(part, place, where, wanted)
    return part


class _mounted:
    """A data folder on a file system of its own size."""

    def __init__(self, folder: str, pages: int) -> None:
        self.folder, self.pages, self.done = folder, pages, False

    def __enter__(self) -> bool:
        used = sum(-(-path.stat().st_size // 4096) + 1 for path in Path(self.folder).rglob("*"))
        aside = self.folder + ".aside"
        os.replace(self.folder, aside)
        os.mkdir(self.folder, 0o700)
        size = (used + 8 + self.pages) * 4096
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", self.folder]
        self.done = (
            bool(shutil.which("mount")) and subprocess.run(command, capture_output=True, timeout=20).returncode == 0
        )
        if self.done:
            shutil.copytree(aside, self.folder, dirs_exist_ok=True)
        shutil.rmtree(aside)
        return self.done

    def __exit__(self, *_: object) -> None:
        until_quiet(self.folder)
        if self.done:
            subprocess.run(["umount", "-l", self.folder], capture_output=True, timeout=20)


def _remount(folder: str, size: int) -> None:
    command = ["mount", "-o", f"remount,size={size}", folder]
    subprocess.run(command, capture_output=True, timeout=20, check=True)


def read_only(short: bool, chance: random.Random) -> Part:
    """A home that nobody may write: mounted read-only where root may, else by its permissions."""
    part = Part("read-only home")
    with Place() as place:
        ready(place)
        wanted = undisturbed(place)
        with _mounted(place.home, ROOMY) as mounted:
            if not mounted:
                return part.skip("mounting is not allowed here")
            subprocess.run(["mount", "-o", "remount,ro", place.home], capture_output=True, timeout=20, check=True)
            all_hooks(part, place, "read-only")
            for words in COMMANDS:
                good_command(part, f"read-only, {words[0]}", place.command(*words))
            good_command(part, "read-only, maintain", place.maintain())
            subprocess.run(["mount", "-o", "remount,rw", place.home], capture_output=True, timeout=20, check=True)
            recovered(part, place, "read-only", wanted)
    return part


def locked(short: bool, chance: random.Random) -> Part:
    """Another process holds a database for a minute (with ``short`` 12 s, longer than the product waits)."""
    part = Part("store locked for " + ("12 s" if short else "60 s"))
    seconds = 12 if short else 60
    with Place() as place:
        ready(place)
        wanted = undisturbed(place)
        for name in DATABASES[:2] if short else DATABASES:
            place.restore("before")
            until = time.monotonic() + seconds
            holder = Holder(os.path.join(place.home, name), "BEGIN EXCLUSIVE")
            while time.monotonic() < until:
                for event, payload in HOOKS[:1] if short else HOOKS:
                    good_hook(part, f"{name} locked, hook {payload}", place.hook(event, place.payload(payload)))
                good_command(part, f"{name} locked, maintain", place.maintain())
            holder.end()
            until_quiet(place.home)
            recovered(part, place, f"{name} locked", wanted)
    return part


def corrupted(short: bool, chance: random.Random) -> Part:
    """Random bytes of each database changed, or its end cut off: hooks stay silent, fsck says it or mends it, nothing raises."""
    part = Part("store corrupted")
    with Place() as place:
        ready(place)
        wanted = undisturbed(place)
        for number in range(6 if short else 60):
            for name in DATABASES:
                place.restore("before")
                until_quiet(place.home)
                what = _corrupt(os.path.join(place.home, name), chance, number)
                where = f"{name}, {what}"
                for event, payload in HOOKS[:4]:
                    good_hook(
                        part, f"{where}, hook {payload}", place.hook(event, place.payload(payload), "--part", "1/4")
                    )
                until_quiet(place.home)
                for words in COMMANDS[:5]:
                    good_command(part, f"{where}, {words[0]}", place.command(*words))
                good_command(part, f"{where}, fsck --repair", place.command("fsck", "--repair"))
                good_command(part, f"{where}, maintain", place.maintain())
                if name == "index.db":
                    recovered(part, place, where, wanted)
    return part


def _corrupt(path: str, chance: random.Random, number: int) -> str:
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        if number % 3 == 2:
            keep = chance.randrange(size)
            file.truncate(keep)
            return f"cut to {keep} of {size} bytes"
        length = (1, 16, 4096)[number // 3 % 3]
        offset = chance.randrange(size)
        file.seek(offset)
        old = file.read(length)
        file.seek(offset)
        file.write(bytes(byte ^ chance.randrange(1, 256) for byte in old))
        return f"{len(old)} bytes at {offset} of {size}"


__all__ = ["corrupted", "full_disk", "locked", "process", "read_only", "small_disk"]
