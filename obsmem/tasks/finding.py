"""What one check of an installation found: a name, how bad it is, what it is, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

GOOD, WARNING, BROKEN = "good", "warning", "broken"


class Check(NamedTuple):
    """``level`` is GOOD, WARNING or BROKEN; ``remedy`` is '' where nothing is to be done."""

    name: str
    level: str
    what: str
    remedy: str = ""
