"""What belongs together in a text, and whether a thing stands beside its object there.

Invariant: an entry never reaches over into what stands beside it. In a text of records (a transcript, an answer of ``recall``)
an entry is a line of a record with the record's first line; elsewhere it is a line with the headings, list items and openings
that it stands under. A line of a block stands under nothing but its section's heading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

RECORD = "\x1e"  # stands before each record of a text of records; it costs nothing

_HEADING = re.compile(r"#{1,6} ")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)]) ")
_NOTHING = re.compile(r"(?!)")
_UNDER_FENCE = 1000


class Entry(NamedTuple):
    """A line, and what it stands under (outermost first)."""

    line: str
    under: str


class Kinds(NamedTuple):
    """How the files and the commands of a session look in a text; ``shown`` is as much of each command as must stand there."""

    files: re.Pattern[str]
    commands: re.Pattern[str]
    shown: frozenset[str]

    @classmethod
    def of(cls, files: Iterable[str], commands: Iterable[str]) -> Kinds:
        """Files: whatever ends as one of these does, with its folders; those without an ending by their last two parts."""
        endings, bare = set(), set()
        for path in files:
            name = path.rpartition("/")[2]
            stem, dot, ending = name.rpartition(".")
            if dot and stem:
                endings.add(ending)
            else:
                bare.add("/".join(path.split("/")[-2:]))
        shapes = [rf"[\w.@-]+\.(?:{_any(endings)})"] if endings else []
        shapes += [_any(bare)] if bare else []
        named = rf"(?<![\w./@-])/?(?:[\w.@~-]+/)*(?:{'|'.join(shapes)})(?![\w/-]|\.\w)"
        shown = frozenset(commands)
        return cls(re.compile(named) if shapes else _NOTHING, re.compile(_any(shown)) if shown else _NOTHING, shown)


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word)


def entries(text: str) -> list[Entry]:
    """The entries of a text."""
    if RECORD not in text:
        return _of_markdown(text)
    found = []
    for record in text.split(RECORD):
        lines = [" ".join(line.split()) for line in record.split("\n")]
        found.append(Entry(lines[0], ""))
        found.extend(Entry(line, lines[0]) for line in lines[1:] if line)
    return found


def _of_markdown(text: str) -> list[Entry]:
    found, above, fenced = [], list[tuple[int, str]](), False
    for raw in text.split("\n"):
        line = " ".join(raw.split())
        if not line:
            continue
        fence = line.startswith("```")
        depth = _UNDER_FENCE if fenced or fence else _depth(raw.expandtabs(4), line)
        fenced ^= fence
        while above and above[-1][0] >= depth:
            above.pop()
        found.append(Entry(line, " ".join(words for _, words in above)))
        above.append((depth, line))
    return found


def _depth(raw: str, line: str) -> int:
    """How deep a line stands: headings highest, then what is indented least; an item stands under an opening of its own indent."""
    if _HEADING.match(line):
        return line.index(" ")
    indent = len(raw) - len(raw.lstrip())
    return 10 + 2 * indent + bool(_ITEM.match(line))


def bound(lines: Sequence[Entry], thing: re.Pattern[str], kind: re.Pattern[str], right: Callable[[str], bool]) -> bool:
    """True if in some entry the right object stands before or behind the thing, and no other of the kind between them."""
    for line, under in lines:
        places = [match.span() for match in thing.finditer(line)]
        if not places:
            continue
        offset = len(under) + 1
        objects = [(match.start(), match.end(), match.group(0)) for match in kind.finditer(f"{under} {line}")]
        for start, end in places:
            before = [name for _, last, name in objects if last <= start + offset]
            after = [name for first, _, name in objects if first >= end + offset]
            if (before and right(before[-1])) or (after and right(after[0])):
                return True
    return False
