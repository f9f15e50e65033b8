"""Everything that somebody waits or pays for, against the machine's limits, measured side by side in one run.

    python -m bench.limits [--quick] [--turns 60] [--json FILE] [--svg FOLDER]

Hooks and commands run in turn with a start of the same interpreter with the same flags, and hooks also with the floor: read
standard input, one stat, the end. Ratios are of medians, with the interval that holds 95 % of 1,000 resamples of the turns.
What happens to a transcript is compared, in processor time, with a loop that only calls ``json.loads`` on the same lines.
``--quick`` reads a history of 100 MB instead of 1 GB, and takes fewer turns. With ``--svg`` the growth is drawn as pictures.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import facts, history, limit_hooks
from bench.corpus import Sample, default_folders, gather
from bench.curves import Curve, Picture, draw
from bench.facts import Goal
from bench.hook import SIZES
from bench.intervals import middle, ratio
from bench.limit_rows import Row, measure, show
from bench.phases import measure as phases
from obsmem.system.paths import HOME_VARIABLE
from obsmem.system.seats import wait_until_free

MB = 1_000_000
TURNS, QUICK_TURNS = 60, 30
PASSES, QUICK_PASSES = 5, 3  # over the real transcripts
MAINTAINED, QUICK_MAINTAINED = 20, 10  # times 10,000 tokens
PEAK_GOAL = 200  # MB
HISTORIES = (("10 KB", 10_000), ("10 MB", 10 * MB), ("100 MB", 100 * MB), ("1 GB", 1_000 * MB))
HOOKS = ("Stop, nothing to do", "Stop, starts a maintainer", "SessionStart, a part", "UserPromptSubmit", "PostToolUse, nothing to do", "statusLine")  # fmt: skip
LOADED = "start with sqlite3, json"


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.limits", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="100 MB of history instead of 1 GB, fewer turns")
    parser.add_argument("--turns", type=int, default=0, help=f"of each process ({TURNS}, quick {QUICK_TURNS})")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--svg", metavar="FOLDER", help="draw the growth into this folder, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    turns = options.turns or (QUICK_TURNS if options.quick else TURNS)
    corpus = gather(default_folders())
    figures: dict[str, Any] = {"machine": machine, "quick": options.quick, "turns": turns}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        rows = _hooks(folder, turns) + _notes(folder, turns)
        found, figures["history"] = _histories(folder, corpus["claude-code"], options.quick, turns)
        figures["maintainer"] = _maintainer(folder, QUICK_MAINTAINED if options.quick else MAINTAINED)
    figures["transcripts"] = _transcripts(corpus, QUICK_PASSES if options.quick else PASSES)
    figures["rows"] = {row.name: row.figures() for row in rows + found}
    machine["load_after"] = facts.machine()["load_before"]
    goals = judge(figures)
    for goal in goals:
        print(goal.line())
    if options.json:
        judged = {goal.name: {**goal._asdict(), "value": round(goal.value, 3), "met": goal.met} for goal in goals}
        facts.write(options.json, {**figures, "goals": judged})
    if options.svg:
        for name, picture in pictures(figures).items():
            Path(options.svg, f"{name}.svg").write_text(draw(picture), encoding="utf-8")
    return 0


def _hooks(folder: str, turns: int) -> list[Row]:
    place = os.path.join(folder, "hooks")
    os.mkdir(place)
    cases = limit_hooks.by_length(place)
    rows = [_shown(measure(case, turns)) for case in cases]
    for case in cases:
        wait_until_free(case.environment[HOME_VARIABLE], 60)  # a maintainer still writes where the folder goes
    return rows


def _shown(row: Row) -> Row:
    print(show(row), flush=True)
    return row


def _notes(folder: str, turns: int) -> list[Row]:
    """A part of a block, ``recall`` and ``search`` with 0, 600 and 20,000 notes."""
    rows = []
    for notes in limit_hooks.NOTES:
        place = limit_hooks.noted(os.path.join(folder, f"notes-{notes}"), notes)
        if notes:
            rows.append(_shown(measure(limit_hooks.start_with_notes(place, notes), turns)))
        known = limit_hooks.history_of(place)
        rows += [_shown(measure(case, turns)) for case in history.commands(known, f"{notes:,} notes")]
    return rows


def _histories(folder: str, samples: Sequence[Sample], quick: bool, turns: int) -> tuple[list[Row], dict[str, Any]]:
    rows, figures = [], {}
    for name, size in HISTORIES[:-1] if quick else HISTORIES:
        known, figures[name] = history.build(os.path.join(folder, f"history-{size}"), samples, size)
        print(f"history of {name}: " + ", ".join(f"{key} {value}" for key, value in figures[name].items()), flush=True)
        rows += [_shown(measure(case, turns)) for case in history.commands(known, name)]
    if quick:
        print("quick: a history of 100 MB stands for one of 1 GB")
    return rows, figures


def _maintainer(folder: str, steps: int) -> dict[str, Any]:
    """Processor seconds of a maintainer for each 10,000 tokens, and how they grow with the session."""
    figures = history.maintainer(os.path.join(folder, "maintained"), steps)
    used = [one["processor s"] for one in figures]
    print(f"maintainer: {sum(used) / len(used):.2f} processor s for 10,000 tokens, the first {used[0]:.2f}, the last {used[-1]:.2f}")  # fmt: skip
    return {"processor s for 10,000 tokens": round(sum(used) / len(used), 3), "first": used[0], "last": used[-1], "steps": figures}  # fmt: skip


def _transcripts(corpus: dict[str, list[Sample]], passes: int) -> dict[str, Any]:
    """What happens to all real transcripts, as a share of parsing their JSON, in processor time."""
    every = [sample for samples in corpus.values() for sample in samples]
    size = sum(sample.size for sample in every)
    runs = [phases(every, "cpu") for _ in range(passes)]
    times = {step: [getattr(found, step) for found, _ in runs] for step in runs[0][0]._fields}
    disk = runs[-1][1]
    figures: dict[str, Any] = {}
    for step, seconds in times.items():
        share = ratio(times["json"], seconds)
        figures[step] = {"MB/s": round(size / MB / middle(seconds).value, 2), "share of json": share.rounded()}
        print(f"transcripts, {step}: {figures[step]['MB/s']} MB/processor s, {share} of json.loads ({passes} passes)")
    room = {"archive": disk.archive / size, "with index": (disk.archive + disk.full_text) / size, "memory": disk.memory / size}  # fmt: skip
    print(f"transcripts, {size / MB:.1f} MB, on disk for each byte: " + ", ".join(f"{name} {one:.3f}" for name, one in room.items()))  # fmt: skip
    return {"MB": round(size / MB, 2), "sources": len(every), "passes": passes, "steps": figures, "disk": {name: round(one, 3) for name, one in room.items()}}  # fmt: skip


def judge(figures: dict[str, Any]) -> list[Goal]:
    """The goals, each with the figure of a run that it is about; the median where a row stands for several lengths."""
    rows, steps, disk = figures["rows"], figures["transcripts"]["steps"], figures["transcripts"]["disk"]
    last = list(figures["history"])[-1]

    def share(name: str, base: str) -> float:
        """Over all lengths and numbers of notes, since a busy second counts most in the worst of them."""
        return float(median(one[f"/ {base}"][0] for row, one in rows.items() if row.startswith(f"{name},")))

    goals = []
    for name, base, goal in (
        ("Stop, nothing to do", "start", 1.5),
        ("SessionStart, a part", "start", 2.0),
        ("recall", LOADED, 3.0),
    ):
        goals.append(Goal(f"{name} / {base}", share(name, base), goal, True))
        goals.append(Goal(f"{name} / {base}, processor", share(name, f"{base}, processor"), goal, True))
    goals += [
        Goal("reading, share of json.loads", steps["read"]["share of json"][0], 0.5),
        Goal("ingest, share of json.loads", steps["archive"]["share of json"][0], 0.2),
        Goal("index, share of json.loads", steps["words"]["share of json"][0], 0.1),
        Goal("archive, bytes for each of transcript", disk["archive"], 0.35, True),
        Goal("archive and index, bytes for each of transcript", disk["with index"], 0.6, True),
        Goal(f"peak memory for a history of {last}, MB", figures["history"][last]["peak MB"], PEAK_GOAL, True),
    ]
    counts = [one["system calls"] for name, one in rows.items() if name.startswith("Stop, nothing to do")]
    if None not in counts:
        goals.append(Goal("Stop, system calls more at 1 GB than at 10 KB", max(counts) - min(counts), 0, True))
    return goals


def pictures(figures: dict[str, Any]) -> dict[str, Picture]:
    """The growth curves of a run, by the names of their files."""
    rows = figures["rows"]
    lengths = [(float(size), name) for name, size in SIZES]
    held = [(float(size), name) for name, size in HISTORIES if name in figures["history"]]
    notes = [(float(place), f"{notes:,}") for place, notes in enumerate(limit_hooks.NOTES)]
    steps = figures["maintainer"]["steps"]

    def curve(name: str, base: str, places: Sequence[tuple[float, str]], named: Callable[[str], str]) -> Curve:
        found = [(x, rows.get(named(label))) for x, label in places]
        return Curve(name, [(x, *row[f"/ {base}"]) for x, row in found if row])

    def by_size(name: str, base: str, places: Sequence[tuple[float, str]]) -> Curve:
        return curve(name, base, places, lambda label: f"{name}, {label}")

    def by_notes(name: str, base: str, places: Sequence[tuple[float, str]]) -> Curve:
        return curve(name, base, places, lambda label: f"{name}, {label} notes")

    return {
        "hooks": Picture("Hooks do not grow with the transcript", "length of the transcript", "processor time, times that of a bare start of the interpreter",
                         [by_size(name, "start, processor", lengths) for name in HOOKS], lengths, True),
        "commands": Picture("recall and search, as the history grows", "transcripts in the archive", f"processor time, times that of a {LOADED}",
                            [by_size(name, f"{LOADED}, processor", held) for name in ("recall", "search")], held, True, 3, "recall"),
        "notes": Picture("recall and search, as the notes grow", "notes of the session", f"processor time, times that of a {LOADED}",
                         [by_notes(name, f"{LOADED}, processor", notes) for name in ("recall", "search")], notes, False, 3, "recall"),
        "maintainer": Picture("The maintainer, as the session grows", "tokens in the session", "processor seconds for 10,000 tokens",
                              [Curve("maintainer", [(one["tokens"], *[one["processor s"]] * 3) for one in steps])],
                              [(steps[number]["tokens"], f"{round(steps[number]['tokens'], -3):,.0f}") for number in sorted({0, len(steps) // 2, len(steps) - 1})]),
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
