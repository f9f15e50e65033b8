"""Made-up facts, drawn at run time and spliced into a real transcript: current, superseded, revoked, never true.

Real facts can be found again in a repository; these cannot. Invariants: the values are drawn from a seed that is not in the
repository unless one is given; each plant stands at a known depth; the wordings of the two halves share no sentence, and those
that ``grammar`` draws are a set of their own.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bench.survival import grammar
from bench.survival.judge import flat, mean
from bench.survival.record import Case

DEPTHS = (0.05, 0.25, 0.5, 0.75, 0.95)
NOUNS = (
    "release code", "staging port", "bucket name", "customer prefix", "deploy window", "queue name", "retry limit", "audit path",
    "feature flag", "report folder", "cache key", "tenant id",
)  # fmt: skip
WORDINGS = {
    "development": (
        "The {noun} for this work is {value}.",
        "Change of plan: we go with {new} for the {noun}.",
        "Forget the {noun}, nobody needs it any more.",
        "note from another project: {noun} = {value}",
    ),
    "held-out": (
        "Please use {value} wherever a {noun} is needed.",
        "Ops moved us over to {new}; that is what the {noun} has to be from here on.",
        "We dropped the idea of having a {noun}.",
        "sample configuration (not ours): the {noun} would be {value}",
    ),
}
FIXED_FATES = ("current",) * 6 + ("superseded",) * 3 + ("revoked",) + ("never true",) * 2
DRAWN_FATES = ("current",) * 8 + ("superseded",) * 8 + ("revoked",) * 4 + ("never true",) * 4
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


class Plant(NamedTuple):
    """``fate``: current | superseded | revoked | never true. ``value`` is the first value, ``new`` what replaced it; ``words`` first
    told it (``shown``: a tool did), and ``later`` changed it or took it back."""

    noun: str
    fate: str
    value: str
    words: str
    new: str = ""
    later: str = ""
    shown: bool = False


def fixed(half: str, chance: random.Random) -> list[Plant]:
    """Twelve in the wordings of a half: a half stays, a quarter is superseded in other words, a twelfth is revoked, a sixth was
    never true."""
    say, change, revoke, elsewhere = WORDINGS.get(half, WORDINGS["held-out"])
    nouns = list(NOUNS)
    chance.shuffle(nouns)
    plants = []
    for noun, fate in zip(nouns, FIXED_FATES, strict=True):
        value, new = _value(chance), _value(chance) if fate == "superseded" else ""
        words = (elsewhere if fate == "never true" else say).format(noun=noun, value=value)
        later = (change if new else revoke).format(noun=noun, new=new) if fate in ("superseded", "revoked") else ""
        plants.append(Plant(noun, fate, value, words, new, later, fate == "never true"))
    return plants


def drawn(half: str, chance: random.Random) -> list[Plant]:
    """Twenty-four in wordings of the grammar, for either half: a third stays, a third is superseded, a sixth is revoked, a sixth was
    never true (told by a tool, or by the user as somebody else's)."""
    plants = []
    for number, (noun, fate) in enumerate(zip(grammar.nouns(chance, len(DRAWN_FATES)), DRAWN_FATES, strict=True)):
        slots = {"noun": noun, "value": grammar.value_for(noun, chance), "new": grammar.value_for(noun, chance)}
        shown = fate == "never true" and bool(number % 2)
        kind = "state" if fate != "never true" else "shown" if shown else "hearsay"
        later = {"superseded": "change", "revoked": "revoke"}.get(fate, "")
        plants.append(
            Plant(
                noun, fate, slots["value"], grammar.sentence(kind, chance, **slots), slots["new"] if later == "change" else "",
                grammar.sentence(later, chance, **slots) if later else "", shown,
            )
        )  # fmt: skip
    return plants


SETS: Mapping[str, Callable[[str, random.Random], list[Plant]]] = {"fixed": fixed, "drawn": drawn}


def plant(case: Case, name: str, half: str, seed: int) -> tuple[list[bytes], list[Plant]]:
    """The lines of a case with the plants of a set among them."""
    chance = random.Random(f"{seed}{case.session}{case.number}{name}")
    plants = SETS[name](half, chance)
    spliced = []
    for number, one in enumerate(plants):
        depth = DEPTHS[number % len(DEPTHS)]
        spliced.append((depth, one.words, one.shown))
        if one.later:
            spliced.append((min(0.98, depth + chance.uniform(0.02, 0.3)), one.later, False))
    return _splice(case, spliced), plants


def _value(chance: random.Random) -> str:
    return "".join(chance.choice(_ALPHABET) for _ in range(9))


def _splice(case: Case, said: Sequence[tuple[float, str, bool]]) -> list[bytes]:
    """Put records between those of the case: a prompt and an answer, or the output of a command for what a tool shows. What is
    spliced at one place stands in the order of its depth."""
    places = [number for number, line in enumerate(case.before) if b'"type":"assistant"' in line and b'"uuid"' in line]
    if not places:
        return list(case.before)
    lines = list(case.before)
    added: dict[int, list[bytes]] = {}
    for count, (depth, words, shown) in sorted(enumerate(said), key=lambda one: (one[1][0], one[0])):
        place = places[min(len(places) - 1, int(depth * len(places)))]
        group = added.setdefault(place, [])
        group.extend(_records(lines[place], json.loads(group[-1])["uuid"] if group else "", words, shown, count))
    whole: list[bytes] = []
    for number, line in enumerate(lines):
        whole.append(line)
        if number in added:
            whole.extend(added[number])
            lines[number + 1 :] = _reparented(lines[number + 1 :], line, added[number][-1])
    return whole


def _records(after: bytes, parent: str, words: str, shown: bool, count: int) -> list[bytes]:
    """Two records behind another: words and an answer to them, or a command and what it printed."""
    model = json.loads(after)
    kept = ("sessionId", "cwd", "version", "gitBranch", "timestamp", "userType", "isSidechain")
    base = {key: model[key] for key in kept if key in model}
    call = {
        "type": "tool_use",
        "id": f"toolu_plant{count}",
        "name": "Bash",
        "input": {"command": f"cat sample-{count}.ini"},
    }
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": words}
    noted = {"type": "text", "text": "Noted."}
    made, parent = [], parent or model["uuid"]
    for step, (kind, content) in enumerate(
        (("assistant", [call]), ("user", [result])) if shown else (("user", words), ("assistant", [noted]))
    ):
        message: dict[str, object] = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"model": "claude", "id": f"msg_plant{count}", "type": "message"}
        uuid = f"plant-{count}-{step}-{parent}"[:64]
        made.append(json.dumps({**base, "type": kind, "uuid": uuid, "parentUuid": parent, "message": message}).encode())
        parent = uuid
    return made


def _reparented(lines: Sequence[bytes], old: bytes, new: bytes) -> list[bytes]:
    """What followed a record follows what was put behind it."""
    before, after = (json.loads(one)["uuid"].encode() for one in (old, new))
    parent = re.compile(rb'"parentUuid":\s*"' + re.escape(before) + b'"')
    return [parent.sub(b'"parentUuid":"' + after + b'"', line) if before in line else line for line in lines]


MARK = re.compile(r"superseded|no longer|was replaced|revoked|dropped|withdrawn|\[stale\]", re.IGNORECASE)
_NOT_OURS = re.compile(rf"another project|not ours|{grammar.NOT_OURS.pattern}")


def judge_plants(plants: Sequence[Plant], text_for: Callable[[Plant], str]) -> dict[str, float]:
    """How a text (``text_for`` gives it for each plant) stands to the plants, as shares:

    ``right``     of current values (the latest ones) that stand with their name in a line without a mark
    ``retired``   of values that nothing took back for which there is no such line: wrongly retired
    ``stale``     of superseded and revoked values that stand in a line without a mark
    ``misled``    the same, where what replaced it, or took it back, stands nowhere in the text
    ``asserted``  of values that were never true that stand in a line without the words that say whose they are
    ``abstained`` of names without a value (revoked, never true) for which no line gives one as if it held
    """
    found: dict[str, list[float]] = {
        name: [] for name in ("right", "retired", "stale", "misled", "asserted", "abstained")
    }
    for one in plants:
        text = text_for(one)
        exposed = bool(_standing(text, one.value, without=one.new))
        if one.fate in ("current", "superseded"):
            latest = one.new or one.value
            right = any(one.noun in line.casefold() for line in _standing(text, latest))
            found["right"].append(right)
            if one.fate == "current":
                found["retired"].append(not right)
        if one.later:
            found["stale"].append(exposed)
            found["misled"].append(exposed and not (one.new in text if one.new else flat(one.later) in flat(text)))
        if one.fate == "never true":
            found["asserted"].append(exposed)
        if one.fate in ("revoked", "never true"):
            found["abstained"].append(not exposed)
    return {name: mean(values) for name, values in found.items()}


def _standing(text: str, value: str, without: str = "") -> list[str]:
    """The lines that give a value as if it held: no mark, nobody else's, and not beside what replaced it."""
    word = re.compile(rf"(?<![\w/-]){re.escape(value)}(?![\w/-])")
    return [
        line
        for line in text.split("\n")
        if value in line and word.search(line) and not MARK.search(line) and not _NOT_OURS.search(line)
        and not (without and without in line)
    ]  # fmt: skip
