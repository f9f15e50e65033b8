"""Whether a text holds a fact, what it costs, and how sure a difference is.

Presence never suffices where a fact binds two things: both must stand in one line, or within NEAR characters. Tokens are
counted with the weights of a published measurement against real usage, not by the memory under test.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from bench.survival.facts import Fact

NEAR = 300  # characters
ERROR_SHOWN, COMMAND_SHOWN = 60, 40  # characters of each that must stand there
TODO_WORDS = 0.8  # of the words of a to-do
ROUNDS = 2000  # of the bootstrap
SEED = 20261130

_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]")


def tokens(text: str) -> float:
    """Tokens of a text as the evaluator counts them: the conservative character-class weights of the method's section 4.3."""
    letters = sum(character.isalpha() and character.isascii() for character in text)
    upper = sum(character.isupper() and character.isascii() for character in text)
    digits = sum(character.isdigit() for character in text)
    lines = text.count("\n")
    double = text.count("  ")
    wide = len(_WIDE.findall(text))
    foreign = sum(not character.isascii() for character in text) - wide
    marks = sum(character.isascii() and not character.isalnum() and not character.isspace() for character in text)
    return (
        0.247 * letters + 0.061 * upper + 0.775 * digits + 0.779 * marks + 2.59 * lines + 0.126 * double
        + 1.2 * wide + 0.57 * foreign
    )  # fmt: skip


def cut_to(text: str, budget: float, *, end: bool = False) -> str:
    """The beginning (or the end) of a text that costs at most ``budget`` tokens, by whole lines."""
    lines = text.split("\n")
    if end:
        lines.reverse()
    kept, used = [], 0.0
    for line in lines:
        cost = tokens(line + "\n")
        if used + cost > budget:
            break
        kept.append(line)
        used += cost
    if end:
        kept.reverse()
    return "\n".join(kept)


def flat(text: str) -> str:
    """A text on one line, with single blanks."""
    return " ".join(text.split())


class Text:
    """A text that facts are looked for in."""

    def __init__(self, text: str) -> None:
        self.whole = text
        self.flat = flat(text)
        self.lower = self.flat.casefold()
        self.lines = text.split("\n")

    def holds(self, fact: Fact) -> bool:
        """True if the fact can be known from this text."""
        return _RULES[fact.kind](self, fact)

    def near(self, one: str, other: str) -> bool:
        """True if two words stand in one line, or within NEAR characters of each other."""
        if not one or not other:
            return False
        places = [match.start() for match in re.finditer(re.escape(other), self.flat)]
        for match in re.finditer(
            r"(?<!\w)" + re.escape(one) + r"(?!\w)" if one[0].isalnum() else re.escape(one), self.flat
        ):
            if any(-NEAR - len(other) <= place - match.end() <= NEAR for place in places):
                return True
        return any(one in line and other in line for line in self.lines)


def _path(text: Text, fact: Fact) -> bool:
    """The path, or its last two parts, as a whole word."""
    tail = "/".join(fact.answer.split("/")[-2:])
    return bool(re.search(r"(?<![\w-])" + re.escape(tail) + r"(?![\w-])", text.flat))


def _identifier(text: Text, fact: Fact) -> bool:
    return text.near(fact.subject, fact.answer.rpartition("/")[2])


def _command(text: Text, fact: Fact) -> bool:
    return text.near(fact.subject[:COMMAND_SHOWN].strip(), flat(fact.answer)[:ERROR_SHOWN].strip())


def _words(text: Text, fact: Fact) -> bool:
    return fact.answer in text.flat


def _todo(text: Text, fact: Fact) -> bool:
    words = [word.casefold() for word in re.findall(r"\w{3,}", fact.answer)]
    if not words:
        return False
    first = re.escape(words[0])
    for match in re.finditer(first, text.lower):
        around = text.lower[max(0, match.start() - NEAR) : match.end() + NEAR]
        if sum(word in around for word in words) >= TODO_WORDS * len(words):
            return True
    return False


def _token(text: Text, fact: Fact) -> bool:
    return bool(re.search(r"(?<![\w-])" + re.escape(fact.answer) + r"(?![\w-])", text.flat))


_RULES: Mapping[str, Callable[[Text, Fact], bool]] = {
    "edited": _path,
    "read only": _path,
    "identifier in file": _identifier,
    "command and error": _command,
    "user's words": _words,
    "open to-do": _todo,
    "demand": _token,
}


def mean(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def interval(by_session: Mapping[str, Sequence[float]]) -> tuple[float, float, float]:
    """(mean, low, high) of per-case values, the 95 % interval by a bootstrap over sessions."""
    names = sorted(by_session)
    if not names:
        return 0.0, 0.0, 0.0
    chance = random.Random(SEED)
    means = []
    for _ in range(ROUNDS):
        drawn = [value for _ in names for value in by_session[chance.choice(names)]]
        means.append(mean(drawn))
    means.sort()
    whole = mean([value for values in by_session.values() for value in values])
    return whole, means[int(0.025 * ROUNDS)], means[int(0.975 * ROUNDS) - 1]
