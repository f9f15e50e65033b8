"""The demo's sessions: played in the real programs, read by us, shown by ``demo``; recorded where that is asked for."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from obsmem import harnesses
from obsmem.core.model import Entry
from tests.harnesses.cases import Reading, read_file

from . import installed, story, story_play
from .world import World

pytestmark = pytest.mark.e2e

TURNS = (*story.BEFORE, *story.AFTER)
STAGES = ("ingest ", "notes ", "reflections ", "compaction ", "block ", "recall ")
SECTIONS = ("## Now", "## Files", "## Commands", "## Reflections", "## Notes")
# Whoever clones the project gets all of it. More than half of Codex's are its own counters and second copies.
LARGEST = 260_000


def _record(world: World, recording: story_play.Recording) -> Path:
    """Write the session into a folder of the run, and into the demo too where that is asked for."""
    path = world.folder / "recorded" / recording.path.parent.name / recording.path.name
    for target in (path, recording.path) if os.environ.get("OBSMEM_E2E_RECORD") else (path,):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(recording.text, encoding="utf-8")
    return path


def _shapes(entries: list[Entry]) -> list[tuple[str, str, str]]:
    """What a recording always has again: kind, speaker and tool of each entry, but no notices, which may come or not."""
    return sorted((entry.kind, entry.speaker, entry.tool) for entry in entries if entry.kind != "notice")


def _told(reading: Reading) -> list[Entry]:
    """What the user, the agent and its tools said: no second copies, and no summary that stands like an answer."""
    disowned = {line for _, parsed in reading.lines for line in parsed.disowned}
    lines = [raw.line for raw, parsed in reading.lines for _ in parsed.entries]
    found = zip(lines, reading.entries(), strict=True)
    return [entry for line, entry in found if entry.active and entry.observable and line not in disowned]


def _assert_the_story(entries: list[Entry], told: list[Entry]) -> None:
    """Every prompt and every answer is there once and in order, each call has a result, and the summary lost what it should."""
    assert [entry.text for entry in told if entry.kind == "user"] == [turn.prompt for turn in TURNS]
    answers = [answer for turn in TURNS for answer in turn.answers]
    assert [entry.text for entry in told if entry.kind == "assistant"] == [one.text for one in answers if one.text]
    calls = [entry.call_id for entry in told if entry.kind == "tool_call"]
    results = [entry.call_id for entry in told if entry.kind == "tool_result"]
    assert len(calls) >= len(answers) - len(TURNS) and sorted(calls) == sorted(results)
    assert [entry.kind for entry in entries if entry.kind in ("boundary", "summary")] == ["boundary", "summary"]
    said = "\n".join(entry.text for entry in told)
    (summary,) = [entry.text for entry in entries if entry.kind == "summary"]
    assert story.SUMMARY.strip() in summary
    for lost in story.LOST:
        assert lost in said and lost not in summary, lost


def _assert_a_good_demo(world: World, path: Path) -> None:
    """Every stage and section shows something, and what is brought back is the port that the user named."""
    shown = installed.command(world, "demo", str(path))
    assert shown.returncode == 0 and shown.stderr == ""
    for beginning in (*STAGES, *(f"  | {section}\n" for section in SECTIONS)):
        assert f"\n{beginning}" in shown.stdout
    assert re.search(r"\nreflections [1-9]\d*, then [1-9]\d* notes? dropped", shown.stdout)
    recalled = shown.stdout.split("\nrecall ")[1]
    assert "8091" in recalled.split("\n")[0] and "Use port 8091 from now on" in " ".join(recalled.split())


@pytest.mark.parametrize("harness", story_play.PROGRAMS)
def test_the_story_is_played_read_and_shown(world: World, harness: str) -> None:
    recording = story_play.PROGRAMS[harness](world)
    assert len(world.requests("summary")) == 1
    path = _record(world, recording)
    for folder in (world.folder, Path.home(), story_play.PROJECT_ROOT):
        assert f"{folder}/" not in recording.text
    assert len(recording.text.encode()) < LARGEST
    assert harnesses.recognise(str(path), path.read_bytes()[: 1 << 16]) == harness
    reading = read_file(harness, path)
    entries = reading.entries()
    _assert_the_story(entries, _told(reading))
    _assert_a_good_demo(world, path)
    kept = read_file(harness, recording.path).entries()
    assert _shapes(kept) == _shapes(entries), "it writes otherwise now: make record, and look at the difference"
