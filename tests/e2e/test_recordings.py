"""What is changed in a recorded session before it is shown. Needs no program."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import recordings
from .payloads import Scrubber
from .world import World

START = datetime(2026, 11, 30, 2, 30, tzinfo=timezone.utc).timestamp()
FIRST = datetime(2026, 3, 2, 8, 11, tzinfo=timezone.utc)


def shown(*records: Any) -> list[Any]:
    """Records of a run of two turns, ten seconds apart, as they may be shown."""
    world = World(Path("/machine/run"), (), 0)
    return recordings.publish(list(records), Scrubber(world), [START, START + 10], FIRST)


def test_moments_keep_their_order_and_a_turn_its_distance() -> None:
    texts = ["2026-11-30T02:30:02.700Z", "2026-11-30T02:30:01.000Z", "2026-11-30T02:30:10.001Z"]
    assert shown(*({"at": text} for text in texts)) == [
        {"at": "2026-03-02T08:11:01.500Z"},
        {"at": "2026-03-02T08:11:00.000Z"},
        {"at": "2026-03-02T08:19:00.000Z"},
    ]


def test_numbers_are_moved_too_and_a_whole_second_stands_beside_the_moment_before_it() -> None:
    at = int(START) * 1_000 + 11_500
    first = int(FIRST.timestamp()) + 8 * 60
    assert shown({"ms": at, "s": at // 1_000}, {"seconds": at / 1_000 + 1}) == [
        {"ms": first * 1_000, "s": first},
        {"seconds": first + 1.5},
    ]


def test_what_is_no_moment_of_the_run_stays_as_it_is() -> None:
    told = {
        "t": 1_772_438_400,
        "said": "at 2026-02-16T00:30:00Z",
        "iso": "2026-02-16T00:30:00Z",
        "count": 3,
        "ok": True,
    }
    assert shown(told) == [told]


def test_a_day_within_a_text_is_the_day_of_the_recording() -> None:
    assert shown({"said": "Today is 2026-11-30."}) == [{"said": "Today is 2026-03-02."}]


def test_prompts_of_a_program_are_cut_and_nothing_that_was_said() -> None:
    long = "x" * 1_000
    cut = "x" * recordings.LONGEST + " […]"
    assert shown({"role": "developer", "content": [{"text": long}]}) == [
        {"role": "developer", "content": [{"text": cut}]}
    ]
    assert shown({"base_instructions": {"text": long}}) == [{"base_instructions": {"text": cut}}]
    assert shown({"role": "user", "content": long}) == [{"role": "user", "content": long}]


def test_durations_and_places_are_those_of_no_run() -> None:
    told = {
        "duration_ms": 871,
        "output": "Wall time: 0.0512 seconds\nRan 4 tests in 0.003s",
        "cwd": "/machine/run/project/a",
    }
    assert shown(told) == [
        {
            "duration_ms": 12,
            "output": "Wall time: 0.012 seconds\nRan 4 tests in 0.012s",
            "cwd": "/home/user/project/a",
        }
    ]
