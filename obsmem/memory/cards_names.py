"""The names that stand in what was said, asked for and printed: paths, identifiers, references, hashes, numbers, addresses.

Invariant: a name stands verbatim in its text and has no blank in it; words of prose are none. What is looked at of one entry,
and what is kept of it, is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from obsmem.core import late
from obsmem.core.clean import part_escapes
from obsmem.core.fold import relative_path
from obsmem.core.model import Entry, Fact

HEAD, TAIL = 10_000, 3_000  # characters of an entry that are looked at
NAMES_KEPT = 120  # of one entry
SHORTEST, LONGEST = 3, 100  # characters of a name

_WORD = late.pattern(r"[\w./@~#-]{3,}", re.ASCII)
# What no word of prose has in it.
_TELLING = late.pattern(r"[_/\d]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_ADDRESS = late.pattern(r"https?://[^\s\"'<>()\[\]{}`\\|]+[^\s\"'<>()\[\]{}`\\|.,;:]")
# Names by their spelling (camelCase, PascalCase, snake_case, CONSTANTS), tickets, versions, hashes, and numbers that are ids.
_SPELT = late.pattern(
    r"[a-z]+\d*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z][A-Za-z0-9]*|_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*"
    r"|[A-Za-z]{2,}-\d+|v?\d+\.\d+\.\d+(?:[-.][\w.]+)?|(?=[a-f]*\d)[0-9a-f]{7,16}|\d{7,20}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_FILE = late.pattern(r"[\w@.-]*[\w@-]\.[a-z][a-z0-9]{0,4}")
_FOLDERS = late.pattern(r"[~.]{0,2}/?(?:[\w@.~-]+/)*[\w@.~-]+")
_UNLIKE_PROSE = late.pattern(r"[_\d-]")
_JOINTS = late.pattern(r"[./@~#-]")
_ARGUMENT = late.pattern(r"^(\w+): ", re.MULTILINE)


def naming(
    by: str,
    place: str,
    entry: Entry,
    cwd: str,
    mask: Callable[[str], str] = str,
    deeds: Iterable[Mapping[str, Any]] = (),
) -> list[Fact]:
    """What an entry names, as a fact, but for what the facts of these ``deeds`` keep; none where that is nothing."""
    text = mask(_looked_at(entry.text[entry.preface :]))
    known = set[str]()
    if by == "call":  # a call's own words for what it was given ("file_path: …") name nothing of the user's
        known = {entry.tool, *_ARGUMENT.findall(text)}
        details = [deed.get("detail", {}) for deed in deeds]
        known.update(name for detail in details for key in ("identifiers", "mentions") for name in detail.get(key, ()))
    names = names_in(text, known, cwd)
    return [Fact("names", (entry.seq,), entry.at, place, " ".join(names), detail={"by": by})] if names else []


def _looked_at(text: str) -> str:
    """The beginning and the end of a long text, without the pieces of words that lie at the cut."""
    if len(text) <= HEAD + TAIL:
        return text
    return text[:HEAD].rsplit(None, 1)[0] + "\n" + text[-TAIL:].split(None, 1)[-1]


def names_in(text: str, known: Collection[str] = (), cwd: str = "") -> list[str]:
    """The names in a text, in order of appearance, each once; those that are ``known`` left out. Paths below ``cwd`` come
    out relative to it."""
    text = _looked_at(text)
    text = part_escapes(text)
    found: dict[str, None] = {}
    if "://" in text:
        found.update(dict.fromkeys(one for one in _ADDRESS.findall(text) if len(one) <= LONGEST))
        text = _ADDRESS.sub(" ", text)
    for word in dict.fromkeys(_WORD.findall(text)):
        for name in _names_of(word, cwd):
            if name not in known:
                found[name] = None
        if len(found) >= NAMES_KEPT:
            break
    return list(found)


@lru_cache(maxsize=16_384)  # the same words come again and again in a session
def _names_of(word: str, cwd: str) -> tuple[str, ...]:
    """A word as the name that it is, or the names that it is made of."""
    if not _TELLING.search(word):
        return ()
    if _SPELT.fullmatch(word):
        return (word,) if len(word) <= LONGEST else ()
    if word.isalnum():
        return ()
    word = word.strip("-").rstrip("./@#-")
    if "/" in word:
        word = relative_path(word, cwd).removeprefix("./")
        if word.startswith(("a/", "b/")):  # of a diff
            word = word[2:]
    if _is_path(word) or (word.startswith("#") and word[1:].isdigit()):
        return (word,) if SHORTEST <= len(word) <= LONGEST else ()
    return tuple(part for part in _JOINTS.split(word) if len(part) <= LONGEST and _SPELT.fullmatch(part))


def _is_path(word: str) -> bool:
    """True for a file below some folder, a file with a spelt name, and for folders or branches that no prose writes."""
    folder, slash, last = word.rpartition("/")
    if not slash:
        return _FILE.fullmatch(word) is not None and _SPELT.fullmatch(word.partition(".")[0]) is not None
    if not _FOLDERS.fullmatch(word):
        return False
    return folder != "" and (
        _FILE.fullmatch(last) is not None or "/" in folder[1:] or _UNLIKE_PROSE.search(word) is not None
    )
