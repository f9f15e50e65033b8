"""How results are written for people: sizes, ages, tables, one progress line. Nothing here decides anything."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core.clean import escape_unseen, strip_controls
from obsmem.core.mask import mask, mask_all


def say(text: str = "") -> None:
    """Print a line for a person. Control characters and secrets never reach the terminal through it."""
    print(mask(strip_controls(text)))


def warn(text: str) -> None:
    """Print a line beside the results: what went wrong, what was left out. Programs that read the results do not see it."""
    print(mask(strip_controls(text)), file=sys.stderr)


def agreed(question: str) -> bool:
    """Ask a person; False where nobody sits at the other end."""
    try:
        return sys.stdin.isatty() and input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def make_streams_safe() -> None:
    """Let no character that a terminal cannot show end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def say_json(value: Any, *, raw: bool = False) -> None:
    """Print a value for a program, as one JSON document. A person may look at it: what a terminal would obey is escaped,
    and secrets are masked in every string, unless the bytes themselves were asked for (``raw``)."""
    shown = value if raw else mask_all(value, mask)
    sys.stdout.write(escape_unseen(json.dumps(shown, ensure_ascii=False, indent=2, default=str)) + "\n")


def size(count: int) -> str:
    """Bytes as people read them: ``812 B``, ``4.1 MB``."""
    number = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{count} B"


def age(at: int) -> str:
    """How long ago a time (milliseconds) was: ``3 min``, ``2 h``, ``5 d``; 'never' for 0."""
    if at <= 0:
        return "never"
    seconds = max(0, int(time.time() - at / 1000))
    for limit, unit, divisor in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds // divisor} {unit}"
    return f"{seconds // 86_400} d"


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> list[str]:
    """Lines of a table whose columns are as wide as they must be."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def many(count: int, noun: str) -> str:
    """``1 part``, ``2 parts``, ``0 entries``, ``4 days``, ``3 stretches``."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}es" if noun.endswith("ch") else f"{count} {noun}s"


def counts(values: Mapping[str, int]) -> str:
    """``name 12 · other 3``, the most frequent first."""
    return " · ".join(f"{name} {count}" for name, count in sorted(values.items(), key=lambda item: -item[1]))


def short(value: Any) -> str:
    """A number or a value of numbers in a line: ``1,234``, ``yes``, ``(name 1, name 2)``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {short(one)}" for name, one in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(short, value)) + ")"
    return str(value)


class Bar:
    """One line on standard error that shows how far long work is; nothing where nobody watches."""

    def __init__(self, title: str, *, on: bool = True) -> None:
        self.title = title
        self.on = on and sys.stderr.isatty()
        self.drawn = 0.0

    def show(self, done: int, total: int) -> None:
        """Draw the bar, at most ten times a second."""
        now = time.monotonic()
        if not self.on or now - self.drawn < 0.1:
            return
        self.drawn = now
        share = min(1.0, done / total) if total else 0.0
        filled = int(share * 30)
        sys.stderr.write(f"\r{self.title[:40]:40} [{'#' * filled}{'.' * (30 - filled)}] {size(done)} of {size(total)}")
        sys.stderr.flush()

    def end(self) -> None:
        """Wipe the line."""
        if self.on and self.drawn:
            sys.stderr.write("\r" + " " * 110 + "\r")
            sys.stderr.flush()
