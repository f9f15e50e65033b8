"""Made-up facts, drawn at run time and spliced into a real transcript: current, superseded, revoked, never true.

Real facts can be found again in a repository; these cannot. Invariants: the values are drawn from a seed that is not in the
repository unless one is given; each plant stands at a known depth, and the two sets of wordings share no sentence.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import NamedTuple

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
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


class Plant(NamedTuple):
    """``fate``: current | superseded | revoked | never true. ``value`` is the first value, ``new`` what replaced it."""

    noun: str
    fate: str
    value: str
    new: str = ""


def plant(case: Case, half: str, seed: int) -> tuple[list[bytes], list[Plant]]:
    """The lines of a case with twelve plants among them: a half stays, a quarter is superseded in other words, a twelfth is
    revoked, a sixth was never true."""
    chance = random.Random(f"{seed}{case.session}{case.number}")
    say, change, revoke, elsewhere = WORDINGS[half]
    nouns = list(NOUNS)
    chance.shuffle(nouns)
    fates = ["current"] * 6 + ["superseded"] * 3 + ["revoked"] + ["never true"] * 2
    plants, spliced = [], []
    for number, (noun, fate) in enumerate(zip(nouns, fates, strict=True)):
        value, new = _value(chance), _value(chance) if fate == "superseded" else ""
        plants.append(Plant(noun, fate, value, new))
        depth = DEPTHS[number % len(DEPTHS)]
        words = (elsewhere if fate == "never true" else say).format(noun=noun, value=value)
        spliced.append((depth, words, fate == "never true"))
        later = min(0.98, depth + chance.uniform(0.02, 0.3))
        if fate in ("superseded", "revoked"):
            spliced.append((later, (change if new else revoke).format(noun=noun, new=new), False))
    return _splice(case, spliced), plants


def _value(chance: random.Random) -> str:
    return "".join(chance.choice(_ALPHABET) for _ in range(9))


def _splice(case: Case, said: Sequence[tuple[float, str, bool]]) -> list[bytes]:
    """Put records between those of the case: a prompt and an answer, or the output of a command for what is never true."""
    places = [number for number, line in enumerate(case.before) if b'"type":"assistant"' in line and b'"uuid"' in line]
    if not places:
        return list(case.before)
    lines = list(case.before)
    added: dict[int, list[bytes]] = {}
    for count, (depth, words, shown) in enumerate(said):
        place = places[min(len(places) - 1, int(depth * len(places)))]
        group = added.setdefault(place, [])
        group.extend(_records(lines[place], json.loads(group[-1])["uuid"] if group else "", words, shown, count))
    whole: list[bytes] = []
    for number, line in enumerate(lines):
        whole.append(line)
        whole.extend(added.get(number, ()))
        if number in added:
            lines[number + 1 :] = [_reparent(one, line, added[number][-1]) for one in lines[number + 1 :]]
    return whole


def _records(after: bytes, parent: str, words: str, shown: bool, count: int) -> list[bytes]:
    model = json.loads(after)
    base = {
        key: model.get(key)
        for key in ("sessionId", "cwd", "version", "gitBranch", "timestamp", "userType", "isSidechain")
        if key in model
    }
    made, parent = [], parent or model["uuid"]
    for step in range(2):
        uuid = f"plant-{count}-{step}-{parent}"[:64]
        if shown and step == 0:
            block = {
                "type": "tool_use",
                "id": f"toolu_plant{count}",
                "name": "Bash",
                "input": {"command": f"cat sample-{count}.ini"},
            }
            message = {
                "role": "assistant",
                "model": "claude",
                "id": f"msg_plant{count}",
                "type": "message",
                "content": [block],
            }
            kind = "assistant"
        elif shown:
            block = {"type": "tool_result", "tool_use_id": f"toolu_plant{count}", "content": words}
            message, kind = {"role": "user", "content": [block]}, "user"
        elif step == 0:
            message, kind = {"role": "user", "content": words}, "user"
        else:
            text = [{"type": "text", "text": "Noted."}]
            message = {
                "role": "assistant",
                "model": "claude",
                "id": f"msg_plant{count}",
                "type": "message",
                "content": text,
            }
            kind = "assistant"
        made.append(json.dumps({**base, "type": kind, "uuid": uuid, "parentUuid": parent, "message": message}).encode())
        parent = uuid
    return made


def _reparent(line: bytes, old: bytes, new: bytes) -> bytes:
    """What followed a record follows what was put behind it."""
    before, after = json.loads(old)["uuid"], json.loads(new)["uuid"]
    return re.sub(
        rb'"parentUuid":\s*"' + re.escape(before.encode()) + b'"', b'"parentUuid":"' + after.encode() + b'"', line
    )


class Verdict(NamedTuple):
    """How a text stands to the plants: shares of current values that are right, of old values shown as if they held, and of
    never-true ones that are asserted."""

    right: float
    stale: float
    asserted: float


_MARK = re.compile(r"superseded|no longer|was replaced|revoked|dropped|withdrawn|\[stale\]", re.IGNORECASE)


def judge_plants(text: str, plants: Sequence[Plant]) -> Verdict:
    """Judge a text line by line: a value is right where it stands with its noun, stale where the old one stands without a mark."""
    lines = text.split("\n")
    current = [one for one in plants if one.fate in ("current", "superseded")]
    old = [one for one in plants if one.fate in ("superseded", "revoked")]
    never = [one for one in plants if one.fate == "never true"]

    def shown(value: str, noun: str = "") -> list[str]:
        return [line for line in lines if value in line and noun in line]

    right = sum(bool(shown(one.new or one.value, one.noun)) for one in current)
    stale = sum(any(not _MARK.search(line) for line in shown(one.value)) for one in old)
    # What is never true may be told as what a tool showed, with the words that say whose it is.
    asserted = sum(any(not re.search(r"another project|not ours", line) for line in shown(one.value)) for one in never)
    return Verdict(
        right / len(current) if current else 0.0,
        stale / len(old) if old else 0.0,
        asserted / len(never) if never else 0.0,
    )
