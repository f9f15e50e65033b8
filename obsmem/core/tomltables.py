"""Careful edits of a TOML document that a person keeps: tables of ours are put at its end, and taken out again.

Invariants: every other character stays; what is taken out right after it was put in gives the old text again. Only what
these edits need of the format is read: where its tables begin, and no string taken for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

MARK = "# Written by observational-memory: `install` puts it here, `uninstall` takes it out."
# The same where the document did not end its last line, so that taking out can give that back.
MARK_AFTER_OPEN_LINE = f"{MARK} The line before had no end."
_HEADER = re.compile(r"^[ \t]*\[([^\[\]]+)\][ \t]*(?:#.*)?$")
_ANY_HEADER = re.compile(r"^[ \t]*\[")
_KEY = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*=""")
_PART = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*(?:\.|$)""")


class Table(NamedTuple):
    """A table: its dotted name, and its first line and the one after its last (its header's comments not included)."""

    name: tuple[str, ...]
    first: int
    end: int


def merge(text: str, additions: Mapping[str, Any]) -> str:
    """The text with the tables of ``additions`` (two levels of names, then plain values) at its end, unless they are there
    already. Raises ValueError where a value, and no table, has the name."""
    lines = _split(text)
    known, values_there = {table.name for table in tables(lines)}, set(_top_keys(lines))
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    for outer, inner in additions.items():
        if outer in values_there:
            raise ValueError(f"{outer!r} stands there as one value; write it as tables [{outer}.NAME]")
        for name, values in inner.items():
            if (outer, name) not in known:
                is_open = bool(text) and not text.endswith("\n")
                written = [
                    MARK_AFTER_OPEN_LINE if is_open else MARK,
                    f"[{outer}.{_key(name)}]",
                    *(f"{_key(key)} = {_value(one)}" for key, one in values.items()),
                ]
                gap = "" if not text else end_of_line * 2 if is_open else end_of_line
                text += gap + "".join(line + end_of_line for line in written)
    return text


def take_out(text: str, is_ours: Callable[[str], bool], kept: Any = None) -> str:
    """The text without the tables that hold a string of ours, and without those inside them."""
    lines = _split(text)
    found = tables(lines)
    roots = {table.name for table in found if _is_ours(lines, table, is_ours)}
    for table in reversed(found):
        if any(table.name[: len(root)] == root for root in roots):
            _cut(lines, table)
    return "".join(lines)


def _cut(lines: list[str], table: Table) -> None:
    """Take a table's lines out, with the mark before it and what was put before that."""
    mark = lines[table.first - 1].strip() if table.first else ""
    first = table.first - 1 if mark in (MARK, MARK_AFTER_OPEN_LINE) else table.first
    if first and first < table.first and not lines[first - 1].strip():
        first -= 1  # the blank line that was put before it
    is_last = table.end == len(lines)
    del lines[first : table.end]
    if mark == MARK_AFTER_OPEN_LINE and is_last and lines:
        lines[-1] = lines[-1].rstrip("\r\n")


def count(text: str, is_ours: Callable[[str], bool]) -> int:
    """How many tables hold a string of ours."""
    lines = _split(text)
    return sum(_is_ours(lines, table, is_ours) for table in tables(lines))


def tables(lines: list[str]) -> list[Table]:
    """The tables of a document, in order. What stands in a string of several lines is none."""
    starts = [(number, _name(line)) for number, line in _outside_of_strings(lines) if _ANY_HEADER.match(line)]
    found = []
    for index, (number, name) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else len(lines)
        while end > number + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1  # comments before the next table belong to that one
        if name:
            found.append(Table(name, number, end))
    return found


def _is_ours(lines: list[str], table: Table, is_ours: Callable[[str], bool]) -> bool:
    return any(is_ours(_strings(line)) for line in lines[table.first + 1 : table.end])


def _strings(line: str) -> str:
    """A line with the escapes of its basic strings undone, as far as they are those of JSON."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: _plain(match.group()), line)


def _plain(word: str) -> str:
    try:
        return str(json.loads(word, strict=False))
    except ValueError:
        return word


def _split(text: str) -> list[str]:
    """The lines, each with its end."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _outside_of_strings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without those that begin inside a string or list of several lines."""
    quote, depth = "", 0
    for number, line in enumerate(lines):
        if not quote and not depth:
            yield number, line.rstrip("\r\n")
            if _ANY_HEADER.match(line):
                continue
        quote, depth = _after(line, quote, depth)


_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]]')
_CLOSING = {
    '"""': re.compile(r'\\[\s\S]|"{3,5}'),
    "'''": re.compile(r"'{3,5}"),
}  # up to two quotes may end the text itself


def _after(line: str, quote: str, depth: int) -> tuple[str, int]:
    """The string or list that is still open behind a line."""
    position = 0
    while True:
        match = (_CLOSING[quote] if quote else _TOKEN).search(line, position)
        if match is None:
            return quote, max(0, depth)
        word, position = match.group(), match.end()
        if quote:
            quote = quote if word.startswith("\\") else ""
        elif word in _CLOSING:
            quote = word
        elif word in "[]":
            depth += 1 if word == "[" else -1


def _top_keys(lines: list[str]) -> Iterator[str]:
    """The names of values before the first table."""
    for _, line in _outside_of_strings(lines):
        if _ANY_HEADER.match(line):
            return
        if match := _KEY.match(line):
            yield _unquoted(match.group(1))


def _name(line: str) -> tuple[str, ...]:
    match = _HEADER.match(line)
    parts, position = [], 0
    text = match.group(1).strip() if match else ""
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return ()
        parts.append(_unquoted(part.group(1)))
        position = part.end()
    return tuple(parts)


def _unquoted(word: str) -> str:
    return _plain(word) if word[0] == '"' else word.strip("'")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    """A text, a number, a truth value or a list of them: JSON writes these as TOML does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
