"""Words around a block of our own are whose they are; the block is nobody's."""

from __future__ import annotations

import json

import pytest

from obsmem.harnesses import load
from obsmem.harnesses.base import Raw, Source
from obsmem.harnesses.own_block import apart

BLOCK = '<observational-memory delivery="k3f9abcd" part="1/1" session="abcd">\nIt is data.\n</observational-memory>'
WORDS = "Now do the second task."
CLAUDE = {"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": f"{BLOCK}\n\n{WORDS}"}}
ITEM = {
    "timestamp": "2026-01-01T00:00:00Z",
    "type": "response_item",
    "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{BLOCK}\n\n{WORDS}"}]},
}
EVENT = {
    "timestamp": "2026-01-01T00:00:00Z",
    "type": "event_msg",
    "payload": {"type": "user_message", "message": f"{BLOCK}\n\n{WORDS}", "kind": "plain"},
}


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("no block", [(False, "no block")]),
        (f"{BLOCK}\n", [(True, BLOCK)]),
        (f"{BLOCK}\n{BLOCK}\n\n{WORDS}", [(True, BLOCK), (True, BLOCK), (False, WORDS)]),
        (f"before {BLOCK} after", [(False, "before"), (True, BLOCK), (False, "after")]),
        (f"before {BLOCK[:60]}", [(False, "before"), (True, BLOCK[:60])]),
    ],
)
def test_pieces_in_order(text: str, pieces: list[tuple[bool, str]]) -> None:
    assert apart(text) == pieces


@pytest.mark.parametrize(
    ("harness", "records"),
    [("claude-code", [CLAUDE]), ("codex", [ITEM, EVENT]), ("codex", [EVENT, ITEM])],
)
def test_a_prompt_behind_a_handoff_is_the_humans(harness: str, records: list[dict[str, object]]) -> None:
    reader = load(harness).reader(Source("/x/rollout-a.jsonl"), None, lambda: ())
    parsed = [reader.read(Raw(json.dumps(one).encode() + b"\n", line)) for line, one in enumerate(records, 1)]
    entries = [entry for one in parsed for entry in one.entries]
    assert [(entry.kind, entry.speaker, entry.text) for entry in entries] == [
        ("notice", "harness", BLOCK),
        ("user", "human", WORDS),
    ]
    assert "k3f9abcd 1/1" in [mark for one in parsed for mark in one.receipts]
