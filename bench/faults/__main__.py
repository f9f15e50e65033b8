"""Run the parts and print their counts as a table. The exit status is 1 where anything was violated."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from functools import partial

from bench import facts
from bench.faults import (
    attacks,
    commands,
    databases,
    disks,
    fuzz,
    kills,
    process,
    shim,
    surroundings,
    suspended,
    transcripts,
    workers,
)
from bench.faults.parts import Part, add_to

Run = Callable[[bool, random.Random], Part]
TARGETS = [target.name for target in fuzz.targets("")]
PARTS: dict[str, Run] = {
    **{f"kills {scene.name}": partial(kills.enumerate_kills, scene=scene) for scene in kills.SCENES},
    **{
        f"hook-kills {scene.name}": partial(kills.enumerate_kills, scene=scene, kinds=shim.STEPS | shim.WRITE)
        for scene in kills.HOOKS
    },
    **{f"command-kills {name}": partial(commands.command_kills, name=name) for name in commands.ACTS},
    "stopped": suspended.stopped,
    "instants": kills.kill_at_instants,
    **{f"full {name}": partial(disks.full_disk, name=name) for name in disks.ACTS},
    "no-process": disks.no_process,
    "small": disks.small_disk,
    "read-only": disks.read_only,
    "locked": disks.locked,
    "corrupted": disks.corrupted,
    "small-files": suspended.small_files,
    "mangled": transcripts.mangled,
    "growing": transcripts.growing,
    "databases": databases.databases,
    "growing-rows": databases.growing_rows,
    "clocks": transcripts.clocks,
    "workers": workers.workers,
    **{f"fuzz {name}": partial(fuzz.fuzz, index=index, name=name) for index, name in enumerate(TARGETS)},
    "payloads": fuzz.payloads,
    "questions": fuzz.questions,
    "hostile": attacks.hostile,
    "secrets": attacks.planted,
    "surroundings": surroundings.odd_surroundings,
    "storm": surroundings.many_hooks,
}

# What is longer with ``--long``: an hour for each reader, and a death at every write, too.
LONG: dict[str, Run] = {
    **{
        f"kills {scene.name}": partial(kills.enumerate_kills, scene=scene, kinds=shim.STEPS | shim.WRITE)
        for scene in kills.SCENES
    },
    **{
        f"fuzz {name}": partial(fuzz.fuzz, index=index, name=name, seconds=fuzz.LONG_SECONDS)
        for index, name in enumerate(TARGETS)
    },
}


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--short", action="store_true", help="fewer points, spread evenly: minutes")
    length.add_argument("--quick", action="store_true", help="every point, and 5 minutes a reader (the default)")
    length.add_argument("--long", action="store_true", help="an hour a reader, and a death at every write, too")
    parser.add_argument(
        "--part", action="append", default=[], help=f"only what begins so (may be given again): {', '.join(PARTS)}"
    )
    parser.add_argument("--seed", type=int, default=7, help="what chance begins with")
    parser.add_argument("--out", metavar="FILE", help="write the counts there as JSON, beside those of other parts")
    options = parser.parse_args()
    chosen = [name for name in PARTS if not options.part or name.startswith(tuple(options.part))]
    if not chosen:
        parser.error(f"no part begins with {' or '.join(options.part)}")
    shim.preloaded([sys.executable, "-m", "bench.faults", *sys.argv[1:]])
    process.warm()
    machine = facts.machine()
    facts.show_machine(machine)
    how = "short" if options.short else "long" if options.long else "quick"
    print(f"seed {options.seed}, {how}, shim {'there' if shim.available() else 'not there'}")
    done: list[Part] = []
    for name in chosen:
        started = time.monotonic()
        run = (LONG if options.long else {}).get(name, PARTS[name])
        part = run(options.short, random.Random(f"{options.seed} {name}"))
        part.seconds = time.monotonic() - started
        done.append(part)
        what = f"skipped: {part.skipped}" if part.skipped else f"{part.tried:7d} tried {len(part.faults):5d} violations"
        left = f" {part.litter} temporary files left" if part.litter else ""
        print(f"{part.name:60s} {what} {part.seconds:7.1f} s{left}", flush=True)
        for line in part.lines():
            print(line, flush=True)
        if options.out:
            add_to(options.out, part, {"seed": options.seed, "length": how, **machine})
    tried, wrong = sum(part.tried for part in done), sum(len(part.faults) for part in done)
    print(f"{'all':60s} {tried:7d} tried {wrong:5d} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
