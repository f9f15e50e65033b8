"""Hooks that one harness runs for another, and a harness that has no start after a compaction."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from obsmem.harnesses import is_foreign
from obsmem.harnesses.written import WORKER_MARK, receipts
from obsmem.system import seats
from obsmem.system.paths import session_folder
from tests.interfaces.place import DEMO, SESSION, Cursor, Place, payload, until
from tests.tasks.talk import Talk


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


# Cross-fire


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionStart", "UserPromptSubmit", "SessionEnd"])
@pytest.mark.parametrize("shown", ["payload", "environment"])
def test_hooks_for_claude_code_that_cursor_runs_do_nothing(place: Place, event: str, shown: str) -> None:
    known = {"session_id": SESSION, "transcript_path": str(place.transcript), "cwd": str(place.project)}
    more = {"cursor_version": "3.1", "conversation_id": SESSION} if shown == "payload" else {}
    given = json.dumps({**known, **more, "source": "compact"}).encode()
    environment = {"CURSOR_VERSION": "3.1"} if shown == "environment" else {}
    done = place.hook("claude-code", event, given=given, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not place.home.exists()


@pytest.mark.parametrize("event", ["Stop", "PreCompact-auto", "SessionStart-compact", "UserPromptSubmit", "SessionEnd"])
def test_hooks_for_claude_code_that_codex_runs_do_nothing(place: Place, event: str) -> None:
    rollout = place.folder / "rollout-2026-04-08T13-20-06-019d6c41-7f02-7a53-b1de-5c90e2f4a816.jsonl"
    shutil.copy(next((DEMO / "codex").iterdir()), rollout)
    given = json.dumps(payload("codex", event, transcript_path=str(rollout), cwd=str(place.project))).encode()
    done = place.hook("claude-code", event.split("-")[0], given=given)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not place.home.exists()


@pytest.mark.parametrize("harness", ["claude-code", "codex"])
def test_no_recorded_payload_of_a_harness_is_foreign_to_it(harness: str) -> None:
    folder = Path(DEMO).parent / "harnesses" / harness / "payloads"
    for path in folder.glob("*.json"):
        assert not is_foreign(harness, json.loads(path.read_text(encoding="utf-8")), {}), path
        other = {"claude-code": "codex", "codex": "claude-code"}[harness]
        assert is_foreign(other, json.loads(path.read_text(encoding="utf-8")), {}), path


# Cursor


@pytest.fixture
def cursor(tmp_path: Path) -> Cursor:
    return Cursor(tmp_path / "place")


@pytest.mark.parametrize("event", ["postToolUse", "sessionStart"])
def test_the_whole_block_comes_once_with_the_next_event_that_takes_words(cursor: Cursor, event: str) -> None:
    assert cursor.call("postToolUse", tool_output="x") == {}
    assert cursor.call("preCompact", trigger="auto") == {}
    text = cursor.call(event, tool_output="y")["additional_context"]
    marks = receipts(text)
    assert "## Now" in text and [mark.split(" ")[1] for mark in marks] == [f"{n}/{len(marks)}" for n in range(1, len(marks) + 1)]  # fmt: skip
    for again in ("postToolUse", "sessionStart", "postToolUse"):
        assert "additional_context" not in cursor.call(again, tool_output="z")
    assert cursor.call("preCompact", trigger="manual") == {}
    assert "additional_context" in cursor.call(event)


def test_status_says_that_the_block_was_handed_out(cursor: Cursor) -> None:
    cursor.call("preCompact", trigger="auto")
    cursor.call("postToolUse")
    assert ": handed out at " in cursor.command("status").stdout.decode()


def test_a_turns_end_after_it_was_handed_out_starts_no_maintainer_twice(cursor: Cursor) -> None:
    cursor.call("preCompact", trigger="auto")
    cursor.call("postToolUse")
    for _ in range(3):
        cursor.call("stop", status="completed")
        assert until(lambda: not seats.wishes(str(cursor.home)) and not list((cursor.home / "waiting").glob(".seat*")))
    assert cursor.log.count("name=cursor_stop outcome=started") == 1


# Recursion


def test_a_worker_that_runs_our_hooks_without_our_mark_stays_alone(place: Place) -> None:
    """Its session begins with our own prompt, which is a reason never to read it."""
    talk = Talk(SESSION, str(place.project))
    talk.user(f"{WORKER_MARK}\nWrite notes about this.")
    talk.agent("[]")
    talk.write(place.folder)
    seen = {name: value for name, value in place.environment.items() if name in ("PATH", "OBSERVATIONAL_MEMORY_HOME")}
    place.environment = seen
    for event, name in (("PreCompact", "PreCompact-auto"), ("SessionEnd", "SessionEnd")):
        done = place.hook("claude-code", event, given=place.payload(name))
        assert (done.returncode, done.stdout) == (0, b"")
    assert until(lambda: not seats.wishes(str(place.home)) and not list((place.home / "waiting").glob(".seat*")))
    assert place.start(1) == b""
    folder = Path(session_folder(str(place.home), "claude-code", str(place.transcript), SESSION))
    assert not folder.exists() or not list(folder.glob("block.n*"))
    assert b"0 sessions" in place.command("status").stdout
