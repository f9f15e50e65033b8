"""Plays the demo's story in the real programs, and takes the session that each wrote.

Owns how each is set up for it, how it compacts, and where its session stands. Invariant: no hook and no plugin of ours is
there; what git and Python write depends on neither the day nor the machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from . import programs, recordings, story, story_project, story_tools
from .claude_code import ClaudeCode
from .codex import Codex
from .opencode import OpenCode
from .payloads import Scrubber
from .world import PROJECT_ROOT, Ended, World

DEMO = PROJECT_ROOT / "fixtures" / "demo"
FULL = {"input": 500_000, "output": 20}  # more than any window holds: Codex compacts before the next turn

_ENVIRONMENT = {
    **{f"GIT_{who}_NAME": "Mira Example" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "mira@example.org" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2026-03-02T08:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Recording(NamedTuple):
    """A session as it may be shown, and the file of the demo that it belongs into."""

    text: str
    path: Path


class _Play:
    """The turns of one run. ``starts`` are the times at which they and the compaction began."""

    def __init__(self, world: World, say: Callable[[str], Ended], tools: story_tools.Tools) -> None:
        self.starts: list[float] = []
        self._world, self._say, self._tools = world, say, tools

    def turn(self, turn: story.Turn, **last: Any) -> None:
        """Play one turn; ``last`` are further keys of its last answer."""
        *answers, final = story.answers(turn, self._tools)
        self._world.script(*answers, {**final, **last})
        self.run(lambda: self._say(turn.prompt))

    def run(self, step: Callable[[], Ended]) -> None:
        """Let the program do something that is set apart in time, and end well."""
        self.starts.append(time.time())
        ended = step()
        assert ended.status == 0, ended


def _prepare(world: World) -> None:
    """The project as the story finds it, with its first commit."""
    for name, content in story_project.FILES.items():
        path = world.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    begin = "git init -q -b main && git add -A && git commit -q -m 'Take in the events of Fjordpost'"
    assert world.run(["sh", "-c", begin], _ENVIRONMENT).status == 0


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line]


def _written(record: Any) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def claude_code(world: World) -> Recording:
    """``/compact`` is a turn of its own."""
    _prepare(world)
    harness = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), {}, (), **_ENVIRONMENT)
    play = _Play(world, harness.turn, story_tools.claude_code(world.project))
    for turn in story.BEFORE:
        play.turn(turn)
    world.script({"text": f"<analysis>All is said.</analysis>\n<summary>\n{story.SUMMARY}</summary>"}, kind="summary")
    play.run(lambda: harness.turn("/compact"))
    for turn in story.AFTER:
        play.turn(turn)
    scrubber = Scrubber(world)
    scrubber.name(harness.session, "5d0c7f6e-3a41-4b8e-9c1d-72e5a90b4f16")
    records = _lines(harness.transcript().read_text(encoding="utf-8"))
    shown = recordings.publish(records, scrubber, play.starts, datetime(2026, 3, 2, 8, 11, tzinfo=timezone.utc))
    return Recording("".join(_written(record) + "\n" for record in shown), DEMO / "claude-code" / "session.jsonl")


def codex(world: World) -> Recording:
    """A model that has a tool for patches, and a plan; the compaction comes by itself when the window is full."""
    _prepare(world)
    harness = Codex(world, programs.require(programs.CODEX), {}, ())
    harness.environment.update(_ENVIRONMENT)
    config = world.home / ".codex" / "config.toml"
    text = config.read_text(encoding="utf-8").replace('model = "gpt-5-codex"', 'model = "gpt-5.5"')
    config.write_text(f"{text}\n[tools.update_plan]\nenabled = true\n", encoding="utf-8")
    play = _Play(world, harness.turn, story_tools.codex)
    for turn in story.BEFORE[:-1]:
        play.turn(turn)
    play.turn(story.BEFORE[-1], usage=FULL)
    world.script({"text": story.SUMMARY}, kind="summary")
    for turn in story.AFTER:
        play.turn(turn)
    (rollout,) = (world.home / ".codex" / "sessions").rglob("rollout-*.jsonl")
    session = "019d6c41-7f02-7a53-b1de-5c90e2f4a816"
    scrubber = Scrubber(world)
    scrubber.name(harness.session, session)
    first = datetime(2026, 4, 8, 13, 20, 6, tzinfo=timezone.utc)
    shown = recordings.publish(_lines(rollout.read_text(encoding="utf-8")), scrubber, play.starts, first)
    path = DEMO / "codex" / f"rollout-{first:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
    return Recording("".join(_written(record) + "\n" for record in shown), path)


def opencode(world: World) -> Recording:
    """The session is what ``opencode export`` prints, with one message a line."""
    _prepare(world)
    harness = OpenCode(world, programs.require(programs.OPENCODE), {"permission": {"*": "allow"}}, story.TITLE)
    harness.environment.update(_ENVIRONMENT)
    play = _Play(world, harness.turn, story_tools.opencode(world.project))
    for turn in story.BEFORE:
        play.turn(turn)
    world.script({"text": story.SUMMARY}, kind="summary")
    play.run(harness.compact)
    for turn in story.AFTER:
        play.turn(turn)
    # Into a file: of what it prints into a pipe, the end gets lost.
    file = world.folder / "export.json"
    command = ["sh", "-c", 'exec "$0" export "$1" > "$2"', str(harness._command), harness.session, str(file)]
    assert world.run(command, harness.environment).status == 0
    scrubber = Scrubber(world)
    scrubber.name(harness.session, "ses_6a1e03f2cffe7QdKpTz4mWbXya")
    records = [json.loads(file.read_text(encoding="utf-8"))]
    (shown,) = recordings.publish(records, scrubber, play.starts, datetime(2026, 4, 21, 7, 41, tzinfo=timezone.utc))
    messages = ",\n".join(_written(message) for message in shown["messages"])
    text = f'{{"info":{_written(shown["info"])},"messages":[\n{messages}\n]}}\n'
    return Recording(text, DEMO / "opencode" / "export.json")


PROGRAMS: dict[str, Callable[[World], Recording]] = {"claude-code": claude_code, "codex": codex, "opencode": opencode}
