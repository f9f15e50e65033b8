"""Which records at the start of a fork are the parent's history.

Older releases copy the whole history into the new file, after the parent's ``session_meta``, and stamp it anew within
milliseconds. Newer ones refer to it. Invariant: when in doubt a record is the session's own, since observing a record
twice costs tokens and observing it never loses words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsmem.core import late

# Copied records are written in one go; a pause of this many milliseconds ends them.
PAUSE = 1000
_TIME_ID = late.pattern(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def time_of_id(ident: Any) -> int | None:
    """The milliseconds that a version 7 UUID carries; None for any other id."""
    match = _TIME_ID.match(ident) if isinstance(ident, str) else None
    return int(match.group(1) + match.group(2), 16) if match else None


def turn_of(payload: Mapping[str, Any]) -> Any:
    """The turn id of a record, wherever it stands."""
    turn = payload.get("turn_id")
    if turn is None:
        passed = payload.get("internal_chat_message_metadata_passthrough")
        turn = passed.get("turn_id") if isinstance(passed, dict) else None
    return turn


class CopiedHistory:
    """Follows the copied records until the first that is the session's own."""

    def __init__(self, state: Mapping[str, Any] | None) -> None:
        state = state or {}
        self.active = bool(state)
        self._forked = int(state.get("forked", 0))
        self._last = int(state.get("last", 0))
        self._session = state.get("session")

    def state(self) -> dict[str, Any]:
        """What must be kept; empty once the copy is over."""
        return {"forked": self._forked, "last": self._last, "session": self._session} if self.active else {}

    def begin(self, session_id: str, at: int, started_at: int) -> None:
        """The parent's header was read at ``at``; the session began at ``started_at`` (milliseconds)."""
        self.active = True
        self._session = time_of_id(session_id)
        self._forked = started_at or at
        self._last = at

    def covers(self, kind: str, payload: Mapping[str, Any], at: int) -> bool:
        """True if a record is copied; the first that is not ends the copy."""
        turn = time_of_id(turn_of(payload))
        if turn is not None and self._session is not None:
            own = turn >= self._session
        elif kind == "event_msg" and payload.get("type") in ("task_started", "turn_started"):
            own = True  # a turn that nothing proves to be old
        else:
            own = at > self._last + PAUSE and at > self._forked + PAUSE
        self.active = not own
        self._last = max(self._last, at)
        return not own
