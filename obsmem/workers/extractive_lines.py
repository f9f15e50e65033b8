"""How the extractive worker writes a note, and how it reads its own notes back.

Invariant: one line, at most its limit, and a mark […] where words were left out. Writing and reading stand together
here, so that the reflector and dropper understand exactly what the observer wrote.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NOTE_LIMIT = 400
WORDS_LIMIT = 600
NAMES_LIMIT = 14
CUT = "[…]"

# The rule under a table's head, and the bars at the ends of its rows.
_TABLE = re.compile(r"^[ \t]*\|(?:[\s:|-]+\|)?[ \t]*|[ \t]*\|[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SPACE = re.compile(r"[\s\x00-\x1f\x7f]+")
_MARKUP = re.compile(r"\*\*|(?<!\w)__(?=\w)|^#{1,6} +|(?<=\s)#{1,6} +(?=[A-Z*])", re.MULTILINE)


def one_line(text: str) -> str:
    """The text with every run of white space or control characters as one space."""
    return _SPACE.sub(" ", text).strip()


def clip(text: str, limit: int = NOTE_LIMIT) -> str:
    """The text in one line, cut at a word with a mark where it is longer than ``limit``."""
    line = one_line(text)
    if len(line) <= limit:
        return line
    head = line[: limit - len(CUT) - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit * 0.8 else head).rstrip() + " " + CUT


def quote(text: str, limit: int = WORDS_LIMIT) -> str:
    """The words in quotation marks; of long words the beginning and, since requests often end a paste, the end."""
    line = one_line(text)
    if len(line) > limit:
        tail = line[-limit // 4 :]
        tail = tail[tail.find(" ") + 1 :]
        line = clip(line, limit - len(tail) - 1) + " " + tail
    return f"“{line}”" if '"' in line else f'"{line}"'


def plain(text: str) -> str:
    """An agent's words without headings and emphasis; a code block leaves a mark, a table its cells."""
    return one_line(_MARKUP.sub("", _TABLE.sub("", _FENCE.sub(f" {CUT} ", text))))


def code(text: str, limit: int = 200) -> str:
    """A command or name set off as code; one that holds a backtick ends before it, with a mark."""
    line = one_line(text)
    if "`" in line:
        line = line.split("`", 1)[0].rstrip(" \\") + " " + CUT
    return f"`{clip(line, limit)}`"


def names(values: list[str], limit: int = 8) -> str:
    """Names in a row, the first ``limit`` of them, with a mark for more (a count would be in no cited entry)."""
    return ", ".join(values[:limit]) + (f", {CUT}" if len(values) > limit else "")


class FileNote(NamedTuple):
    """What a note on a file says."""

    verb: str
    path: str
    names: tuple[str, ...]


class CommandNote(NamedTuple):
    """What a note on a command says."""

    command: str
    failed: bool
    rest: str


def file_line(verb: str, path: str, identifiers: list[str]) -> str:
    """``Edited src/a.py: load, save``."""
    text = f"{verb} {path}"
    return clip(f"{text}: {names(identifiers, NAMES_LIMIT)}") if identifiers else clip(text)


_FILE_LINE = re.compile(r"(Edited|Wrote|Deleted) ([^\s:,]+)(?:: (.+))?\Z")


def read_file_line(text: str) -> FileNote | None:
    """The parts of a note on one file; None for any other note."""
    match = _FILE_LINE.match(text)
    if match is None:
        return None
    listed = tuple(name for name in (match.group(3) or "").split(", ") if name and name != CUT)
    return FileNote(match.group(1), match.group(2), listed)


def command_line(command: str, failed: bool, rest: str) -> str:
    """```pytest -q` failed: "…"`` or ```pytest -q` passed: "…"``."""
    return clip(f"{code(command)} {'failed' if failed else 'passed'}{rest}")


_COMMAND_LINE = re.compile(r"`([^`]+)` (failed|passed)\b(.*)\Z")


def read_command_line(text: str) -> CommandNote | None:
    """The parts of a note on one command's outcome; None for any other note."""
    match = _COMMAND_LINE.match(text)
    return CommandNote(match.group(1), match.group(2) == "failed", match.group(3)) if match else None


_COMMIT_LINE = re.compile(r"Committed ([0-9a-f]{7,40})(?: on \S+)?: (.+)\Z")


def read_commit_line(text: str) -> tuple[str, str] | None:
    """(hash, quoted message) of a note on a commit; None for any other note."""
    match = _COMMIT_LINE.match(text)
    return (match.group(1), match.group(2)) if match else None
