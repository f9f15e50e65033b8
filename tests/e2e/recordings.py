"""Sessions that real programs wrote, made fit for ``fixtures/demo``.

Owns what is changed in them: paths and ids of the run; its times, which are moved to one day and stretched, each turn
beginning ``TURN_MINUTES`` after the one before and each moment of it ``STEP_MS`` after the moment before; durations,
which are 12 ms; and the programs' own long prompts, which are cut. Invariants: records and moments keep their order,
records their number and keys; what a person, the model or a tool said is kept whole; the same story gives the same bytes
wherever a program does not choose at random.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from .payloads import Scrubber

TURN_MINUTES, STEP_MS = 8, 1_500
LONGEST = 240  # characters of a program's own prompt
MARGIN_MS = 60_000

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_PROMPTS = {"skill_listing", "agent_listing_delta", "world_state"}  # records that hold nothing but such prompts
_DURATIONS = {"durationMs": 12, "nanos": 12_000_000, "time_to_first_token_ms": 12, "startup_duration_ms": 12}
_RANDOM = {"slug": "quiet-lighthouse", "process_id": "4711"}
_SAID_DURATIONS = (
    (re.compile(r"\bWall time: [\d.]+ seconds"), "Wall time: 0.012 seconds"),
    (re.compile(r"\b(Ran \d+ tests?) in [\d.]+s\b"), r"\1 in 0.012s"),
    (re.compile(r"\bChunk ID: [0-9a-f]+"), "Chunk ID: c0ffee"),
)


def publish(records: list[Any], scrubber: Scrubber, starts: Sequence[float], first: datetime) -> list[Any]:
    """The records as they may be shown. ``starts`` are the real times at which the turns began, ``first`` is that of the
    first turn from now on."""
    days = {datetime.fromtimestamp(start, zone).date().isoformat() for start in starts for zone in (None, timezone.utc)}
    today = re.compile("|".join(sorted(days)))
    moved = _Times(starts, first).move(records)
    return [_tidied(scrubber.scrub(record), lambda text: today.sub(first.date().isoformat(), text)) for record in moved]


def _tidied(value: Any, dated: Callable[[str], str], *, is_prompt: bool = False) -> Any:
    if isinstance(value, dict):
        is_prompt = is_prompt or value.get("type") in _PROMPTS or value.get("role") == "developer"
        fixed = {**_DURATIONS, **_RANDOM}
        return {
            key: fixed[key] if key in fixed else _tidied(item, dated, is_prompt=is_prompt or key == "base_instructions")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_tidied(item, dated, is_prompt=is_prompt) for item in value]
    if not isinstance(value, str):
        return value
    for pattern, public in _SAID_DURATIONS:
        value = pattern.sub(public, value)
    value = dated(value)
    return value[:LONGEST] + " […]" if is_prompt and len(value) > LONGEST else value


class _Times:
    """Moves every moment that stands in a JSON value by itself: text in ISO 8601, or seconds or milliseconds since 1970."""

    def __init__(self, starts: Sequence[float], first: datetime) -> None:
        self._starts = [start * 1_000 for start in starts]
        self._first = first.timestamp() * 1_000
        self._seen: list[float] = []
        self._moved: list[float] = []
        self._last = self._first

    def move(self, records: list[Any]) -> list[Any]:
        """The same records, moved. Which moments there are is seen first, for a turn's are spread by their order."""
        for record in records:
            self._each(record, lambda at: self._seen.append(at) or at)
        self._moved = [0.0] * len(self._seen)
        ranks: dict[int, int] = {}
        for index in sorted(range(len(self._seen)), key=lambda one: (self._seen[one], one)):
            turn = max(bisect_right(self._starts, self._seen[index]) - 1, 0)
            ranks[turn] = ranks.get(turn, -1) + 1
            self._moved[index] = self._first + turn * TURN_MINUTES * 60_000 + ranks[turn] * STEP_MS
        following = iter(self._moved)

        def moved(at: float) -> float:
            self._last = next(following)
            return self._last

        return [self._each(record, moved) for record in records]

    def _each(self, value: Any, change: Callable[[float], float]) -> Any:
        """Change each moment. A whole second belongs to the moment before it, which is exact."""
        if isinstance(value, dict):
            return {key: self._each(item, change) for key, item in value.items()}
        if isinstance(value, list):
            return [self._each(item, change) for item in value]
        if isinstance(value, str) and (found := _MOMENT.fullmatch(value)):
            at = datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1_000
            if self._is_of_the_run(at):
                moved = datetime.fromtimestamp(change(at) / 1_000, timezone.utc)
                return moved.isoformat(timespec="milliseconds" if found[1] else "seconds").replace("+00:00", "Z")
        if isinstance(value, int) and self._is_of_the_run(value):
            return int(change(value))
        if isinstance(value, float) and self._is_of_the_run(value * 1_000):
            return change(value * 1_000) / 1_000
        if isinstance(value, int) and self._is_of_the_run(value * 1_000):
            return int(self._last / 1_000)
        return value

    def _is_of_the_run(self, at: float) -> bool:
        return self._starts[0] - MARGIN_MS < at < self._starts[-1] + 5 * MARGIN_MS
