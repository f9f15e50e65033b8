"""The clock of this machine's user."""

from __future__ import annotations

import time


def local_clock(at: int) -> str:
    """A time as this machine's user reads it: ``YYYY-MM-DD HH:MM`` in the local zone."""
    if at <= 0:
        return "????-??-?? ??:??"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


def local_wall(at: int) -> int:
    """The milliseconds at which a clock in UTC would show what this machine's user reads at a time; 0 for 0."""
    return at + (time.localtime(at / 1000).tm_gmtoff or 0) * 1000 if at > 0 else 0
