"""Times go to minutes and back through whatever clock the user has."""

from datetime import datetime, timedelta, timezone

import pytest

from obsmem.core.clock import UNKNOWN_TIME, read_minute, utc_minute


def test_a_minute_reads_back() -> None:
    assert utc_minute(read_minute("2026-05-02 10:30")) == "2026-05-02 10:30"


def test_another_zone_is_found_through_its_clock() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))

    def clock(at: int) -> str:
        return datetime.fromtimestamp(at / 1000, zone).strftime("%Y-%m-%d %H:%M")

    assert clock(read_minute("2026-05-02 10:30", clock)) == "2026-05-02 10:30"
    assert read_minute("2026-05-02 10:30", clock) == read_minute("2026-05-02 05:00")


@pytest.mark.parametrize("text", ["", "soon", "2026-13-02 10:30", "2026-05-02", "10:30", "0000-00-00 00:00"])
def test_what_is_no_time_is_zero(text: str) -> None:
    assert read_minute(text) == 0


@pytest.mark.parametrize("at", [0, -5, 10**18])
def test_no_time_shows_question_marks(at: int) -> None:
    assert utc_minute(at) == UNKNOWN_TIME
