"""What a text claims that the session never had: paths, structured names, references and numbers without a source.

Invariant: what a memory writes of its own (its ids, tags, commands, counts, sizes, times) is known by its form, and only that
is left out, with the words that it shows to be cut; everything else has to stand, as a whole word, in the lines that it was given,
and a name beside a file in one record with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from bench.survival.facts import names_of, tokens_of
from bench.survival.record import strings

_NUMBER = re.compile(r"(?<![\w.,#-])\d{3,}(?:[.,]\d+)*(?![\w-])|(?<![\w.])\d+\.\d+(?![\w.])")
_OPENING = re.compile(r"(?m)^<observational-memory[^>]*>\n(?:(?!## ).*\n)*")  # up to the first section: what this is
_OWN = re.compile(
    r"(?m)^</observational-memory>|^## .*|[^\s`]*observational_memory\.py(?: [a-z]+ [^\s`]+)?"
    r"|^\[[0-9a-f]{7,12}\]|\b(?:raw_[0-9a-f]{10}|[0-9a-z]{4,8}\.\d+)(?=[,)\] …]|$)|\[superseded, it seems, by [0-9a-f]+\]"
    r"|×\d+|\(\+\d+\)|\b\d[\d,]* (?:more|older|further|others?|characters|tokens|lines|notes|names|files)\b"
    r"|(?<=[(\[ ])\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|\b\d\d:\d\d\b"
)
_CUT = re.compile(r"\s?(?:\[…[^\]\n]*\]\s?|…)")
_LISTED = re.compile(r"[,:] ")
_WRITTEN_OUT = re.compile(r"\\+[ntr]")
_BESIDE_CUT = re.compile(r"\S*…\S*")


def source_of(lines: Iterable[bytes]) -> str:
    """Everything that stands in these lines of a transcript, as text: the fields, strings and numbers of each record. A line's end
    that is written out in a string (code in an edit, JSON in an output) ends a word there, too."""
    found: list[str] = []
    for line in lines:
        try:
            found += strings(json.loads(line), keys=True)
        except ValueError:
            found.append(line.decode("utf-8", "replace"))
    return _WRITTEN_OUT.sub(" ", "\n".join(found))


def claims(text: str) -> set[str]:
    """What a text names that could be false: rare tokens without those that a memory writes of its own."""
    told = _foreign(text)
    return tokens_of(told) | {match.group(0) for match in _NUMBER.finditer(told)}


def _foreign(text: str) -> str:
    """A text without what a memory writes of its own, and without words that are cut."""
    return _OWN.sub(" ", _BESIDE_CUT.sub(" ", _CUT.sub("…", _OPENING.sub("", text))))


def false_claims(text: str, source: str) -> tuple[int, list[str]]:
    """(number of claims, those that the source never had)."""
    found = claims(text)
    return len(found), sorted(one for one in found if not stands(one, source))


def false_bindings(text: str, records: Sequence[str], files: re.Pattern[str]) -> tuple[int, list[tuple[str, str]]]:
    """(number of structured names that a line tells of the one file that it names, those that no record has together with it).
    A file behind a comma or a colon is one of a list, of which nothing is told."""
    count, false = 0, []
    for line in _foreign(text).split("\n"):
        first = files.search(line)
        if first is None or _LISTED.search(line[: first.start()]):
            continue
        file = first.group(0).rpartition("/")[2]
        if any(not one.endswith(file) for one in files.findall(line)):
            continue
        about = [record for record in records if file in record]
        for name in names_of(files.sub(" ", line[first.end() :])):
            count += 1
            if name not in file and not any(stands(name, record) for record in about):
                false.append((name, file))
    return count, false


def stands(word: str, source: str) -> bool:
    """True if a word stands in a source, and not only as a piece of a longer one."""
    place = source.find(word)
    while place >= 0:
        around = source[max(0, place - 1) : place] + source[place + len(word) : place + len(word) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        place = source.find(word, place + 1)
    return False
