"""What is known of one file: who read and changed it, what it held, who said what about it. Values in, values out.

Invariants: a path means the same file however it was written (absolute, relative to its session's folder, either
separator); content is only claimed where entries hold all of it, and a change that does not fit ends the claim.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from obsmem.core.ids import entry_id
from obsmem.core.model import Card, Fact, Note

DEEDS = {"read": "read", "edit": "edited", "write": "wrote", "delete": "deleted"}
SAID = ("instruction", "answer", "decision")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class Touch(NamedTuple):
    """A session read or changed the file: ``path`` absolute, ``ids`` the entries that show it (a call and its result)."""

    path: str
    what: str
    at: int
    session: str
    ids: tuple[str, ...]
    ok: bool | None


class Saying(NamedTuple):
    """Somebody said something that names the file. ``who`` is user | agent | note."""

    id: str
    at: int
    who: str
    text: str


def absolute(path: str, cwd: str) -> str:
    """A path as one form of it: absolute, with slashes, without dots. Relative where no folder is known."""
    if _DRIVE.match(path) or "\\" in path:
        path = path.replace("\\", "/")
    if _DRIVE.match(path) or path.startswith("/"):
        return posixpath.normpath(path)
    return posixpath.normpath(posixpath.join(cwd.replace("\\", "/"), path)) if cwd else posixpath.normpath(path)


def touches_of(cards: Iterable[Card], cwd: str) -> list[Touch]:
    """Everything that the cards of one session say was done to files."""
    return [
        Touch(
            absolute(fact.subject, cwd),
            DEEDS[fact.kind],
            fact.at,
            card.session,
            tuple(entry_id(card.session, seq) for seq in fact.seqs),
            fact.ok,
        )
        for card in cards
        for fact in card.facts
        if fact.kind in DEEDS and fact.subject
    ]


def matching(paths: Iterable[str], asked: str, cwd: str) -> list[str]:
    """Those of these absolute paths that are meant: the very file, else those that end with what was asked for."""
    known = list(dict.fromkeys(paths))
    whole = absolute(asked, cwd)
    if whole in known:
        return [whole]
    tail = "/" + absolute(asked, "").lstrip("/")
    return [path for path in known if path.endswith(tail)]


def sayings_about(path: str, cards: Iterable[Card], notes: Iterable[Note]) -> list[Saying]:
    """What people ordered and agents decided that names the file, and notes that do, in order of time."""
    names = _names(path)
    found = []
    for card in cards:
        for fact in card.facts:
            if fact.kind in SAID and _is_named(path, names, _words(fact)):
                who = "agent" if fact.kind == "decision" else "user"
                found.append(Saying(entry_id(card.session, max(fact.seqs)), fact.at, who, _words(fact)))
    found += [Saying(note.id, note.at, "note", note.text) for note in notes if _is_named(path, names, note.text)]
    return sorted(found, key=lambda one: (one.at, one.id))


def _words(fact: Fact) -> str:
    return f"{fact.text} (to: {fact.subject})" if fact.kind == "answer" and fact.subject else fact.text


def _names(path: str) -> re.Pattern[str]:
    """The path, or the end of it with at least the file's name, as a word of its own. Folders before the name must be
    those of the path: ``docs/config.py`` does not name ``/w/src/config.py``."""
    *folders, name = (re.escape(part) for part in path.strip("/").split("/"))
    before = ""
    for folder in folders:
        before = rf"(?:{before}{folder}[\\/])?"
    return re.compile(rf"(?<![\w./\\~-])(?:\.?[\\/])?{before}{name}(?![\w-]|\.\w)")


def _is_named(path: str, names: re.Pattern[str], text: str) -> bool:
    # Most texts do not hold the name at all, and to see that costs a tenth of the expression.
    return posixpath.basename(path) in text and names.search(text) is not None


# How tools number the lines of a file that they show: ``  12→text``, ``12<tab>text``, ``12: text``, ``00012| text``.
_NUMBERED = re.compile(r" *0*(\d+)(?:→|\t|: |\| )(.*)", re.DOTALL)
_PART_ASKED = re.compile(r"^ *(?:offset|limit|start_line|end_line|view_range|range|lines?)\b", re.MULTILINE)
# What may stand behind the lines: the end of a tag, a word that this is the end, fields of the tool's own record.
_ASIDE = re.compile(r"</|\(End of file|\w+(?:\.\w+)+: ")
MOST_LINES, LONGEST_LINE = 2_000, 2_000  # of a file that tools show whole; longer ones they cut


class Shown(NamedTuple):
    """What a tool showed of a file from its first line on. ``is_whole`` is False where more of it may follow. Whether its
    last line has an end, nobody said."""

    text: str
    is_whole: bool


def shown_text(call: str, result: str) -> Shown | None:
    """The text that a call to read a file gave, its numbers taken off; None where it does not begin with the first line, or
    not each line has its number."""
    found: list[str] = []
    rest: list[str] = []
    for line in result.split("\n"):
        match = _NUMBERED.match(line) if not rest else None
        if match is not None and int(match.group(1)) == len(found) + 1:
            found.append(match.group(2))
        elif found:
            rest.append(line)
        elif line.strip() and not line.startswith("<"):
            return None
    if not found:
        return None
    behind = "\n".join(rest).partition("<system-reminder>")[0].split("\n")
    more = [one for one in behind if one.strip() and not _ASIDE.match(one)]
    is_cut = len(found) >= MOST_LINES or any(len(one) >= LONGEST_LINE for one in found)
    return Shown("\n".join(found), not more and not is_cut and _PART_ASKED.search(call) is None)


class Change(NamedTuple):
    """What one successful call did to the file's text: the whole of it (``whole``), or ``old`` replaced by ``new``."""

    whole: bool
    new: str
    old: str = ""


def replay(changes: Sequence[Change]) -> str | None:
    """The text after these changes, in order; None where it is not known whole."""
    text: str | None = None
    for change in changes:
        if change.whole:
            text = change.new
        elif text is not None:
            if not change.old or text.count(change.old) != 1:
                text = None  # appended to, or not where we think: nothing is claimed any more
            else:
                text = text.replace(change.old, change.new)
    return text
