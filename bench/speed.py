"""How fast transcripts become archive, index and notes, and how much room they take.

    python -m bench.speed [FILE-OR-FOLDER ...] [--runs 5] [--clock wall|cpu] [--large MB] [--json FILE]

Speeds are in MB (10^6 bytes) of transcript a second, medians over the runs; ratios compare with a loop that only calls
``json.loads`` on the same lines.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from bench import facts, large
from bench.corpus import Sample, default_folders, gather
from bench.facts import Goal
from bench.phases import CLOCKS, Sizes, Times, measure

MB = 1_000_000
MEMORY_GOAL = 200  # MB


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("paths", nargs="*", help="transcripts or folders of them")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu: on a machine with other work")
    parser.add_argument("--large", type=int, default=500, metavar="MB", help="size of the huge transcript; 0 for none")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    corpus = gather(options.paths or default_folders())
    runs = {harness: _runs(samples, options.runs, options.clock) for harness, samples in corpus.items()}
    sizes = {harness: sum(sample.size for sample in samples) for harness, samples in corpus.items()}
    figures: dict[str, Any] = {}
    for harness, (times, disk) in runs.items():
        figures[harness] = _figures(harness, len(corpus[harness]), sizes[harness], times, disk)
    figures["total"] = _total(corpus, sizes, runs)
    goals = _goals(figures["total"])
    huge = large.measure(corpus, options.large * MB) if options.large else {}
    if huge:
        large.show(huge)
        goals.append(Goal("peak memory for a huge transcript, MB", huge["whole"]["peak_mb"], MEMORY_GOAL, True))
    for goal in goals:
        print(goal.line())
    if options.json:
        judged = [{**goal._asdict(), "met": goal.met} for goal in goals]
        facts.write(options.json, {"machine": machine, "runs": options.runs, "clock": options.clock, "speed": figures, "huge": huge, "goals": judged})  # fmt: skip
    return 0


def _runs(samples: list[Sample], count: int, clock: str) -> tuple[Times, Sizes]:
    results = [measure(samples, clock) for _ in range(count)]
    return Times(*(median(column) for column in zip(*(times for times, _ in results), strict=True))), results[-1][1]


def _total(corpus: dict[str, list[Sample]], sizes: dict[str, int], runs: dict[str, tuple[Times, Sizes]]) -> Any:
    times = Times(*(sum(column) for column in zip(*(times for times, _ in runs.values()), strict=True)))
    disk = Sizes(*(sum(column) for column in zip(*(disk for _, disk in runs.values()), strict=True)))
    return _figures("total", sum(map(len, corpus.values())), sum(sizes.values()), times, disk)


def _figures(name: str, sources: int, size: int, times: Times, disk: Sizes) -> dict[str, Any]:
    """One row: printed, and returned for the artefact."""
    speeds = {f"{step}_mb_s": round(size / MB / seconds, 2) for step, seconds in times._asdict().items()}
    ratios = {
        f"{step}_ratio": round(times.json / getattr(times, step), 3) for step in ("read", "archive", "ingest", "words")
    }
    room = {f"{file}_bytes_per_byte": round(bytes_ / size, 3) for file, bytes_ in disk._asdict().items()}
    print(
        f"{name:12} {sources:3} sources {size / MB:7.2f} MB | MB/s: json {speeds['json_mb_s']:.1f}, "
        f"read {speeds['read_mb_s']:.1f} ({ratios['read_ratio']:.2f}), "
        f"archive {speeds['archive_mb_s']:.1f} ({ratios['archive_ratio']:.2f}), "
        f"with cards {speeds['ingest_mb_s']:.1f} ({ratios['ingest_ratio']:.2f}), "
        f"words {speeds['words_mb_s']:.1f} ({ratios['words_ratio']:.2f}), observe {speeds['observe_mb_s']:.1f} | "
        f"disk: archive {room['archive_bytes_per_byte']:.2f}, index {room['full_text_bytes_per_byte']:.2f}, "
        f"memory {room['memory_bytes_per_byte']:.2f}"
    )
    return {"sources": sources, "bytes": size, **speeds, **ratios, **room}


def _goals(total: dict[str, Any]) -> list[Goal]:
    archive, index = total["archive_bytes_per_byte"], total["full_text_bytes_per_byte"]
    return [
        Goal("reading, share of JSON parsing", total["read_ratio"], 0.5),
        Goal("archiving, share of JSON parsing", total["archive_ratio"], 0.2),
        Goal("full text, share of JSON parsing", total["words_ratio"], 0.1),
        Goal("cards and observing, MB/s", total["observe_mb_s"], 2),
        Goal("archive, bytes for each of transcript", archive, 0.35, True),
        Goal("archive and index, bytes for each of transcript", archive + index, 0.6, True),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
