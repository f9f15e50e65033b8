"""The small inputs on which other readers broke, from the folder ``shared`` beside the project: what each must yield.

A file that is none of the named ones fails, so that a new input cannot lie there unread.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsmem import harnesses
from obsmem.harnesses.claude_code_writer import project_folder
from tests.harnesses.cases import SHARED, Reading, read_file

FILES = sorted(path for path in (SHARED / "cases").glob("*") if path.suffix != ".md")
ELSEWHERE = {
    "23-project-slug.json": "here, below",
    "37-cursor-vscdb.json": "test_cursor_database",
    "38-opencode-sqlite.json": "test_opencode_rows",
}  # what is no transcript as it stands: the test module that makes one of it

# First words of the name -> (harness, what stands on the live path: kind, a colon, its first line).
YIELDS: dict[str, tuple[str, list[str]]] = {
    "01": ("claude-code", ["user: before", "assistant: valid then padding", "user: after"]),
    "02": ("claude-code", ["user: hello", "assistant: complete answer"]),
    "03": (
        "claude-code",
        ["user: question", "assistant: this answer must not be lost", "notice: summary: Title", "user: next"],
    ),
    "04": ("claude-code", ["user: a\u2028b\u2029c\x85d", "assistant: ok"]),
    "05": ("claude-code", ["user: bad \ufffd and \ufffd here"]),
    "07": ("claude-code", ["user: plain string", "user: list form"]),
    "08": (
        "claude-code",
        [
            *["tool_call: Bash"] * 6,
            *["tool_result: s", "tool_result: A", "tool_result: bare", "tool_result:", "tool_result:"],
            "tool_result: tool: mcp__x__y",
        ],
    ),
    "09": ("claude-code", ["tool_result: no", "tool_result: ok"]),
    "10": ("claude-code", ["assistant: text part", "tool_call: Bash"]),
    "11": (
        "claude-code",
        [
            "user: old question",
            "assistant: old answer",
            "boundary: compacted (auto, 150000 tokens before)",
            "summary: This session is being continued from a previous conversation… summary",
            "user: new question",
        ],
    ),
    "14": ("claude-code", ["user: copied", "assistant: copied", "user: rival branch"]),
    "15": ("claude-code", ["notice: summary: Some other work", "user: real start"]),
    "16": ("claude-code", ["user: start", "user: also do X"]),
    "18": ("claude-code", ["user: Warmup", "assistant: ready"]),
    "20": ("claude-code", ["assistant: visible"]),
    "21": ("claude-code", ["tool_result: <persisted-output>"]),
    "24": ("codex", ["user: hello", "assistant: hi"]),
    "25": ("codex", ["user: yes", "assistant: done", "user: yes"]),
    "26": ("codex", ["notice: <environment_context>", "user: real prompt", "assistant: ok"]),
    "28": ("codex", ["assistant: child work"]),
    "30": (
        "codex",
        ["boundary: The conversation was compacted here.", "user: only copy of an old prompt", "user: later"],
    ),
    "31": (
        "codex",
        ["notice: <environment_context>", "user: old style", "tool_call: shell", "tool_result: a", "assistant: done"],
    ),
    "31b": ("codex", ["user: hello", "assistant: hi"]),
    "33": ("codex", []),  # the first four bytes of a compressed rollout, and no more
    "34": ("codex", ["user: still here"]),
    "35": (
        "cursor",
        [
            "notice: <timestamp>Tuesday, Jan 6, 2026, 1:15 PM (UTC+1)</timestamp>",
            "user: fix it",
            "assistant: On it.",
            "tool_call: Shell",
            "notice: Turn ended, error: User aborted request",
            "notice: Error: Provider Error: upstream timeout",
        ],
    ),
    "39": ("opencode", ["user: hi"]),
    "41": ("claude-code", ["user: fine"]),
    "42": ("claude-code", ["user: x", "boundary: compacted (manual, 1 tokens before)"]),
}

RECORDS = {
    "claude-code": '{"parentUuid":null,"isSidechain":false,"cwd":"/w/p","sessionId":"s-1","type":"user",'
    '"message":{"role":"user","content":"%s"},"uuid":"u1","timestamp":"2026-01-01T00:00:00.000Z"}',
    "codex": '{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{"type":"user_message","message":"%s"}}',
    "cursor": '{"role":"user","message":{"content":[{"type":"text","text":"%s"}]}}',
}


def number_of(path: Path) -> str:
    return path.name.split("-")[0]


def reading_of(number: str) -> Reading:
    found = [path for path in FILES if number_of(path) == number]
    if not found:
        pytest.skip("the small inputs are not beside the project")
    return read_file(YIELDS[number][0], found[0])


@pytest.mark.parametrize("path", FILES, ids=number_of)
def test_a_small_input_yields_exactly_what_was_said(path: Path) -> None:
    if path.name in ELSEWHERE:
        return
    if path.suffix == ".zst":
        pytest.importorskip("zstandard")
    harness, expected = YIELDS[number_of(path)]
    if number_of(path) != "34":  # nobody can know a file by a first line that is torn
        assert harnesses.recognise(str(path), path.read_bytes()[:4096]) == harness
    live = [entry for entry in read_file(harness, path).entries() if entry.active]
    assert [f"{entry.kind}: {entry.text.split(chr(10))[0]}".rstrip() for entry in live] == expected


def test_one_reply_on_several_lines_is_paid_once() -> None:
    told = {measure.request: measure.output for measure in reading_of("10").measures()}
    assert told == {"msg_1": 250}


def test_a_summary_of_another_session_names_nothing() -> None:
    session = reading_of("15").session
    assert (session.name, session.id, session.cwd) == ("", "s-1", "/w/p")


def test_a_file_of_side_records_alone_is_a_sub_agents() -> None:
    reading = reading_of("18")
    assert (reading.session.role, reading.parent_id) == ("subagent", "parent")
    assert {entry.speaker for entry in reading.entries()} == {"agent", "subagent"}


def test_what_was_typed_twice_and_taken_back_counts_once() -> None:
    entries = reading_of("16").entries()
    assert [entry.active for entry in entries if entry.text == "also do X"] == [False, True]


def test_the_folder_of_a_projects_sessions_is_named_as_the_harness_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = SHARED / "cases" / "23-project-slug.json"
    if not case.exists():
        pytest.skip("the small inputs are not beside the project")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    names = json.loads(case.read_text(encoding="utf-8"))
    assert project_folder(str(tmp_path), names["cwd"]) == str(tmp_path / ".claude" / "projects" / names["claude_slug"])


@pytest.mark.parametrize("harness", ["claude-code", "codex", "cursor"])
def test_a_whole_record_behind_a_torn_one_on_its_line_is_kept(harness: str, tmp_path: Path) -> None:
    """Three records of a real form each: the second is cut at every byte, and the third follows at once."""
    first, second, third = (RECORDS[harness] % word for word in ("before", "half", "after"))
    path = tmp_path / "rollout-x.jsonl"
    for cut in range(1, len(second)):
        path.write_text(f"{first}\n{second[:cut]}{third}\n", encoding="utf-8")
        words = [entry.text for entry in read_file(harness, path).entries() if entry.kind == "user"]
        assert (words[0], words[-1]) == ("before", "after"), cut
