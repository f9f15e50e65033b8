"""Words as a search sees them: identifiers taken apart, what a person types read as terms, never as syntax.

Invariant: text and question go through the same ``split``, so that ``parseConfig``, ``parse_config`` and
``src/parse/config.py`` hold the same parts in the same order; any text gives terms, and none gives a syntax error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from obsmem.core import late
from obsmem.core.clean import leave_out_encoded
from obsmem.core.tuples import NamedTuple

# It begins with what is looked for, which the engine then skips to: twice as fast as to look around at every character.
_JOINT = late.pattern(r"([A-Z])(?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")
_PART = late.pattern(r"[^\W_]+")
# Everything that stands between names, as a blank: three times as fast as to look for names by an expression.
_NAMES = bytes(code if chr(code).isalnum() or chr(code) == "_" else 32 for code in range(128)) + b" " * 128
_HUMP = late.pattern(rb"[a-z0-9][A-Z]")
_QUOTED = late.pattern(r'"([^"]*)"?')
_ENDINGS = ("ations", "ation", "ingly", "ings", "ing", "edly", "ed", "ies", "es", "ly", "s", "e", "y")
LONGEST_NAME = 80  # characters of an identifier that is also indexed as a whole
MOST_NAMES = 50_000  # that are remembered
MOST_TERMS = 24  # of one question; what comes after is not looked for
MOST_PARTS = 16  # of one term; a longer phrase is known by its beginning
PART_WEIGHT, PHRASE_WEIGHT = 0.5, 2.0  # of a part of an identifier, and of a quoted phrase, beside 1 for a word


class Term(NamedTuple):
    """One thing that is looked for: ``parts`` stand next to each other, or run together as one name. ``weight`` says how
    much it counts beside the others; ``quoted`` keeps the words of a phrase as they were typed."""

    parts: tuple[str, ...]
    weight: float = 1.0
    quoted: str = ""

    @property
    def text(self) -> str:
        """The parts as people read them."""
        return " ".join(self.parts)


def split(text: str) -> str:
    """A text with a space at each joint of a name in mixed case."""
    pieces = _JOINT.split(text)
    pieces[1::2] = [f" {letter}" for letter in pieces[1::2]]
    return "".join(pieces)


def parts_of(text: str) -> tuple[str, ...]:
    """The words of a text and the parts of its names, in order, as they were written."""
    return tuple(_PART.findall(split(text)))


class _RunTogether(dict[bytes, str]):
    """Name -> the same run together where it has several parts, else ''. What was asked for once is remembered: a hundred
    names of a thousand are new."""

    def __missing__(self, name: bytes) -> str:
        if len(self) >= MOST_NAMES:
            self.clear()
        has_parts = b"_" in name.strip(b"_") or (not name.islower() and _HUMP.search(name) is not None)
        self[name] = found = name.replace(b"_", b"").lower().decode() if has_parts and len(name) <= LONGEST_NAME else ""
        return found


_RUN_TOGETHER = _RunTogether()


def whole_names(text: str) -> list[str]:
    """Names of several parts, run together in lower case, each once: ``parse_config`` and ``parseConfig`` give ``parseconfig``."""
    names = text.encode("utf-8", "replace").translate(_NAMES).split()
    return list(dict.fromkeys(filter(None, map(_RUN_TOGETHER.__getitem__, names))))


def indexable(text: str) -> tuple[str, bool]:
    """(what of a text is indexed, whether that is all of it): long runs of encoded data are left out."""
    rest = leave_out_encoded(text)
    return rest, rest == text


def read_terms(text: str) -> list[Term]:
    """The terms of a question, in order, each once. A name of several parts is a term, and so is each of its parts."""
    found: dict[tuple[str, ...], Term] = {}

    def add(term: Term) -> None:
        term = term._replace(parts=term.parts[:MOST_PARTS])
        key = tuple(part.casefold() for part in term.parts)
        known = found.get(key)
        if known is None or term.weight > known.weight:
            found[key] = term

    def add_word(word: str, weight: float) -> None:
        parts = parts_of(word)
        if len(parts) > 1:
            add(Term(parts, weight))
            weight *= PART_WEIGHT
        for part in parts:
            add(Term((part,), weight))

    for match in _QUOTED.finditer(text):
        phrase = match.group(1).strip()
        parts = parts_of(phrase)
        if len(phrase.split()) > 1 and len(parts) > 1:
            add(Term(parts, PHRASE_WEIGHT, phrase))
            for word in phrase.split():
                add_word(word, PART_WEIGHT)
        else:
            add_word(phrase, 1.0)
    for word in _QUOTED.sub(" ", text).split():
        add_word(word, 1.0)
    return list(found.values())[:MOST_TERMS]


def light_stem(word: str) -> str:
    """A word without its commonest endings, at least three letters; never longer than what other forms share with it."""
    low = word.casefold()
    for ending in _ENDINGS:
        if low.endswith(ending) and len(low) - len(ending) >= 3:
            return low[: -len(ending)]
    return low


def pattern_of(terms: Sequence[Term]) -> re.Pattern[str]:
    """What finds the terms in a text, in any case and with other endings; parts of a name with anything but letters
    between them."""
    ordered = sorted(terms, key=lambda term: -len(term.parts))
    pieces = []
    for term in ordered:
        stems = [re.escape(part) for part in term.parts[:-1]] + [re.escape(light_stem(term.parts[-1]))]
        start = r"(?:(?<![^\W_])|(?<=[a-z0-9])(?=[A-Z]))" if len(term.parts) == 1 else ""
        pieces.append(start + r"[\W_]*".join(stems))
    return re.compile("|".join(pieces) or r"(?!)", re.IGNORECASE)
