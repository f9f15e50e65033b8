"""How data and logs are shortened: long arrays of alike objects, log lines that say the same again.

Invariant: of an array the first objects and the last stay byte for byte, and every one that says of itself that it failed;
of a log every line of a warning or worse.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from obsmem.core import late
from obsmem.core.reduce_rule import Rule, Words
from obsmem.core.reduce_sheet import Sheet, error_lines, warning_lines

OBJECTS_FOLDED = 6  # alike objects in an array
OBJECTS_KEPT = (2, 1)
VALUES_FOLDED = 40  # plain values in an array
VALUES_KEPT = (8, 2)
STRING_LIMIT = 2_000
STRING_KEPT = (800, 200)
JSON_LIMIT = 8 << 20  # characters
KEYS_SHOWN = 8
LOG_SHARE = 0.5  # of the lines must begin with a time
LOG_LINES = 20
LOG_REPEATS = 4
LOG_KEPT = (2, 1)

_OPENS = late.pattern(r"^[ \t]*[\[{]", 8)  # re.MULTILINE
_SPACE = late.pattern(r"[ \t\r\n]*")
_FAILED_VALUE = late.pattern(
    r'"(?:status|state|conclusion|level|severity|result|outcome|type|bucket|log_?level)"\s*:\s*"[^"]*(?:fail|error|fatal|crit|warn|cancel|timed|abort|denied|broken|panic)'
    r'|"(?:errors?|failures?|exception|stderr)"\s*:\s*(?:"[^"]|[1-9]|true|\[\s*[^\s\]]|\{\s*[^\s}])|"(?:ok|success|passed)"\s*:\s*false',
    2,
)
_TIME = late.pattern(
    r"(?:[^\t\n]{1,80}\t[^\t\n]{1,80}\t)?[\[(]?(?:\ufeff?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d"
    r"|\d\d/\w{3}/\d{4}[: ]\d\d:\d\d|[IWEF]\d{4} \d\d:)"
)
_VARYING = late.pattern(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|0x[0-9a-fA-F]+|\b(?=[a-f]*\d)[0-9a-f]{7,64}\b|\d+(?:[.,:]\d+)*"
)


class _Element(NamedTuple):
    """A value of an array with the places of its first character and of that behind its last one."""

    value: Any
    start: int
    end: int


def _fold_json(sheet: Sheet, words: Words) -> None:
    text = "".join(sheet.lines)
    if len(text) > JSON_LIMIT:
        return
    if _begins(text) and _whole(text):
        _Folding(sheet, text).fold_value(_SPACE.match(text).end())  # type: ignore[union-attr]
        return
    offset = 0
    records: list[int] = []
    for index, line in enumerate(sheet.lines):
        if line[:1] in "{[" and _whole(line):
            records.append(index)
            if len(line) > STRING_LIMIT:
                _Folding(sheet, text).fold_value(offset)
        offset += len(line)
    _fold_records(sheet, records)


def _begins(text: str) -> bool:
    return text[_SPACE.match(text).end() :][:1] in ("[", "{")  # type: ignore[union-attr]


def _whole(text: str) -> bool:
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def is_data(output: str) -> bool:
    """True if an output is nothing but JSON: one value, or one on each line."""
    if not _begins(output):
        return False
    if len(output) <= JSON_LIMIT and _whole(output):
        return True
    lines = output.strip().split("\n")
    return all(line[:1] in ("{", "[") for line in lines) and _whole(lines[0]) and _whole(lines[-1])


def _fold_records(sheet: Sheet, records: list[int]) -> None:
    """Fold alike objects of which each has a line of its own."""
    import json

    objects = [(index, value) for index in records if isinstance(value := json.loads(sheet.lines[index]), dict)]
    if len(objects) < OBJECTS_FOLDED or not _alike([value for _, value in objects]):
        return
    first, last = OBJECTS_KEPT
    for index, value in objects[first:-last]:
        if not _FAILED_VALUE.search(sheet.lines[index]):
            sheet.fold(index, f"objects like these with {_keys(value)}")


def _alike(values: list[dict[str, Any]]) -> bool:
    usual = set(values[0])
    return bool(usual) and all(2 * len(usual & set(value)) >= len(usual | set(value)) for value in values)


def _keys(value: dict[str, Any]) -> str:
    keys = [key for key in value if key.isidentifier()][:KEYS_SHOWN]
    rest = len(value) - len(keys)
    return ", ".join(keys) + (f" and {rest} more keys" if rest else "")


class _Folding:
    """Walks over one JSON text by the places of its values, and folds on the sheet what it finds alike."""

    def __init__(self, sheet: Sheet, text: str) -> None:
        import json

        self._sheet, self._text = sheet, text
        self._decode = json.JSONDecoder().raw_decode
        self._starts: list[int] = []
        at = 0
        for line in sheet.lines:
            self._starts.append(at)
            at += len(line)

    def fold_value(self, at: int) -> None:
        """Fold what is long in the value that begins at a character."""
        sign = self._text[at]
        if sign == "[":
            self._fold_array([_Element(*one) for one in self._elements(at + 1)])
        elif sign == "{":
            for _, start, end in self._members(at + 1):
                self._fold_inner(start, end)

    def _fold_inner(self, start: int, end: int) -> None:
        sign = self._text[start]
        if sign in "[{" and end - start > 200:
            self.fold_value(start)
        elif sign == '"' and end - start > STRING_LIMIT:
            head, tail = STRING_KEPT
            self._cut(start + head, end - tail, f"{end - tail - start - head:,} characters")

    def _elements(self, at: int) -> Iterator[tuple[Any, int, int]]:
        at = self._skip(at)
        while self._text[at] != "]":
            value, end = self._decode(self._text, at)
            yield value, at, end
            at = self._skip(end)
            if self._text[at] == ",":
                at = self._skip(at + 1)

    def _members(self, at: int) -> Iterator[tuple[str, int, int]]:
        at = self._skip(at)
        while self._text[at] != "}":
            key, end = self._decode(self._text, at)
            start = self._skip(self._skip(end) + 1)
            _, end = self._decode(self._text, start)
            yield key, start, end
            at = self._skip(end)
            if self._text[at] == ",":
                at = self._skip(at + 1)

    def _skip(self, at: int) -> int:
        return _SPACE.match(self._text, at).end()  # type: ignore[union-attr]

    def _fold_array(self, elements: list[_Element]) -> None:
        values = [element.value for element in elements]
        objects = len(values) >= OBJECTS_FOLDED and all(isinstance(value, dict) for value in values)
        plain = len(values) >= VALUES_FOLDED and not any(isinstance(value, (dict, list)) for value in values)
        label, gone = "", range(0)
        if objects and _alike(values):
            label = f"objects like these with {_keys(values[0])}"
            gone = range(OBJECTS_KEPT[0], len(values) - OBJECTS_KEPT[1])
        elif plain:
            label, gone = "more values", range(VALUES_KEPT[0], len(values) - VALUES_KEPT[1])
        run: list[_Element] = []
        for number, element in enumerate(elements):
            if number in gone and not _FAILED_VALUE.search(self._text, element.start, element.end):
                run.append(element)
                continue
            self._fold_run(run, label)
            run = []
            self._fold_inner(element.start, element.end)
        self._fold_run(run, label)

    def _fold_run(self, run: list[_Element], label: str) -> None:
        """Fold neighbours: whole lines where they have lines of their own, else the characters between."""
        if not run:
            return
        first, last = self._line_of(run[0].start), self._line_of(run[-1].end - 1)
        before = self._text[self._starts[first] : run[0].start]
        behind = self._sheet.lines[last][run[-1].end - self._starts[last] :]
        if first != last or not before.strip():
            if not before.strip() and behind.strip() in (",", ""):
                for number, index in enumerate(range(first, last + 1)):
                    self._sheet.fold(index, label, len(run) if not number else 0)
            return
        self._cut(run[0].start, run[-1].end, f"{len(run):,} {label}")

    def _cut(self, start: int, end: int, mark: str) -> None:
        index = self._line_of(start)
        if index == self._line_of(end - 1):
            offset = self._starts[index]
            self._sheet.cut(index, start - offset, end - offset, mark)

    def _line_of(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1


def _fold_log(sheet: Sheet, words: Words) -> None:
    if not is_log(sheet):
        return
    groups: dict[str, list[int]] = {}
    telling = {*error_lines(sheet.bare), *warning_lines(sheet.bare)}
    for index, line in enumerate(sheet.bare):
        if line.strip() and index not in telling:
            groups.setdefault(_VARYING.sub("#", line), []).append(index)
    first, last = LOG_KEPT
    for indices in groups.values():
        if len(indices) >= LOG_REPEATS + first + last:
            for index in indices[first:-last]:
                sheet.fold(index, "lines that differ from others here in numbers")


def is_log(sheet: Sheet) -> bool:
    """True if most lines begin with a time."""
    timed = sum(1 for line in sheet.bare if _TIME.match(line))
    return timed >= max(LOG_LINES, LOG_SHARE * sum(1 for line in sheet.bare if line))


RULES = (
    Rule(
        "json",
        (
            "gh api",
            "gh",
            "curl",
            "jq",
            "http",
            "wget",
            "kubectl",
            "aws",
            "gcloud",
            "az",
            "docker inspect",
            "npm ls",
            "cargo metadata",
        ),
        "of 6 and more alike objects in an array all but the first 2, the last and those that failed; the middle of long strings",
        _fold_json,
        _OPENS,
        talk=False,
    ),
    Rule(
        "logs",
        ("*",),
        "of output whose lines begin with a time those that repeat others but for numbers, warnings and worse excepted",
        _fold_log,
    ),
)
