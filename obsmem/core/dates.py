"""Dates as people say them, in words and options: "yesterday", "last Tuesday", "3 days ago", "2026-03-01".

Invariant: nothing here asks the machine for its time or zone: now and the clock are given. A span is half open, in
milliseconds since the epoch; what is no date is None, and never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

from obsmem.core import late
from obsmem.core.clock import Clock, read_minute
from obsmem.core.tuples import NamedTuple

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
)  # fmt: skip
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_UNITS = {"minute": 60, "min": 60, "hour": 3600, "h": 3600, "day": 86_400, "d": 86_400, "week": 604_800, "w": 604_800}

_DAY = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in DAYS)
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
_COUNT = r"\d{1,4}|" + "|".join(_NUMBERS)
_ISO = late.pattern(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::\d{2})?(?:Z)?)?\Z")
_MONTH_ONLY = late.pattern(r"(\d{4})-(\d{2})\Z")
_AGO = late.pattern(rf"({_COUNT}) ?(minutes?|mins?|hours?|h|days?|d|weeks?|w|months?|years?)(?: ago)?\Z")
_LAST = late.pattern(rf"(?:(last|this|on|past) )?({_DAY})\Z")
_NAMED = late.pattern(rf"(?:({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?|(\d{{1,2}})\.? ({_MONTH}))(?:,? (\d{{4}}))?\Z")
_CLOCK_TIME = late.pattern(r"(\d{1,2}):(\d{2})\Z")
_IN_WORDS = late.pattern(
    rf"\b(?:since |after |before |until |on )?(?:yesterday|today|(?:last|this) (?:{_DAY}|week|month|year)"
    rf"|(?:{_COUNT}) (?:minutes?|hours?|days?|weeks?|months?|years?) ago|\d{{4}}-\d{{2}}-\d{{2}})\b",
    re.IGNORECASE,
)

_HINTS = ("yesterday", "today", "last ", "this ", " ago", "-")  # of which whatever _IN_WORDS matches holds one


class Span(NamedTuple):
    """From ``start`` up to, but not with, ``end``."""

    start: int
    end: int


def read_date(text: str, now: int, clock: Clock) -> Span | None:
    """The span that a date names, as ``clock`` shows time; None where the text is none. A moment (``3 hours ago``,
    ``14:05``) is a span of one minute."""
    words = " ".join(text.strip().lower().split())
    today = _day_of(now, clock)
    if today is None or not words:
        return None
    for read in (_read_iso, _read_plain, _read_ago, _read_weekday, _read_named):
        try:
            found = read(words, today, now, clock)
        except (ValueError, OverflowError):  # 2026-02-31, 9999 years ago
            found = None
        if found is not None:
            return found
    return None


def take_date(text: str, now: int, clock: Clock) -> tuple[str, int, int]:
    """(the question without its date, since, until) where its words hold one: "the crash last Tuesday". 0 for no bound.
    What stands in quotation marks is not looked at; a question that is nothing but a date keeps its words."""
    folded = text.lower()
    if not any(hint in folded for hint in _HINTS):
        return text, 0, 0
    quoted = [match.span() for match in re.finditer(r'"[^"]*"?', text)]
    for match in _IN_WORDS.finditer(text):
        if any(start <= match.start() < end for start, end in quoted):
            continue
        word, _, rest = match.group().partition(" ")
        relation = word.lower() if word.lower() in ("since", "after", "before", "until", "on") else ""
        span = read_date(rest if relation else match.group(), now, clock)
        left = f"{text[: match.start()]} {text[match.end() :]}".strip()
        if span is None or not any(map(str.isalnum, left)):
            continue
        since = {"before": 0, "until": 0, "after": span.end}.get(relation, span.start)
        until = {"since": 0, "after": 0, "before": span.start}.get(relation, span.end)
        if not relation and match.group().lower().endswith(" ago"):
            since, until = _whole_day(span.start, clock)
        return " ".join(left.split()), since, until
    return text, 0, 0


def _day_of(at: int, clock: Clock) -> date | None:
    try:
        return date.fromisoformat(clock(at)[:10])
    except ValueError:
        return None


def _at(day: date, clock: Clock, hour: int = 0, minute: int = 0) -> int:
    return read_minute(f"{day.isoformat()} {hour:02d}:{minute:02d}", clock)


def _days(first: date, end: date, clock: Clock) -> Span:
    return Span(_at(first, clock), _at(end, clock))


def _whole_day(at: int, clock: Clock) -> tuple[int, int]:
    day = _day_of(at, clock) or date(1970, 1, 1)
    return tuple(_days(day, day + timedelta(days=1), clock))  # type: ignore[return-value]


def _read_iso(words: str, today: date, now: int, clock: Clock) -> Span | None:
    match = _ISO.match(words.upper())
    if match is not None:
        day = date(*map(int, match.groups()[:3]))
        if match.group(4) is None:
            return _days(day, day + timedelta(days=1), clock)
        start = _at(day, clock, *_checked(int(match.group(4)), int(match.group(5))))
        return Span(start, start + 60_000)
    match = _MONTH_ONLY.match(words)
    if match is None:
        return None
    first = date(int(match.group(1)), int(match.group(2)), 1)
    return _days(first, _next_month(first), clock)


def _checked(hour: int, minute: int) -> tuple[int, int]:
    datetime(2000, 1, 1, hour, minute)  # raises ValueError for 25:00
    return hour, minute


def _next_month(first: date) -> date:
    return (first.replace(day=1) + timedelta(days=32)).replace(day=1)


def _read_plain(words: str, today: date, now: int, clock: Clock) -> Span | None:
    day, monday = timedelta(days=1), today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    before = (month - day).replace(day=1)
    spans: dict[str, Callable[[], Span]] = {
        "now": lambda: Span(now, now + 60_000),
        "today": lambda: _days(today, today + day, clock),
        "yesterday": lambda: _days(today - day, today, clock),
        "this week": lambda: _days(monday, monday + 7 * day, clock),
        "last week": lambda: _days(monday - 7 * day, monday, clock),
        "this month": lambda: _days(month, _next_month(month), clock),
        "last month": lambda: _days(before, month, clock),
        "this year": lambda: _days(date(today.year, 1, 1), date(today.year + 1, 1, 1), clock),
        "last year": lambda: _days(date(today.year - 1, 1, 1), date(today.year, 1, 1), clock),
    }
    if words in spans:
        return spans[words]()
    match = _CLOCK_TIME.match(words)
    if match is None:
        return None
    start = _at(today, clock, *_checked(int(match.group(1)), int(match.group(2))))
    return Span(start, start + 60_000)


def _read_ago(words: str, today: date, now: int, clock: Clock) -> Span | None:
    match = _AGO.match(words)
    if match is None:
        return None
    count = int(match.group(1)) if match.group(1).isdigit() else _NUMBERS[match.group(1)]
    unit = match.group(2)
    unit = unit[:-1] if len(unit) > 1 and unit.endswith("s") else unit
    if unit in ("month", "year"):
        months = today.year * 12 + today.month - 1 - count * (12 if unit == "year" else 1)
        first = date(months // 12, months % 12 + 1, 1)
        day = first.replace(day=min(today.day, (_next_month(first) - timedelta(days=1)).day))
        return _days(day, day + timedelta(days=1), clock)
    if unit in ("day", "d", "week", "w"):
        day = today - timedelta(days=count * (7 if unit in ("week", "w") else 1))
        return _days(day, day + timedelta(days=1), clock)
    start = now - count * _UNITS[unit] * 1000
    return Span(start, start + 60_000)


def _read_weekday(words: str, today: date, now: int, clock: Clock) -> Span | None:
    """The newest such day that is over ("last") or is not in the future."""
    match = _LAST.match(words)
    if match is None:
        return None
    wanted = next(index for index, name in enumerate(DAYS) if name.startswith(match.group(2)[:3]))
    back = (today.weekday() - wanted) % 7
    if back == 0 and match.group(1) in ("last", "past"):
        back = 7
    day = today - timedelta(days=back)
    return _days(day, day + timedelta(days=1), clock)


def _read_named(words: str, today: date, now: int, clock: Clock) -> Span | None:
    """``march 3``, ``3 march 2026``; without a year the newest one that is not in the future."""
    match = _NAMED.match(words)
    if match is None:
        return None
    name, number = match.group(1) or match.group(4), int(match.group(2) or match.group(3))
    month = next(index for index, one in enumerate(MONTHS, 1) if one.startswith(name[:3]))
    day = date(int(match.group(5) or today.year), month, number)
    if match.group(5) is None and day > today:
        day = day.replace(year=today.year - 1)
    return _days(day, day + timedelta(days=1), clock)
