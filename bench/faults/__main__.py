"""Run the parts and print their counts as a table. The exit status is 1 where anything was violated."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from functools import partial

from bench import facts
from bench.faults import attacks, disks, fuzz, kills, process, shim, surroundings, transcripts
from bench.faults.parts import Part

Run = Callable[[bool, random.Random], Part]
PARTS: dict[str, Run] = {
    "kills": kills.enumerate_kills,
    "hook-kills": kills.enumerate_hook_kills,
    "instants": kills.kill_at_instants,
    "full": disks.full_disk,
    "no-process": disks.no_process,
    "small": disks.small_disk,
    "read-only": disks.read_only,
    "locked": disks.locked,
    "corrupted": disks.corrupted,
    "mangled": transcripts.mangled,
    "growing": transcripts.growing,
    "clocks": transcripts.clocks,
    "workers": transcripts.workers,
    "fuzz": fuzz.fuzz,
    "payloads": fuzz.payloads,
    "questions": fuzz.questions,
    "hostile": attacks.hostile,
    "secrets": attacks.planted,
    "surroundings": surroundings.odd_surroundings,
    "storm": surroundings.many_hooks,
}

# What is longer with ``--long``: an hour for each reader, and a death at every write, too.
LONG: dict[str, Run] = {
    "kills": partial(kills.enumerate_kills, kinds=shim.STEPS | shim.WRITE),
    "fuzz": partial(fuzz.fuzz, seconds=fuzz.LONG_SECONDS),
}


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points, spread evenly: minutes instead of an hour")
    parser.add_argument("--long", action="store_true", help="fuzz each reader for an hour, and die at every write, too")
    parser.add_argument("--part", action="append", choices=[*PARTS], help="only this part (may be given again)")
    parser.add_argument("--seed", type=int, default=7, help="what chance begins with")
    parser.add_argument("--out", metavar="FILE", help="write the counts there as JSON")
    options = parser.parse_args()
    shim.preloaded([sys.executable, "-m", "bench.faults", *sys.argv[1:]])
    process.warm()
    machine = facts.machine()
    facts.show_machine(machine)
    print(
        f"seed {options.seed}, {'quick' if options.quick else 'full'}, shim {'there' if shim.available() else 'not there'}"
    )
    done: dict[str, Part] = {}
    for name in options.part or PARTS:
        started = time.monotonic()
        run = (LONG if options.long else {}).get(name, PARTS[name])
        part = run(options.quick, random.Random(f"{options.seed} {name}"))
        part.seconds = time.monotonic() - started
        done[name] = part
        what = f"skipped: {part.skipped}" if part.skipped else f"{part.tried:7d} tried {len(part.faults):5d} violations"
        left = f" {part.litter} temporary files left" if part.litter else ""
        print(f"{part.name:32s} {what} {part.seconds:7.1f} s{left}", flush=True)
        for line in part.lines():
            print(line, flush=True)
    tried, wrong = sum(part.tried for part in done.values()), sum(len(part.faults) for part in done.values())
    print(f"{'all':32s} {tried:7d} tried {wrong:5d} violations")
    if options.out:
        values = {name: part.value() for name, part in done.items()}
        facts.write(options.out, {"machine": machine, "seed": options.seed, "quick": options.quick, "parts": values})
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
