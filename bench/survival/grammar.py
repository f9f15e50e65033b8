"""Wordings of made-up facts, drawn from a grammar: the second set, by another hand than the rule that reads such words.

Invariants: it was written without a look at how the memory reads what users say, and nothing is ever tuned to it. What says a
value for the first time holds no word that marks it as outdated; what was never true stands with words that say whose it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

QUALITIES = ("staging", "release", "audit", "report", "customer", "billing", "nightly", "preview")
THINGS = ("port", "prefix", "bucket", "folder", "queue", "limit", "branch", "label", "channel", "region", "profile")

# Words that say that a value is not ours; each alternative of ``foreign`` and ``hearsay`` has one of them.
NOT_OURS = re.compile(
    r"legacy product|other team|vendor's demo|template's placeholder|competitor|last job|bad example|did not"
)

GRAMMAR: Mapping[str, tuple[str, ...]] = {
    "state": (
        "{opener}{ours} is {value}{tail}",
        "{opener}{ours} should be {value}{tail}",
        "{opener}{ours} has to stay {value}{tail}",
        "{opener}{ours} will always read {value}{tail}",
        "{opener}we settled on {value} for {ours}{tail}",
        "{opener}take {value} as {ours}{tail}",
        "{opener}set {ours} to {value}{tail}",
        "{opener}{value} is what we use as {ours}{tail}",
        "{opener}whenever you need {ours}, it's {value}{tail}",
        "{opener}please write {value} for {ours}{tail}",
        "{opener}{ours}: {value}{tail}",
        "{opener}I registered {value} as {ours}{tail}",
        "{opener}the people from operations gave us {value}, that is {ours}{tail}",
    ),
    "change": (
        "{turn}{ours} is {new} now{tail}",
        "{turn}{ours} moves to {new}{tail}",
        "{turn}{ours} became {new}{tail}",
        "{turn}make {ours} {new}{tail}",
        "{turn}please take {new} instead for {ours}{tail}",
        "{turn}I mistyped {ours}, it reads {new}{tail}",
        "{turn}not {value} but {new} for {ours}{tail}",
        "{turn}from today {new} replaces {value} as {ours}{tail}",
        "{turn}{ours} got renamed from {value} to {new}{tail}",
        "{turn}the right value for {ours} turns out to be {new}{tail}",
        "{turn}{ours} needs a correction: {new}{tail}",
        "{turn}what I told you about {ours} is outdated, {new} it is{tail}",
        "{turn}they assigned us {new}, so that is {ours} from here on{tail}",
    ),
    "revoke": (
        "{turn}we do without {ours}{tail}",
        "{turn}there will be no {noun} after all{tail}",
        "{turn}scrap {ours}{tail}",
        "{turn}ignore what I said about {ours}{tail}",
        "{turn}{ours} is off the table{tail}",
        "{turn}{ours} was taken out of the design, leave it away{tail}",
        "{turn}don't set {ours} at all{tail}",
        "{turn}never mind {ours}{tail}",
        "{turn}I take back what I said on {ours}{tail}",
    ),
    "shown": (
        "{noun} = {value}  # {foreign}",
        "{noun}: {value} ({foreign})",
        "# {foreign}: {noun} {value}",
        "[{foreign}] {noun}={value}",
    ),
    "hearsay": (
        "The competitor's {noun} is {value}, to give you an idea of their style{tail}",
        "In my last job the {noun} was {value}{tail}",
        "{value} would be a bad example of a {noun}{tail}",
        "Somebody proposed {value} as {noun}, we did not take it{tail}",
        "The {noun} of the other team is {value}{tail}",
    ),
    "foreign": ("the legacy product", "the other team", "the vendor's demo", "the template's placeholder"),
    "opener": ("", "", "For the record: ", "One more thing: ", "Heads-up: ", "Before I forget, ", "By the way, ", "Good. "),
    "turn": ("", "Actually, ", "Hm, ", "I was wrong: ", "Update from the meeting: ", "Sorry, ", "News: ", "Wait, "),
    "ours": ("the {noun}", "our {noun}", "the {noun} here", "this project's {noun}"),
    "tail": (".", "", ", please.", " and go on.", "; the docs are silent about it.", " (agreed with everybody)."),
}  # fmt: skip
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_SLOT = re.compile(r"\{(\w+)\}")


def sentence(kind: str, chance: random.Random, **values: str) -> str:
    """A sentence of a kind (``state``, ``change``, ``revoke``, ``shown``, ``hearsay``) with its slots filled."""
    text = chance.choice(GRAMMAR[kind])
    while slot := _SLOT.search(text):
        name = slot.group(1)
        filled = values[name] if name in values else chance.choice(GRAMMAR[name])
        text = text[: slot.start()] + filled + text[slot.end() :]
    value = kind == "shown" or text.startswith(tuple(values.values()))
    return text if value else text[:1].upper() + text[1:]


def nouns(chance: random.Random, count: int) -> list[str]:
    """Names for things; many differ in one word only, so that what is near can be mistaken."""
    return chance.sample([f"{quality} {thing}" for quality in QUALITIES for thing in THINGS], count)


def value_for(noun: str, chance: random.Random) -> str:
    """A value that nobody can guess, of a shape that fits the thing."""
    if noun.endswith(("port", "limit")):
        return str(chance.randrange(20_000, 65_000))
    code = "".join(chance.choice(_ALPHABET) for _ in range(9))
    return f"data/{code}" if noun.endswith("folder") else code
