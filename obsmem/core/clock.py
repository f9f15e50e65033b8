"""Times as people read them, without asking the machine for its zone.

Invariant: a clock is a function from milliseconds since the epoch to ``YYYY-MM-DD HH:MM``; whoever calls a pass gives
the one of the user's zone. ``utc_minute`` is the clock where nobody does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from obsmem.core import late

Clock = Callable[[int], str]

UNKNOWN_TIME = "????-??-?? ??:??"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MINUTE = late.pattern(r"\s*(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)")


def utc_minute(at: int) -> str:
    """Write milliseconds since the epoch as ``YYYY-MM-DD HH:MM`` in UTC; question marks where there is no time."""
    if at <= 0:
        return UNKNOWN_TIME
    try:
        return (_EPOCH + timedelta(milliseconds=at)).strftime("%Y-%m-%d %H:%M")
    except OverflowError:
        return UNKNOWN_TIME


def read_minute(text: str, clock: Clock = utc_minute) -> int:
    """The milliseconds at which ``clock`` shows this minute; 0 where the text is no such time.

    The zone is not known, so the clock itself is asked: how far is it from UTC at about that time?
    """
    as_utc = _read_utc(text)
    at = as_utc
    for _ in range(2):  # twice, for the hours in which a zone changes
        shown = _read_utc(clock(at))
        if not as_utc or not shown:
            return 0
        at += as_utc - shown
    return at


def _read_utc(text: str) -> int:
    match = _MINUTE.match(text)
    if match is None:
        return 0
    try:
        moment = datetime(*map(int, match.groups()), tzinfo=timezone.utc)  # type: ignore[arg-type, misc]
    except ValueError:
        return 0
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
