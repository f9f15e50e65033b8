"""What a run proves, read from the model's log and from the recorded hook calls.

Owns the reading of our block out of a request. Invariant: it looks at what the model was really sent, never at what
a hook meant to send.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import wire
from .world import Call, World

_PART = re.compile(
    r'<observational-memory delivery="(?P<delivery>[0-9a-z]+)" part="(?P<number>\d+)/(?P<of>\d+)"[^>]*>'
    r".*?</observational-memory>",
    re.DOTALL,
)
_RECALL = re.compile(r"`(?P<command>[^`]+ recall) <id>`")
PART_BYTES = 9_500


class Part(NamedTuple):
    """One part of our block as it stands in a text."""

    delivery: str
    number: int
    of: int
    text: str


def parts_in(value: Any) -> list[Part]:
    """Every part of our block in the strings of a JSON value, in order."""
    found = []
    for text in wire.texts(value):
        for match in _PART.finditer(text):
            found.append(Part(match["delivery"], int(match["number"]), int(match["of"]), match.group()))
    return found


def first_main_request_after_summary(world: World) -> dict[str, Any]:
    """The body of the first request of the session itself that follows the last summariser request."""
    requests = world.requests()
    summary = max(request["number"] for request in requests if request["kind"] == "summary")
    return next(request["body"] for request in requests if request["number"] > summary and request["kind"] == "main")


def whole_delivery(parts: Iterable[Part]) -> list[Part]:
    """The parts in their order, after checking that they are one whole block, each part once and within its limit."""
    ordered = sorted(parts, key=lambda part: part.number)
    assert ordered, "no part of our block is in the request"
    assert len({part.delivery for part in ordered}) == 1, [part[:3] for part in ordered]
    assert [part.number for part in ordered] == list(range(1, ordered[0].of + 1)), [part[:3] for part in ordered]
    assert all(part.of == len(ordered) for part in ordered)
    assert max(len(part.text.encode()) for part in ordered) <= PART_BYTES
    return ordered


def recall_command(block: str, before: str) -> str:
    """The shell line that the block itself names, for the first entry id that stands left of ``before`` in it."""
    command = _RECALL.search(block)
    entry = re.search(r"(\b[a-z2-7]{4,}\.\d+)\):[^\n]*" + re.escape(before), block)
    assert command and entry, block
    return f"{command['command']} {entry.group(1)}"


def last_tool_result(body: dict[str, Any]) -> str:
    """The text of the last tool result that a request holds, in any of the wire formats."""
    for message in reversed(wire.messages(body)):
        if message.get("type") == "function_call_output" or message.get("role") == "tool":
            return "\n".join(wire.texts(message.get("output", message.get("content"))))
        content = message.get("content")
        for block in reversed(content if isinstance(content, list) else []):
            if block.get("type") == "tool_result":
                return "\n".join(wire.texts(block["content"]))
    return ""


def our_calls(world: World, event: str = "") -> list[Call]:
    """The hook calls that ran our script, not a recorder alone."""
    return [call for call in world.calls(event) if call.command]


def contexts(calls: Iterable[Call]) -> list[str]:
    """The additional context that each call answered, those without one left out. Fails on an answer of another shape."""
    found = []
    for call in calls:
        if not call.stdout.strip():
            continue
        answer = json.loads(call.stdout)
        assert set(answer) <= {"hookSpecificOutput", "systemMessage"}, answer
        output = answer["hookSpecificOutput"]
        assert output["hookEventName"] == call.payload["hook_event_name"]
        found.append(str(output["additionalContext"]))
    return found


def order(world: World) -> list[str]:
    """The events as they began, named with their source or trigger; parallel handlers of one moment count once."""
    names: list[str] = []
    for call in world.calls():
        variant = call.payload.get("source") or call.payload.get("trigger")
        name = f"{call.event}({variant})" if variant else call.event
        if not names or names[-1] != name:
            names.append(name)
    return names


def assert_all_succeeded(world: World) -> None:
    """Every hook call ended with exit status 0 and an empty stderr."""
    failed = [(call.event, call.status, call.stderr) for call in world.calls() if call.status != 0 or call.stderr]
    assert not failed, failed
