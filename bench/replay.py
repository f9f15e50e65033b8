"""Whether stored sessions that are run again under the same settings take the same decisions, at the same places.

    python -m bench.replay [PATH …] [--sessions 10] [--steps 8] [--json FILE]

Real transcripts grow in steps, with a maintainer after each as after a turn, and before one of them as before a compaction. What was
decided is then replayed from the archive alone.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench import facts
from bench.corpus import Sample, default_folders, gather
from bench.facts import Goal
from obsmem.core.decisions import BLOCK
from obsmem.system import config
from obsmem.system.local_time import local_clock
from obsmem.tasks.ingest import known_session
from obsmem.tasks.maintain import maintain
from obsmem.tasks.replay_stored import Compared, replay_stored
from obsmem.tasks.store import Store, open_store

LEAST_LINES = 40  # a shorter transcript decides little


def choose(paths: list[str], count: int) -> list[Sample]:
    """``count`` transcripts of lines, evenly from the smallest to the largest, of every harness that has any."""
    found = [
        one for samples in gather(paths).values() for one in samples
        if one.source.path.endswith(".jsonl") and one.source.session_id == "" and len(one.lines) >= LEAST_LINES
    ]  # fmt: skip
    found.sort(key=lambda one: (one.size, one.source.path))
    return [found[number * (len(found) - 1) // max(1, count - 1)] for number in range(min(count, len(found)))]


def grow(store: Store, sample: Sample, path: Path, steps: int) -> float:
    """Let a session grow as hooks would see it; the seconds that took."""
    *whole, rest = Path(sample.source.path).read_bytes().split(b"\n")
    lines = [line + b"\n" for line in whole] + ([rest] if rest else [])
    started = time.monotonic()
    for step in range(1, steps + 1):
        path.write_bytes(b"".join(lines[: max(1, len(lines) * step // steps)]))
        maintain(store, sample.harness, str(path), "", "", before_compact=step * 2 == steps)
    return time.monotonic() - started


def compare(sample: Sample, steps: int) -> tuple[Compared, float, float, int]:
    """(the comparison, seconds of growing, seconds of the replay, rows of decisions) of one session in a store of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, open_store(os.path.join(folder, "home")) as store:
        path = Path(folder, Path(sample.source.path).name)
        grown = grow(store, sample, path, steps)
        stored = known_session(store, str(path))
        started = time.monotonic()
        compared = replay_stored(store, stored, config.load(), {}, local_clock)
        seconds = time.monotonic() - started
        return compared, grown, seconds, len(store.memory.decisions(stored.session.handle))


def same_bytes(compared: Compared) -> tuple[int, int]:
    """(blocks that are equal byte for byte, blocks)."""
    pairs = [pair for pair in compared.pairs if pair.recorded is not None and pair.recorded.what == BLOCK]
    equal = [
        pair for pair in pairs
        if pair.recorded and pair.replayed and pair.recorded.numbers["delivery"] == pair.replayed.numbers["delivery"]
    ]  # fmt: skip
    return len(equal), len(pairs)


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="transcripts, or folders of them")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    rows: list[dict[str, Any]] = []
    for sample in choose(options.paths or default_folders(), options.sessions):
        compared, grown, seconds, written = compare(sample, options.steps)
        blocks, of = same_bytes(compared)
        kinds = Counter((pair.recorded or pair.replayed).what for pair in compared.pairs)  # type: ignore[union-attr]
        wrong = Counter((pair.recorded or pair.replayed).what for pair in compared.pairs if not pair.equal)  # type: ignore[union-attr]
        name = f"{sample.harness}/{Path(sample.source.path).name}"
        rows.append({"session": name, "bytes": sample.size, "decisions": len(compared.pairs), "different": compared.different,
                     "kinds": dict(kinds), "wrong": dict(wrong), "blocks": of, "blocks_same_bytes": blocks, "rows": written,
                     "totals_equal": compared.recorded == compared.replayed, "grow_s": round(grown, 2),
                     "replay_s": round(seconds, 2)})  # fmt: skip
        print(
            f"{len(compared.pairs) - compared.different:4} equal {compared.different:3} different  {blocks}/{of} blocks byte for "
            f"byte  {sample.size / 1e6:5.2f} MB  grew in {grown:5.1f} s, replayed in {seconds:5.1f} s  {name}"
            + (f"  {dict(wrong)}" if wrong else "")
        )
    decisions, different = sum(row["decisions"] for row in rows), sum(row["different"] for row in rows)
    share = 100 * (decisions - different) / max(1, decisions)
    goal = Goal(f"decisions taken again, of {decisions} in {len(rows)} sessions, in percent", share, 100)
    print(goal.line())
    if options.json:
        facts.write(options.json, {"machine": machine, "sessions": rows, "share_equal": share})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
