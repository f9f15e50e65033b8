"""The demo sessions: each is what its harness wrote (Cursor's: would have written), and is read whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from obsmem import harnesses
from obsmem.core.model import Entry
from tests.harnesses.cases import ROOT, Reading, read_file

DEMO = ROOT / "fixtures" / "demo"
SESSIONS = {
    "claude-code": DEMO / "claude-code" / "session.jsonl",
    "codex": next((DEMO / "codex").glob("rollout-*.jsonl")),
    "opencode": DEMO / "opencode" / "export.json",
    "cursor": DEMO / "cursor" / "session.jsonl",
}


def _is_prompt(entry: Entry) -> bool:
    return entry.kind == "user" and entry.speaker == "human" and entry.active


@pytest.fixture(params=SESSIONS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def reading(name: str) -> Reading:
    return read_file(name, SESSIONS[name])


def test_a_demo_is_recognised_as_its_harness(name: str) -> None:
    path = SESSIONS[name]
    assert harnesses.recognise(str(path), path.read_bytes()[: 1 << 16]) == name


def test_nothing_in_a_demo_is_unknown(reading: Reading) -> None:
    reasons = {reason for _, parsed in reading.lines for reason in parsed.skipped}
    assert not [reason for reason in reasons if "unknown" in reason or "JSON" in reason]


def test_a_demo_is_compacted_and_goes_on(reading: Reading) -> None:
    entries = reading.entries()
    kinds = [entry.kind for entry in entries]
    boundary = kinds.index("boundary")
    humans = [index for index, entry in enumerate(entries) if _is_prompt(entry)]
    assert kinds[boundary + 1] == "summary"
    assert 8 <= len(humans) <= 14
    assert len([index for index in humans if index > boundary]) <= 3
    assert entries[-1].kind == "assistant"


def test_a_demo_shows_a_session_of_two_hours(reading: Reading) -> None:
    entries = [entry for entry in reading.entries() if entry.at and entry.observable and entry.active]
    prompts = [entry.at for entry in entries if _is_prompt(entry)]
    assert prompts == sorted(prompts)
    assert 1 <= (entries[-1].at - entries[0].at) / 3_600_000 <= 3
    begun = 0
    for entry in entries:  # within a turn, calls that run at the same time end in any order
        begun = entry.at if _is_prompt(entry) else begun
        assert begun <= entry.at


def test_calls_and_results_belong_together(name: str, reading: Reading) -> None:
    entries = reading.entries()
    calls = {entry.call_id for entry in entries if entry.kind == "tool_call"}
    results = {entry.call_id for entry in entries if entry.kind == "tool_result"}
    assert calls == results or name == "cursor"


@pytest.mark.parametrize("harness", ["claude-code", "codex", "opencode"])
@pytest.mark.parametrize("word", ["8091", "never touch migrations/", "TypeError: comparing strings", "230 new", "422"])
def test_the_harness_summary_lost_what_the_session_said(word: str, harness: str) -> None:
    entries = read_file(harness, SESSIONS[harness]).entries()
    assert any(word in entry.text for entry in entries)
    assert not any(word in entry.text for entry in entries if entry.kind == "summary")


def test_every_line_of_a_demo_is_json() -> None:
    for path in SESSIONS.values():
        text = Path(path).read_text(encoding="utf-8")
        for document in [text] if path.suffix == ".json" else text.rstrip("\n").split("\n"):
            assert isinstance(json.loads(document), dict)


@pytest.mark.parametrize("harness", ["claude-code", "codex", "opencode"])
def test_a_recording_names_no_folder_of_the_machine_that_it_was_made_on(harness: str) -> None:
    text = SESSIONS[harness].read_text(encoding="utf-8")
    assert "/home/user/project/" in text
    assert not re.findall(r"(?<![\w.<])/(?:root|tmp|work|workspace|Users|home/(?!user/)\w+)/[\w./-]*", text)
