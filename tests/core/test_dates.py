"""Dates as people say them, reckoned from a given moment as a given clock shows it."""

from __future__ import annotations

import pytest

from obsmem.core.clock import read_minute, utc_minute
from obsmem.core.dates import read_date, take_date

NOW = read_minute("2026-03-05 14:30")  # a Thursday


def shown(text: str) -> tuple[str, str] | None:
    """The span of a date as its two ends read."""
    span = read_date(text, NOW, utc_minute)
    return None if span is None else (utc_minute(span.start), utc_minute(span.end))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", "2026-03-04 00:00", "2026-03-05 00:00"),
        ("Last Tuesday", "2026-03-03 00:00", "2026-03-04 00:00"),
        ("thursday", "2026-03-05 00:00", "2026-03-06 00:00"),
        ("last thursday", "2026-02-26 00:00", "2026-02-27 00:00"),
        ("3 days ago", "2026-03-02 00:00", "2026-03-03 00:00"),
        ("a week ago", "2026-02-26 00:00", "2026-02-27 00:00"),
        ("1 month ago", "2026-02-05 00:00", "2026-02-06 00:00"),
        ("2h", "2026-03-05 12:30", "2026-03-05 12:31"),
        ("2026-03-01", "2026-03-01 00:00", "2026-03-02 00:00"),
        ("2026-03-01 10:05", "2026-03-01 10:05", "2026-03-01 10:06"),
        ("2026-02", "2026-02-01 00:00", "2026-03-01 00:00"),
        ("12 december", "2025-12-12 00:00", "2025-12-13 00:00"),
        ("March 3rd, 2024", "2024-03-03 00:00", "2024-03-04 00:00"),
        ("last week", "2026-02-23 00:00", "2026-03-02 00:00"),
        ("14:05", "2026-03-05 14:05", "2026-03-05 14:06"),
    ],
)
def test_a_date_is_a_span(text: str, start: str, end: str) -> None:
    assert shown(text) == (start, end)


@pytest.mark.parametrize("text", ["", "foo", "2026-02-31", "9999 years ago", "25:00", "the 3rd", "ago", "-1 days ago"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert shown(text) is None


def test_another_zone_has_other_days() -> None:
    def tokyo(at: int) -> str:
        return utc_minute(at + 9 * 3_600_000)

    span = read_date("yesterday", read_minute("2026-03-05 20:00"), tokyo)  # there it is the 6th already
    assert span is not None and tokyo(span.start) == "2026-03-05 00:00"
    assert utc_minute(span.start) == "2026-03-04 15:00"


def test_a_date_among_words_becomes_bounds() -> None:
    def taken(text: str) -> tuple[str, str, str]:
        words, since, until = take_date(text, NOW, utc_minute)
        return words, utc_minute(since), utc_minute(until)

    none = utc_minute(0)
    assert taken("the crash last Tuesday") == ("the crash", "2026-03-03 00:00", "2026-03-04 00:00")
    assert taken("what broke since yesterday") == ("what broke", "2026-03-04 00:00", none)
    assert taken("config before 2026-03-01") == ("config", none, "2026-03-01 00:00")
    assert taken('"last week" in the report') == ('"last week" in the report', none, none)
    assert taken("yesterday") == ("yesterday", none, none), "a question must keep words"
    assert taken("failed 2026-02-31") == ("failed 2026-02-31", none, none)
