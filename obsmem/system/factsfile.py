"""What a status line shows of a session, as two small files: what the maintainer knew last, and what the harness reported.

Invariants: whatever stands in a file, reading it gives valid values, 0 and '' for what is missing; numbers only, so that
showing them never shows what anybody said. On the hook path: ``os`` and our own ``files`` only.

Format: one line a value, its name, a blank, and the value.
"""

from __future__ import annotations

import os

from obsmem.system.files import read_bytes, write_atomic

FACTS_FILE = "facts"
REPORT_FILE = "reported"
LIMIT = 4096

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    _Values = TypeVar("_Values", "Facts", "Report")


class Facts:
    """What the maintainer knew of a session. ``tokens`` is the occupancy, ``mark`` where the harness compacts, ``window`` the
    whole window and ``size`` what of it is usable (0 where unknown); ``notes`` and ``pins`` are counts; ``observed`` is when the observer
    worked last (milliseconds, 0 for never) and ``next_in`` after how many tokens it will again; ``delivery`` says in a few
    words what became of the last block."""

    __slots__ = ("delivery", "mark", "next_in", "notes", "observed", "pins", "size", "tokens", "window")

    def __init__(self) -> None:
        self.tokens = self.mark = self.window = self.size = self.notes = self.pins = self.observed = self.next_in = 0
        self.delivery = ""


class Report:
    """What the harness itself said of a session's window: ``model``, its ``size`` and the ``tokens`` of the last request
    with its answer, 0 where it said nothing."""

    __slots__ = ("model", "size", "tokens")

    def __init__(self) -> None:
        self.size = self.tokens = 0
        self.model = ""


def read_facts(folder: str) -> Facts | None:
    """What was left of a session; None where nothing was."""
    return _read(os.path.join(folder, FACTS_FILE), Facts())


def write_facts(folder: str, facts: Facts) -> None:
    """Leave what is known of a session."""
    _write(os.path.join(folder, FACTS_FILE), facts)


def read_report(folder: str) -> Report | None:
    """What the harness reported of a session; None where it did not."""
    return _read(os.path.join(folder, REPORT_FILE), Report())


def write_report(folder: str, report: Report) -> None:
    """Keep what the harness reported. A file that says so already is left alone."""
    path = os.path.join(folder, REPORT_FILE)
    if read_bytes(path, LIMIT) != _form(report):
        _write(path, report)


def _write(path: str, values: Facts | Report) -> None:
    write_atomic(path, _form(values), durable=False)


def _form(values: Facts | Report) -> bytes:
    lines = (f"{name} {getattr(values, name)}\n" for name in values.__slots__)
    return "".join(lines).encode("utf-8", "replace")


def _read(path: str, values: _Values) -> _Values | None:
    data = read_bytes(path, LIMIT)
    if not data:
        return None
    for line in data.decode("utf-8", "replace").split("\n"):
        name, _, value = line.partition(" ")
        if name not in values.__slots__:
            continue
        if isinstance(getattr(values, name), str):
            setattr(values, name, value)
        elif value.isdigit() and len(value) < 16:
            setattr(values, name, int(value))
    return values
