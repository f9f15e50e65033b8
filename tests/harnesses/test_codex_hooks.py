"""What Codex's hooks send, what they accept, and the config that registers ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsmem.core.model import HookAnswer, HookEvent
from obsmem.harnesses import codex
from tests.harnesses.cases import FIXTURES


def payloads() -> list[Path]:
    return sorted((FIXTURES / "codex" / "payloads").glob("*.json"))


@pytest.mark.parametrize("path", payloads(), ids=lambda path: path.stem)
def test_a_recorded_payload_becomes_an_event(path):
    payload = json.loads(path.read_text(encoding="utf-8"))
    event = codex.read_event(payload["hook_event_name"], payload)
    assert event.name == path.stem.split("-")[0]
    assert event.kind == codex.EVENTS[event.name]
    assert (event.session_id, event.cwd) == (payload["session_id"], payload["cwd"])
    assert event.source == (payload.get("source") or payload.get("trigger") or payload.get("reason") or "")


def test_an_unknown_event_and_odd_values_are_taken_calmly():
    event = codex.read_event("Later", {"session_id": 7, "transcript_path": None, "cwd": ["x"]})
    assert event == HookEvent("other", "Later")


def test_context_is_answered_only_where_it_is_accepted():
    context = HookAnswer("line one\nzwei “drei”")
    for name in codex.EVENTS:
        text = codex.answer(codex.read_event(name, {}), context)
        if name in ("SessionStart", "UserPromptSubmit"):
            output = json.loads(text)["hookSpecificOutput"]
            assert output == {"hookEventName": name, "additionalContext": context.context}
        else:
            assert text == ""
    assert codex.answer(codex.read_event("SessionStart", {}), HookAnswer()) == ""


def test_the_config_has_no_matcher_and_one_start_without_a_cut_and_says_the_same_each_time():
    config = codex.hook_config(lambda arguments: f"/x/launch {arguments}")
    assert config == codex.hook_config(lambda arguments: f"/x/launch {arguments}")
    (start,) = [handler for group in config["hooks"]["SessionStart"] for handler in group["hooks"]]
    assert start["command"] == "/x/launch hook codex SessionStart" and start["additionalContextLimit"] == 0
    for event, groups in config["hooks"].items():
        assert event in codex.EVENTS
        assert all(group.keys() == {"hooks"} for group in groups)
    assert config["hooks"]["PreCompact"][0]["hooks"][0]["timeout"] == 60
    assert config["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] <= 3
