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
from bench.survival.measure import CLASSES, Subject, with_memory, without_memory
from bench.survival.record import LEAST_CALLS, Case, load_cases

HALVES = ("development", "held-out")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write the artefact. What was there without a memory is measured and printed first."""
    options = _options(words)
    cases = load_cases([Path(name) for name in options.paths], options.least_calls)
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 32)
    subjects = [one for one in _subjects(cases, options, seed) if options.half in ("both", one.half)]
    if not subjects:
        print("No compaction in these files is large enough on both sides.", file=sys.stderr)
        return 1
    bare = [without_memory(subject) for subject in subjects]
    for half in HALVES:
        if found := [one for one, subject in zip(bare, subjects, strict=True) if subject.half == half]:
            print(f"{half}: {len(found)} compactions, without a memory; share of facts held, in percent\n")
            print(report.baselines(found) + "\n", flush=True)
    results = []
    for number, (subject, arms) in enumerate(zip(subjects, bare, strict=True), 1):
        print(f"\r{number} of {len(subjects)}", end="", file=sys.stderr)
        results.append(_measured(subject, subjects, number, arms))
    print("\r", end="", file=sys.stderr)
    artefact: dict[str, Any] = {"budget": options.budget, "half": options.half, "seed": seed, "cases": results}
    for half in HALVES:
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


def _measured(subject: Subject, subjects: Sequence[Subject], number: int, arms: dict[str, Any]) -> dict[str, Any]:
    """A case of the artefact. The control is the next case of another session."""
    case = subject.case
    others = (one.case for one in [*subjects[number:], *subjects] if one.case.session != case.session)
    found = with_memory(subject, next(others, case))
    return {
        "session": case.session, "number": case.number, "half": subject.half,
        "facts": {kind: sum(one.kind == kind for one in subject.known) for kind in CLASSES},
        **found, "arms": arms | found["arms"],
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
