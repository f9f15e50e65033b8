"""Whether a text holds a fact, what it costs, and how sure a difference is.

Presence never suffices where a fact binds two things: both must stand in one entry (``entries``), and no other thing of the
object's kind between them. Tokens are counted with the weights of a published measurement against real usage, not by the
memory under test.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bench.survival.entries import Kinds, bound, entries
from bench.survival.facts import Fact

NEAR = 300  # characters
ERROR_SHOWN, COMMAND_SHOWN = 60, 40  # characters of each that must stand there
TODO_WORDS = 0.8  # of the words of a to-do
ROUNDS = 2000  # of the bootstrap
SEED = 20261130

_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]")


def tokens(text: str) -> float:
    """Tokens of a text as the evaluator counts them: the conservative character-class weights of the method's section 4.3."""
    total = 2.59 * text.count("\n") + 0.126 * text.count("  ")
    for character, count in Counter(text).items():
        total += _weight(character) * count
    return total


def _weight(character: str) -> float:
    if not character.isascii():
        return 1.2 if _WIDE.match(character) else 0.57 + 0.775 * character.isdigit()
    if character.isalpha():
        return 0.247 + 0.061 * character.isupper()
    return 0.775 if character.isdigit() else 0.0 if character.isspace() else 0.779


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
    """A text that facts are looked for in. ``kinds`` tells what else could be the object of a bound fact."""

    def __init__(self, text: str, kinds: Kinds) -> None:
        self.flat = flat(text)
        self.lower = self.flat.casefold()
        self.entries = entries(text)
        self.kinds = kinds

    def holds(self, fact: Fact) -> bool:
        """True if the fact can be known from this text."""
        return _RULES[fact.kind](self, fact)


def _path(text: Text, fact: Fact) -> bool:
    """The path, or its last two parts, as a whole word."""
    tail = "/".join(fact.answer.split("/")[-2:])
    return bool(re.search(r"(?<![\w-])" + re.escape(tail) + r"(?![\w-])", text.flat))


def _identifier(text: Text, fact: Fact) -> bool:
    word = rf"(?<!\w){re.escape(fact.subject)}(?!\w)"
    return bound(text.entries, re.compile(word), text.kinds.files, lambda found: _same_file(found, fact.answer))


def _same_file(found: str, path: str) -> bool:
    """True if a file as it is named here can be the one at this path: as much of its folders as is told is right."""
    return f"/{path}".endswith(f"/{found}") or f"/{found}".endswith(f"/{path}")


def _command(text: Text, fact: Fact) -> bool:
    error = re.compile(re.escape(error_shown(fact)))
    mine = max((one for one in text.kinds.shown if fact.subject.startswith(one)), key=len, default="")
    return bound(text.entries, error, text.kinds.commands, lambda found: found == mine)


def error_shown(fact: Fact) -> str:
    """As much of an error as must stand there."""
    return flat(fact.answer)[:ERROR_SHOWN].strip()


def kinds_of(known: Sequence[Fact]) -> Kinds:
    """What of each kind these facts name."""
    files = {fact.answer for fact in known if fact.kind in ("edited", "read only", "identifier in file")}
    commands = sorted({fact.subject for fact in known if fact.kind == "command and error"})
    return Kinds.of(files, {_told_apart(one, commands) for one in commands})


def _told_apart(command: str, commands: Sequence[str]) -> str:
    """As much of a command as must stand there: the first characters, and more where another one begins so."""
    others = [one for one in commands if one != command]
    length = COMMAND_SHOWN
    while any(one.startswith(command[:length]) for one in others) and length < len(command):
        length += 1
    return command[:length] if length > COMMAND_SHOWN else command[:length].strip()


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
    return bool(re.search(r"(?<!\w)" + re.escape(fact.answer) + r"(?!\w)", text.flat))


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
