"""Run the bench: see the package."""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.survival import agent, arms, facts, judge, plants
from bench.survival.entries import Kinds
from bench.survival.facts import Fact
from bench.survival.memory import Memory, remember
from bench.survival.record import Case, load_cases

CLASSES = ("edited", "read only", "identifier in file", "command and error", "user's words", "open to-do", "demand")
SECTIONS = ("Now", "Pins", "Files", "Commands", "Reflections", "Notes", "Names")
ROUNDS = 5


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write the artefact."""
    options = _options(words)
    cases = load_cases([Path(name) for name in options.paths])
    frequency, sessions = facts.document_frequency(cases)
    halves = {case.session: half_of(case) for case in cases}
    wanted = [case for case in cases if options.half in ("both", halves[case.session])]
    if not wanted:
        print("No compaction in these files is large enough on both sides.", file=sys.stderr)
        return 1
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 32)
    results = []
    for number, case in enumerate(wanted, 1):
        print(f"\r{number} of {len(wanted)}", end="", file=sys.stderr)
        other = next((one for one in [*wanted[number:], *wanted] if one.session != case.session), case)
        results.append(_measure(case, other, frequency, sessions, options, halves[case.session], seed))
    print("\r", end="", file=sys.stderr)
    report: dict[str, Any] = {"budget": options.budget, "half": options.half, "seed": seed, "cases": results}
    for half in ("development", "held-out"):
        found = [one for one in results if one["half"] == half]
        if found:
            _print(
                f"{half}: {len(found)} compactions of {len({one['session'] for one in found})} sessions",
                found,
                options.budget,
            )
            report.setdefault("summary", {})[half] = _summary(found)
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.survival")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--half", choices=("development", "held-out", "both"), default="development")
    parser.add_argument("--budget", type=int, default=8_000)
    parser.add_argument("--calls", type=lambda text: [int(one) for one in text.split(",")], default=[0, 1, 2, 3, 5])
    parser.add_argument("--seed", type=int, help="of the plants; drawn where none is given")
    parser.add_argument("--out", default="", help="write the artefact there")
    return parser.parse_args(words)


def half_of(case: Case) -> str:
    """Sessions are split by a hash of their id."""
    return "development" if hashlib.sha256(case.session.encode()).digest()[0] % 2 else "held-out"


def _measure(
    case: Case, other: Case, frequency: Any, sessions: int, options: argparse.Namespace, half: str, seed: int
) -> dict[str, Any]:
    known = facts.facts_of(case)
    known += facts.demand_of(case, frequency, sessions)
    texts = {name: make(case, options.budget) for name, make in arms.HAND_MADE.items()}
    kinds = judge.kinds_of(known)
    scores: dict[str, Any] = {}
    with remember(case.before, case.session) as memory:
        ours = arms.fits(memory.block(int(options.budget * arms.BLOCK_SHARE)), options.budget)
        texts["B8 ours"] = ours
        texts["B7 native + ours"] = case.native + "\n" + ours
        texts["B11 ours, shuffled"] = arms.shuffled(ours, known)
        for name, text in texts.items():
            scores[name] = {"tokens": round(judge.tokens(text)), "shares": _shares(text, known, kinds)}
        calls = _with_calls(memory, texts["B7 native + ours"], known, kinds, options.calls)
        hits = _search(memory, case.native, known, kinds)
        given = memory.given
    with remember(other.before, other.session) as memory:
        text = arms.fits(memory.block(int(options.budget * arms.BLOCK_SHARE)), options.budget)
        scores["B9 another session's"] = {"tokens": round(judge.tokens(text)), "shares": _shares(text, known, kinds)}
    lines, planted = plants.plant(case, half, seed)
    with remember(lines, case.session) as memory:
        text = memory.block(int(options.budget * arms.BLOCK_SHARE))
        verdict = plants.judge_plants(text, planted)._asdict()
    return {
        "session": case.session, "number": case.number, "half": half, "given": given,
        "facts": {kind: sum(one.kind == kind for one in known) for kind in CLASSES},
        "arms": scores, "calls": calls, "search": hits, "plants": verdict,
        "sections": _sections(ours, known, kinds), "rounds": _rounds(case, known, kinds, options.budget),
    }  # fmt: skip


def _shares(text: str, known: Sequence[Fact], kinds: Kinds) -> dict[str, float]:
    """The share of facts of each class that a text holds."""
    judged = judge.Text(text, kinds)
    held: dict[str, list[float]] = defaultdict(list)
    for fact in known:
        held[fact.kind].append(float(judged.holds(fact)))
    return {kind: judge.mean(values) for kind, values in held.items()}


def _with_calls(
    memory: Memory, text: str, known: Sequence[Fact], kinds: Kinds, counts: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Number of calls -> the share of facts of each class that text and calls tell."""
    judged = judge.Text(text, kinds)
    needed: dict[str, list[int]] = defaultdict(list)
    for fact in known:
        needed[fact.kind].append(0 if judged.holds(fact) else agent.calls_needed(fact, memory, max(counts), kinds))
    return {
        str(count): {kind: judge.mean([float(one <= count) for one in found]) for kind, found in needed.items()}
        for count in counts
    }


def _search(memory: Memory, native: str, known: Sequence[Fact], kinds: Kinds) -> dict[str, float]:
    """Where ``search`` finds what the summary dropped and the session then used."""
    judged = judge.Text(native, kinds)
    ranks = [agent.rank(fact, memory, kinds) for fact in known if fact.kind == "demand" and not judged.holds(fact)]
    return {
        "questions": len(ranks),
        "hit@1": judge.mean([float(rank == 1) for rank in ranks]),
        "hit@5": judge.mean([float(0 < rank <= 5) for rank in ranks]),
        "mrr": judge.mean([1 / rank if rank else 0.0 for rank in ranks]),
    }


def _sections(text: str, known: Sequence[Fact], kinds: Kinds) -> dict[str, Any]:
    """What each section costs, and what the block holds without it."""
    found = {}
    for name in SECTIONS:
        rest, section, inside = [], [], False
        for line in text.split("\n"):
            if line.startswith("## "):
                inside = line[3:].startswith(name)
            (section if inside else rest).append(line)
        if section:
            found[name] = {
                "tokens": round(judge.tokens("\n".join(section))),
                "without": _shares("\n".join(rest), known, kinds),
            }
    return found


def _rounds(case: Case, known: Sequence[Fact], kinds: Kinds, budget: int) -> list[dict[str, float]]:
    """What the block still holds of these facts as the session goes on: five cuts of what came after the compaction."""
    fixed = [fact for fact in known if fact.kind in ("identifier in file", "user's words", "edited", "read only")]
    found = []
    for number in range(1, ROUNDS + 1):
        lines = [*case.before, *case.after[: len(case.after) * (number - 1) // (ROUNDS - 1)]]
        with remember(lines, case.session) as memory:
            found.append(_shares(arms.fits(memory.block(int(budget * arms.BLOCK_SHARE)), budget), fixed, kinds))
    return found


def _summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the tables print, in percent with one place: a document may quote these and no others."""
    rows = {
        name: {kind: value for kind in CLASSES if (value := _cell(results, name, kind)) != "-"}
        for name in results[0]["arms"]
    }
    for count in results[0]["calls"]:
        found = [one["calls"][count] for one in results]
        rows[f"B7 + {count} calls"] = {
            kind: f"{100 * judge.mean([one[kind] for one in found if kind in one]):.1f}" for kind in CLASSES
        }
    questions = sum(one["search"]["questions"] for one in results)
    search = {
        name: f"{100 * sum(one['search'][name] * one['search']['questions'] for one in results) / max(1, questions):.1f}"
        for name in ("hit@1", "hit@5")
    }
    plants_shown = {
        name: f"{100 * judge.mean([one['plants'][name] for one in results]):.1f}"
        for name in ("right", "stale", "asserted")
    }
    return {
        "compactions": len(results), "sessions": len({one["session"] for one in results}), "arms": rows,
        "differences": _differences(results), "search": {"questions": questions, **search}, "plants": plants_shown,
    }  # fmt: skip


def _differences(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Native and ours together minus native alone, paired by session, with the 95 % interval, by class."""
    found = {}
    for kind in CLASSES:
        pairs: dict[str, list[float]] = defaultdict(list)
        for one in results:
            ours, other = one["arms"]["B7 native + ours"]["shares"], one["arms"]["B4 native"]["shares"]
            if kind in ours:
                pairs[one["session"]].append(ours[kind] - other[kind])
        if pairs:
            whole, low, high = judge.interval(pairs)
            found[kind] = f"{100 * whole:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}] over {len(pairs)} sessions"
    return found


def _print(title: str, results: Sequence[dict[str, Any]], budget: int) -> None:
    print(f"\n{title}; share of facts held, in percent; budget {budget} tokens (the evaluator's)")
    head = f"{'':<22}{'tokens':>8}" + "".join(f"{_short(kind):>13}" for kind in CLASSES)
    print(head)
    for name in sorted(results[0]["arms"], key=lambda one: (int(one[1:].split(" ")[0].rstrip("'")), one)):
        cells = "".join(f"{_cell(results, name, kind):>13}" for kind in CLASSES)
        size = sorted(one["arms"][name]["tokens"] for one in results)[len(results) // 2]
        print(f"{name:<22}{size:>8}{cells}")
    for count in results[0]["calls"]:
        row = {one["session"] + str(one["number"]): one["calls"][count] for one in results}
        cells = "".join(f"{100 * judge.mean([v[kind] for v in row.values() if kind in v]):>13.1f}" for kind in CLASSES)
        print(f"{'B7 + ' + count + ' calls':<30}{cells}")
    _print_differences(results)
    questions = sum(one["search"]["questions"] for one in results)
    if questions:
        for name in ("hit@1", "hit@5", "mrr"):
            whole = sum(one["search"][name] * one["search"]["questions"] for one in results) / questions
            print(f"search for what native dropped (n={questions}) {name}: {100 * whole:.1f}")
    for name in ("right", "stale", "asserted"):
        print(f"plants {name}: {100 * judge.mean([one['plants'][name] for one in results]):.1f}")
    for number in range(ROUNDS):
        row = [one["rounds"][number] for one in results]
        print(
            f"round {number + 1}: "
            + ", ".join(f"{kind} {100 * judge.mean([r[kind] for r in row if kind in r]):.1f}" for kind in row[0])
        )
    for name in SECTIONS:
        with_it = [one for one in results if name in one["sections"]]
        if with_it:
            cost = judge.mean([one["sections"][name]["tokens"] / one["arms"]["B8 ours"]["tokens"] for one in with_it])
            lost = {
                kind: judge.mean([
                    one["arms"]["B8 ours"]["shares"][kind] - one["sections"][name]["without"][kind]
                    for one in with_it if kind in one["arms"]["B8 ours"]["shares"]
                ]) for kind in CLASSES
            }  # fmt: skip
            print(
                f"without {name} ({100 * cost:.0f} % of the tokens): "
                + ", ".join(f"{k} -{100 * v:.1f}" for k, v in lost.items() if v > 0.001)
            )


def _print_differences(results: Sequence[dict[str, Any]]) -> None:
    for kind, said in _differences(results).items():
        print(f"native + ours minus native, {kind}: {said}")


def _cell(results: Sequence[dict[str, Any]], name: str, kind: str) -> str:
    values = [one["arms"][name]["shares"][kind] for one in results if kind in one["arms"][name]["shares"]]
    return f"{100 * judge.mean(values):.1f}" if values else "-"


def _short(kind: str) -> str:
    return {
        "identifier in file": "ident~file",
        "command and error": "cmd~error",
        "user's words": "words",
        "open to-do": "to-do",
    }.get(kind, kind)


if __name__ == "__main__":
    sys.exit(main())
