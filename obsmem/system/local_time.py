"""The clock of this machine's user."""

from __future__ import annotations

import time


def local_clock(at: int) -> str:
    """A time as this machine's user reads it: ``YYYY-MM-DD HH:MM`` in the local zone."""
    if at <= 0:
        return "????-??-?? ??:??"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))
