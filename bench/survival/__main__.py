"""Run the bench: see the package."""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.survival import facts, judge, report
from bench.survival.measure import CLASSES, Subject, scored, with_memory, without_memory
from bench.survival.record import LEAST_CALLS, Case, load_cases

HALVES = ("development", "held-out")
ELSEWHERE = "elsewhere"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write the artefact. What was there without a memory is measured and printed first."""
    options = _options(words)
    cases = load_cases([Path(name) for name in options.paths], options.least_calls)
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 32)
    subjects = [one for one in _subjects(cases, options, seed) if options.half in ("both", one.half)]
    subjects += _elsewhere(cases, options, seed)
    if not subjects:
        print("No compaction in these files is large enough on both sides.", file=sys.stderr)
        return 1
    bare = [without_memory(subject) for subject in subjects]
    for half in (*HALVES, ELSEWHERE):
        if found := [one for one, subject in zip(bare, subjects, strict=True) if subject.half == half]:
            print(f"{half}: {len(found)} compactions, without a memory; share of facts held, in percent\n")
            print(report.baselines(found) + "\n", flush=True)
    results, blocks = [], []
    for number, (subject, arms) in enumerate(zip(subjects, bare, strict=True), 1):
        print(f"\r{number} of {len(subjects)}", end="", file=sys.stderr)
        measured, block = with_memory(subject)
        results.append(_case(subject, arms, measured))
        blocks.append(block)
    for number, (subject, result) in enumerate(zip(subjects, results, strict=True)):
        result["arms"]["B9 another session's"] = scored(_other(subjects, blocks, number), subject)
    print("\r", end="", file=sys.stderr)
    artefact: dict[str, Any] = {"budget": options.budget, "half": options.half, "seed": seed, "cases": results}
    for half in (*HALVES, ELSEWHERE):
        if found := [one for one in results if one["half"] == half]:
            told = artefact.setdefault("summary", {})[half] = report.summary(found)
            print(
                f"{half}: {told['compactions']} compactions of {told['sessions']} sessions; budget {options.budget} tokens\n"
            )
            print(report.tables(told) + "\n")
    if options.out:
        Path(options.out).write_text(json.dumps(artefact, indent=1) + "\n", encoding="utf-8")
    return 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.survival")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--half", choices=(*HALVES, "both"), default="development")
    parser.add_argument("--elsewhere", nargs="*", default=[], help="sessions of other repositories, told apart")
    parser.add_argument("--budget", type=int, default=8_000)
    parser.add_argument("--calls", type=lambda text: [int(one) for one in text.split(",")], default=[0, 1, 2, 3, 5])
    parser.add_argument(
        "--least-calls", type=int, default=LEAST_CALLS, help="of tools after a compaction for it to count"
    )
    parser.add_argument("--seed", type=int, help="of the plants; drawn where none is given")
    parser.add_argument("--out", default="", help="write the artefact there")
    return parser.parse_args(words)


def half_of(case: Case) -> str:
    """Sessions are split by a hash of their id."""
    return "development" if hashlib.sha256(case.session.encode()).digest()[0] % 2 else "held-out"


def _subjects(cases: Sequence[Case], options: argparse.Namespace, seed: int) -> list[Subject]:
    frequency, sessions = facts.document_frequency(cases)
    found = []
    for case in cases:
        known = facts.facts_of(case) + facts.demand_of(case, frequency, sessions)
        kinds = judge.kinds_of(known)
        found.append(Subject(case, half_of(case), known, kinds, options.budget, options.calls, seed))
    return found


def _elsewhere(cases: Sequence[Case], options: argparse.Namespace, seed: int) -> list[Subject]:
    """Cases of sessions apart: neither of the sessions nor of the repositories of the others."""
    known = {case.repository for case in cases}
    others = load_cases([Path(name) for name in options.elsewhere], options.least_calls)
    found = _subjects([case for case in others if case.repository not in known], options, seed)
    return [one._replace(half=ELSEWHERE) for one in found]


def _case(subject: Subject, bare: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A case of the artefact."""
    return {
        "session": subject.case.session, "number": subject.case.number, "half": subject.half,
        "facts": {kind: sum(one.kind == kind for one in subject.known) for kind in CLASSES},
        **found, "arms": bare | found["arms"],
    }  # fmt: skip


def _other(subjects: Sequence[Subject], blocks: Sequence[str], number: int) -> str:
    """The control: the block of the next case that is of another session; none where there is no other."""
    session = subjects[number].case.session
    order = [*range(number + 1, len(subjects)), *range(number)]
    return next((blocks[one] for one in order if subjects[one].case.session != session), "")


if __name__ == "__main__":
    sys.exit(main())
