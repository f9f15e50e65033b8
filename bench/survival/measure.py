"""One compaction measured: every arm, the calls, what is wrong in a block, and what becomes of it later. Values only.

Invariant: the arms without a memory are measured apart (``without_memory``), so that they can be printed before anything else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bench.survival import agent, arms, judge, plants
from bench.survival.citations import judge_citations
from bench.survival.entries import Kinds
from bench.survival.facts import Fact
from bench.survival.falsehoods import false_bindings, false_claims, source_of
from bench.survival.memory import Memory, remember
from bench.survival.record import Case, events_of
from bench.survival.standing import instructions, judge_standing

CLASSES = ("edited", "read only", "identifier in file", "command and error", "user's words", "open to-do", "demand")
LASTING = ("edited", "read only", "identifier in file", "user's words")  # what does not end by the session's going on
SECTIONS = ("Now", "Pins", "Files", "Commands", "Reflections", "Notes", "Names")
ROUNDS = 5
PLANT_CALLS = 2

Shares = dict[str, float]


class Subject(NamedTuple):
    """A compaction with what is known of it, and how it is measured."""

    case: Case
    half: str
    known: list[Fact]
    kinds: Kinds
    budget: int
    calls: list[int]
    seed: int


def without_memory(subject: Subject) -> dict[str, Any]:
    """Arm -> its tokens and shares, of every arm that no memory is needed for."""
    texts = {name: make(subject.case, subject.budget) for name, make in arms.HAND_MADE.items()}
    return {name: scored(text, subject) for name, text in texts.items()}


def with_memory(subject: Subject) -> tuple[dict[str, Any], str]:
    """Everything that a memory is needed for, and its block."""
    case, known, kinds = subject.case, subject.known, subject.kinds
    with remember(case.before, case.session) as memory:
        ours = _block(memory, subject.budget)
        both = case.native + "\n" + ours
        texts = {"B8 ours": ours, "B7 native + ours": both, "B11 ours, shuffled": arms.shuffled(ours, known)}
        found = {
            "given": memory.given,
            "calls": _with_calls(memory, both, subject),
            "search": _search(memory, case.native, known, kinds),
            "citations": judge_citations(memory, case.before, ours, known)._asdict(),
        }
    standing = judge_standing(ours, instructions(case))
    return {
        **found,
        "arms": {name: scored(text, subject) for name, text in texts.items()},
        "standing": {"asked": standing.asked, "missing": len(standing.missing), "marked": len(standing.marked)},
        "false": _false({"ours": ours, "native": case.native, "shuffled": texts["B11 ours, shuffled"]}, subject),
        "plants": {name: _plants(subject, name) for name in plants.SETS},
        "sections": _sections(ours, known, kinds),
        "rounds": _rounds(subject, ours),
        "course": _course(subject, ours),
    }, ours


def _block(memory: Memory, budget: int) -> str:
    return arms.fits(memory.block(int(budget * arms.BLOCK_SHARE)), budget)


def scored(text: str, subject: Subject) -> dict[str, Any]:
    """The tokens of a text, and the shares of facts that it holds."""
    return {"tokens": round(judge.tokens(text)), "shares": shares(text, subject.known, subject.kinds)}


def shares(text: str, known: Sequence[Fact], kinds: Kinds) -> Shares:
    """The share of facts of each class that a text holds."""
    judged = judge.Text(text, kinds)
    held: dict[str, list[float]] = defaultdict(list)
    for fact in known:
        held[fact.kind].append(float(judged.holds(fact)))
    return {kind: judge.mean(values) for kind, values in held.items()}


def _with_calls(memory: Memory, text: str, subject: Subject) -> dict[str, Shares]:
    """Number of calls -> the share of facts of each class that text and calls tell."""
    judged, most = judge.Text(text, subject.kinds), max(subject.calls)
    needed: dict[str, list[int]] = defaultdict(list)
    for fact in subject.known:
        needed[fact.kind].append(
            0 if judged.holds(fact) else agent.calls_needed(fact, memory, most, subject.kinds)
        )  # fmt: skip
    return {
        str(count): {kind: judge.mean([float(one <= count) for one in found]) for kind, found in needed.items()}
        for count in subject.calls
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


def _false(texts: Mapping[str, str], subject: Subject) -> dict[str, dict[str, int]]:
    """Claims of each text that the session never had, and names beside files that it never put together."""
    source, records = source_of(subject.case.before), arms.records(events_of(subject.case.before))
    found = {}
    for name, text in texts.items():
        claimed, false = false_claims(text, source)
        bound, falsely = false_bindings(text, records, subject.kinds.files)
        found[name] = {"claims": claimed, "false": len(false), "bindings": bound, "falsely bound": len(falsely)}
    return found


def _plants(subject: Subject, name: str) -> dict[str, Shares]:
    """How the block, alone and with calls, stands to a set of made-up facts."""
    lines, planted = plants.plant(subject.case, name, subject.half, subject.seed)
    with remember(lines, subject.case.session) as memory:
        block = _block(memory, subject.budget)
        return {
            "block": plants.judge_plants(planted, lambda one: block),
            f"+ {PLANT_CALLS} calls": plants.judge_plants(
                planted, lambda one: block + "\n" + agent.told(one.noun, memory, PLANT_CALLS)
            ),
        }


def _sections(text: str, known: Sequence[Fact], kinds: Kinds) -> dict[str, Any]:
    """What each section costs, and what the block holds without it."""
    found = {}
    for name in SECTIONS:
        rest: list[str] = []
        section: list[str] = []
        inside = False
        for line in text.split("\n"):
            if line.startswith("## "):
                inside = line[3:].startswith(name)
            (section if inside else rest).append(line)
        if section:
            found[name] = {
                "tokens": round(judge.tokens("\n".join(section))),
                "without": shares("\n".join(rest), known, kinds),
            }
    return found


def _rounds(subject: Subject, ours: str) -> list[Shares]:
    """What the block still holds of these facts as the session goes on: five cuts of what came after the compaction."""
    case, fixed = subject.case, _lasting(subject.known)
    found = [shares(ours, fixed, subject.kinds)]
    for number in range(1, ROUNDS):
        lines = [*case.before, *case.after[: len(case.after) * number // (ROUNDS - 1)]]
        with remember(lines, case.session) as memory:
            found.append(shares(_block(memory, subject.budget), fixed, subject.kinds))
    return found


def _course(subject: Subject, ours: str) -> list[Mapping[str, Shares]]:
    """What summaries and blocks hold of these facts after this and each later compaction that really happened; empty where
    this was the last, or not the first."""
    case, fixed = subject.case, _lasting(subject.known)
    if case.number or not case.later_summaries:
        return []
    seen = [(case.native, ours)]
    for lines, native in case.later_summaries:
        with remember(lines, case.session) as memory:
            seen.append((native, _block(memory, subject.budget)))
    return [
        {"native": shares(native, fixed, subject.kinds), "ours": shares(block, fixed, subject.kinds),
         "native + ours": shares(native + "\n" + block, fixed, subject.kinds)}
        for native, block in seen
    ]  # fmt: skip


def _lasting(known: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in known if fact.kind in LASTING]
