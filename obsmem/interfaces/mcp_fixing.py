"""The tools that write: pin and unpin. What a model pins is marked as its words, and reaches no other workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsmem.core.errors import UsageError
from obsmem.core.ids import is_entry_id, is_note_prefix
from obsmem.core.model import Pin
from obsmem.interfaces import mcp_frame as frame
from obsmem.interfaces.mcp_frame import INTRODUCTION
from obsmem.interfaces.mcp_scope import Scope, clean_id
from obsmem.tasks import pins as fixing

SHOWN = 200  # characters of a pin that the answer repeats


def pin(scope: Scope, given: Mapping[str, Any]) -> str:
    """Keep words, or those of an entry or note that is visible here."""
    what = str(given["what"])
    name = clean_id(what)
    if is_entry_id(name) or is_note_prefix(name):
        scope.find(name)  # what is not to be seen here cannot be pinned either
    made = fixing.pin(scope.store, what, str(given.get("scope", "")), scope.here, by="agent")
    return f"Pinned for the {made.scope}, as [{made.id}].\n{_shown(scope, made)}"


def unpin(scope: Scope, given: Mapping[str, Any]) -> str:
    """Take away a pin that is visible here, but not one that the user fixed for every workspace."""
    name = clean_id(str(given["id"]))
    if any(one.id.startswith(name) and one.scope == "everywhere" for one in fixing.pins(scope.store, scope.here)):
        raise UsageError("That pin is the user's, for every workspace: only the user's own command takes it away.")
    return f"No longer pinned.\n{_shown(scope, fixing.unpin(scope.store, name, scope.here))}"


def _shown(scope: Scope, one: Pin) -> str:
    words = frame.inside(frame.words_of(scope.store, one.text))[:SHOWN]
    who = "user" if one.evidence == "user" else one.evidence
    return f"{INTRODUCTION}\n{frame.fence(scope.store.key(), words, id=one.id, who=who, about='pin')}"
