"""Transcripts that are cut, rewritten, deleted, replaced, or grow while they are read; clocks that jump.

What was archived once stays, byte for byte, by the ids that were given; what stands in the file now is archived too.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.faults import process
from bench.faults.disks import HOOKS, all_hooks, good_command, ready
from bench.faults.invariants import check
from bench.faults.kills import FIRST, THEN, WHOLE, _is_json
from bench.faults.parts import Part
from bench.faults.place import HARNESS, SESSION, Place
from bench.faults.process import until_quiet

DAY = 86_400


def mangled(short: bool, chance: random.Random) -> Part:
    """Each thing that can happen to a transcript, at drawn places, with a maintainer after each."""
    part = Part("transcript mangled")
    ways: tuple[Callable[[Place, random.Random], str], ...] = (
        _cut_torn, _cut_short, _rewritten, _deleted, _replaced, _garbage, _emptied, _folder, _pipe, _device, _loop,
    )  # fmt: skip
    for way in ways:
        for _ in range(2 if short else 20):
            with Place() as place:
                ready(place)
                place.maintain()
                before = _records_of(place)
                what = way(place, chance)
                where = f"{way.__name__.strip('_')}: {what}"
                good_command(part, f"{where}, maintain", place.maintain())
                all_hooks(part, place, where)
                _remove_odd(place.transcript)
                _kept(part, place, where, before)
                for sentence in check(place, whole=False):
                    part.fault(where, sentence)
                place.grow(WHOLE)
                good_command(part, f"{where}, whole again", place.maintain("--before-compact"))
                for sentence in check(place):
                    part.fault(f"{where}, whole again", sentence)
                _kept(part, place, f"{where}, whole again", before)
                _once(part, place, where)
    return part


def _records_of(place: Place) -> dict[str, bytes]:
    found: dict[str, bytes] = place.ask(lambda: _records(place.home))
    return found


def _records(home: str) -> dict[str, bytes]:
    """Every entry's id with its record."""
    from obsmem.tasks.store import open_store

    with open_store(home) as store:
        return {
            f"{stored.session.handle}.{row.seq}": store.archive.record(row)
            for stored in store.archive.sessions()
            for row in store.archive.entries(stored.no)
        }


def _kept(part: Part, place: Place, where: str, before: dict[str, bytes]) -> None:
    now = _records_of(place)
    lost = [name for name, data in before.items() if now.get(name) != data]
    part.expect(not lost, where, f"{len(lost)} entries no longer give their bytes: {lost[:3]}")


def _once(part: Part, place: Place, where: str) -> None:
    """No record of the demo that is archived in one session stands there as two entries of one block."""

    def doubled() -> list[str]:
        from obsmem.tasks.store import open_store

        with open_store(place.home) as store:
            found: list[str] = []
            for stored in store.archive.sessions():
                seen: dict[tuple[bytes, int], int] = {}
                for row in store.archive.observable(stored.no, 0):
                    key = (store.archive.record(row), row.block)
                    if key in seen:
                        found.append(f"{stored.session.handle}.{seen[key]} and .{row.seq}")
                    seen[key] = row.seq
            return found

    for pair in place.ask(doubled):
        part.fault(where, f"one record is two entries: {pair}")


def _cut_torn(place: Place, chance: random.Random) -> str:
    data = Path(place.transcript).read_bytes()
    at = chance.randrange(1, len(data))
    Path(place.transcript).write_bytes(data[:at])
    return f"at byte {at}"


def _cut_short(place: Place, chance: random.Random) -> str:
    lines = chance.randrange(1, FIRST)
    place.grow(lines)
    return f"to {lines} lines"


def _rewritten(place: Place, chance: random.Random) -> str:
    dropped = chance.randrange(1, THEN)
    kept = place.lines[:dropped] + place.lines[dropped + 1 : WHOLE]
    Path(place.transcript).write_bytes(b"".join(kept))
    return f"without line {dropped}"


def _deleted(place: Place, chance: random.Random) -> str:
    os.unlink(place.transcript)
    return "gone"


def _replaced(place: Place, chance: random.Random) -> str:
    other = b"".join(place.lines[:WHOLE]).replace(SESSION.encode(), b"0" * 8 + SESSION[8:].encode())
    Path(place.transcript).write_bytes(other)
    return "by another session's"


def _garbage(place: Place, chance: random.Random) -> str:
    with open(place.transcript, "ab") as file:
        file.write(chance.randbytes(5000) + b"\n")
    return "random bytes at the end"


def _emptied(place: Place, chance: random.Random) -> str:
    Path(place.transcript).write_bytes(b"")
    return "0 bytes"


def _folder(place: Place, chance: random.Random) -> str:
    os.unlink(place.transcript)
    os.mkdir(place.transcript)
    return "a folder"


def _pipe(place: Place, chance: random.Random) -> str:
    os.unlink(place.transcript)
    os.mkfifo(place.transcript)
    return "a pipe that nobody writes to"


def _device(place: Place, chance: random.Random) -> str:
    os.unlink(place.transcript)
    os.symlink("/dev/zero", place.transcript)
    return "a link to a device without an end"


def _loop(place: Place, chance: random.Random) -> str:
    os.unlink(place.transcript)
    os.symlink(place.transcript, place.transcript)
    return "a link to itself"


def _remove_odd(path: str) -> None:
    if os.path.isdir(path):
        os.rmdir(path)
    elif os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        os.unlink(path)


def growing(short: bool, chance: random.Random) -> Part:
    """A writer appends in pieces that end within lines, while maintainers and hooks run; then it has ended."""
    part = Part("transcript grows while read")
    for _ in range(2 if short else 20):
        with Place() as place:
            place.grow(1)
            whole = b"".join(place.lines[:WHOLE])
            cuts = sorted(chance.sample(range(len(place.lines[0]) + 1, len(whole)), 300))

            def write(place: Place = place, whole: bytes = whole, cuts: list[int] = cuts) -> None:
                with open(place.transcript, "r+b", buffering=0) as file:
                    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
                        file.seek(start)
                        file.write(whole[start:end])
                        time.sleep(0.005)

            writer = threading.Thread(target=write)
            writer.start()
            while writer.is_alive():
                good_command(part, "while it grows", place.maintain(*(["--before-compact"] * chance.randrange(2))))
            writer.join()
            place.maintain()
            place.maintain("--before-compact")
            part.tried += len(cuts)
            for sentence in check(place):
                part.fault("after it grew", sentence)
            _once(part, place, "after it grew")
    return part


def clocks(short: bool, chance: random.Random) -> Part:
    """Each process has a clock of its own, up to a day off, and it jumps within one, too."""
    part = Part("clocks apart and jumping")
    for _ in range(2 if short else 20):
        with Place() as place:
            for number in range(6):
                place.grow(min(WHOLE, 12 * (number + 1)))
                for words in (("--before-compact",), ()):
                    good_command(part, "jumping clock", _off(place, chance, _maintain_words(place, *words)))
                for event, payload in HOOKS:
                    ended = _off(place, chance, None, (event, payload))
                    good = ended.status == 0 and not ended.err and (not ended.out or _is_json(ended.out))
                    part.expect(
                        good,
                        f"jumping clock, hook {payload}",
                        f"{ended.status} {ended.out[:60]!r} {ended.err[-200:]!r}",
                    )
                until_quiet(place.home)
            place.grow(WHOLE)
            place.maintain("--before-compact")
            place.maintain()
            for sentence in check(place):
                part.fault("after jumps", sentence)
            given = place.hook("SessionStart", place.payload("SessionStart-compact"), "--part", "1/4")
            part.expect(bool(given.out), "after jumps", "a compaction's start gets no block")
    return part


def _maintain_words(place: Place, *more: str) -> tuple[str, ...]:
    return ("maintain", HARNESS, "--transcript", place.transcript, "--session", SESSION, "--cwd", place.project, *more)


def _off(
    place: Place, chance: random.Random, words: tuple[str, ...] | None, hook: tuple[str, str] = ("", "")
) -> process.Ended:
    shift, jump = chance.randint(-DAY, DAY), chance.randint(-DAY, DAY)
    after = chance.randint(1, 40)
    inner = process.command(*words) if words else process.hook(HARNESS, hook[0], "--part", "1/4")

    def work() -> int | None:
        real, real_ns, calls = time.time, time.time_ns, [0]

        def offset() -> int:
            calls[0] += 1
            return shift + (jump if calls[0] > after else 0)

        time.time = lambda: real() + offset()
        time.time_ns = lambda: real_ns() + offset() * 10**9
        return inner()

    given = b"" if words else place.payload(hook[1])
    return process.run(work, place.environment, given=given)
