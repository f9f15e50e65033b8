"""The lines of *Names*: what else was seen in a file, each name beside the file that it lives in.

Invariant: only room that nothing else in the block had a use for is filled with them; a name that *Files* tells is not told
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from obsmem.core.fold import FileState, State
from obsmem.memory.wording import Line, View, clean

ROW = 200  # characters of names in one line, so that a part of them can be left out
NAME_LIMIT = 60  # characters of a name; what is longer is no name

_TOLD = re.compile(r"[\w$.-]+")


def name_lines(state: State, view: View, told: Iterable[str]) -> list[Line]:
    """Lines of names by file, changed files first, the newest first; ``told`` are the lines that name some already."""
    known = {word for text in told for word in _TOLD.findall(text)}
    files = sorted(state.files.values(), key=_newest, reverse=True)
    lines: list[Line] = []
    for file in files:
        names = [clean(name) for name, _ in (*file.identifiers, *file.mentions)]
        rest = [name for name in dict.fromkeys(names) if name not in known and len(name) <= NAME_LIMIT]
        for row in _rows(rest):
            place = len(lines)
            lines.append(Line(f"{clean(file.path)}: {', '.join(row)}", (file.read_only, place), place))
    return lines


def _newest(file: FileState) -> tuple[bool, int]:
    return not file.read_only, max(file.last_edit_seq, file.last_read_seq)


def _rows(names: list[str]) -> list[list[str]]:
    rows: list[list[str]] = []
    size = ROW
    for name in names:
        if size + len(name) > ROW:
            rows.append([])
            size = 0
        rows[-1].append(name)
        size += len(name) + 2
    return rows
