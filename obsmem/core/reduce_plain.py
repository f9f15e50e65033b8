"""How any program's output is shortened: what repeats itself, bars of progress, screens drawn anew, very long lines.

Invariant: only neighbours are compared, so that what is folded is told by what stands beside the mark.
"""

from __future__ import annotations

from obsmem.core import late
from obsmem.core.reduce_rule import Rule, Words, fold_middle
from obsmem.core.reduce_sheet import Sheet

EQUAL_FOLDED = 3  # equal lines in a row
ALIKE_FOLDED = 10  # lines in a row that differ in numbers only
BLANK_FOLDED = 3
SCREENS_FOLDED = 3
LONG_LINE = 4_000
LONG_LINE_KEPT = (1_500, 500)  # characters

_NUMBERS = late.pattern(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,64}\b|\d+(?:[.,:]\d+)*")
_LETTERS = late.pattern(r"[^\W\d_]")
_SCREEN = late.pattern(r"Refreshing run status every \d+|Every [\d.]+s: ")


def _fold_repeats(sheet: Sheet, words: Words) -> None:
    for index, line in enumerate(sheet.lines):
        if line.endswith("\r") and index + 1 < len(sheet.lines):
            sheet.fold(index, "overwritten lines")
    _fold_runs(sheet, [line.strip() for line in sheet.said], EQUAL_FOLDED, (1, 0), "lines equal to that above")
    shapes = [_shape(line) for line in sheet.said]
    _fold_runs(sheet, shapes, ALIKE_FOLDED, (2, 1), "lines that differ from these in numbers")


def _shape(line: str) -> str:
    """A line without its numbers; '' where too little else is in it to tell that it is talk and not data."""
    shape = _NUMBERS.sub("#", line).strip()
    return shape if len(_LETTERS.findall(shape)) >= 12 else ""


def _fold_runs(sheet: Sheet, keys: list[str], least: int, kept: tuple[int, int], label: str) -> None:
    start = 0
    for index in range(1, len(keys) + 1):
        if index < len(keys) and keys[index] == keys[start]:
            continue
        if index - start >= (least if keys[start] else BLANK_FOLDED):
            if keys[start]:
                fold_middle(sheet, range(start, index), *kept, label)
            elif label.startswith("lines equal"):
                fold_middle(sheet, range(start, index), 1, 0, "blank lines")
        start = index


def _fold_screens(sheet: Sheet, words: Words) -> None:
    starts = [index for index, line in enumerate(sheet.bare) if _SCREEN.match(line)]
    if len(starts) >= SCREENS_FOLDED:
        for index in range(starts[0], starts[-1]):
            sheet.fold(index, "screens drawn over", index in starts)


def _cut_long_lines(sheet: Sheet, words: Words) -> None:
    head, tail = LONG_LINE_KEPT
    for index, line in enumerate(sheet.lines):
        end = len(line.rstrip("\r\n"))
        if end > LONG_LINE and sheet.is_kept(index) and line[0] not in "[{":  # data is cut where its values end
            sheet.cut(index, head, end - tail, f"{end - tail - head:,} characters")


RULES = (
    Rule(
        "screens",
        ("gh run watch", "watch"),
        "all but the last of screens that are drawn again and again",
        _fold_screens,
        _SCREEN,
    ),
    Rule(
        "repeats",
        ("*",),
        "3 and more equal lines in a row, 10 and more that differ in numbers only, blank lines, what was overwritten on the screen",
        _fold_repeats,
    ),
    Rule("long-lines", ("*",), "the middle of lines above 4,000 characters", _cut_long_lines),
)
