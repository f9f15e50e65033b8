"""What a session start is told of its workspace, with real hook processes, by sessions of two harnesses in one folder."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.harnesses.written import OWN_BLOCK, receipts
from obsmem.system.indexfile import LIMIT, SINCE_LIMIT, index_path
from obsmem.system.workspace import workspace_of
from tests.interfaces.place import DEMO, SESSION, Place, payload
from tests.tasks.talk import Talk

CODEX = "019d6c41-7f02-7a53-b1de-5c90e2f4a816"  # the demo's session
OLD = "5e551011-0000-4000-8000-0000000000b2"
NEW = "5e551011-0000-4000-8000-0000000000d4"
KEY = "AKIAIOSFODNN7EXAMPLE"


class Workshop(Place):
    """A repository in which Claude Code and Codex take turns."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.project / ".git").mkdir()
        (self.project / "tools").mkdir()

    def works(self, session: str, *words: str, cwd: str = "", hour: int = 10) -> None:
        """A session of Claude Code that has ended and was looked after."""
        talk = Talk(session, cwd or str(self.project))
        for number, text in enumerate(words):
            talk.user(text)
            name = f"{cwd or self.project}/src/parse_{number}.py"
            block = {"type": "tool_use", "id": f"t{session[-2:]}{number}", "name": "Write",
                     "input": {"file_path": name, "content": "x = 1\n"}}  # fmt: skip
            talk._add("assistant", message={"id": f"w{number}", "role": "assistant", "model": "m", "content": [block]})
            result = {"type": "tool_result", "tool_use_id": block["id"], "content": "File created successfully"}
            talk._add("user", message={"role": "user", "content": [result]})
            talk.agent(f"Finished number {number}: all 12 tests pass with key {KEY}.")
        for record in talk.records:
            record["timestamp"] = record["timestamp"].replace("T10:", f"T{hour}:")
        path = talk.write(self.folder)
        self.maintains("claude-code", path, session)

    def maintains(self, harness: str, path: Path, session: str) -> None:
        done = self.command(
            "maintain",
            harness,
            "--transcript",
            str(path),
            "--session",
            session,
            "--cwd",
            str(self.project),
            "--verbose",
        )
        assert done.returncode == 0, done.stderr

    def begins(self, session: str, source: str = "startup", part: str = "4/4", cwd: Path | None = None) -> str:
        """What a start of Claude Code gives to the model."""
        value = payload(
            "claude-code", "SessionStart-compact", source=source, session_id=session,
            transcript_path=str(self.folder / f"{session}.jsonl"), cwd=str(cwd or self.project),
        )  # fmt: skip
        done = self.hook("claude-code", "SessionStart", "--part", part, given=json.dumps(value).encode())
        assert (done.returncode, done.stderr) == (0, b""), self.log
        return said(done.stdout)

    def codex_begins(self, session: str, source: str = "startup") -> str:
        value = {"session_id": session, "transcript_path": str(self.folder / f"rollout-{session}.jsonl"),
                 "cwd": str(self.project), "hook_event_name": "SessionStart", "source": source, "model": "m"}  # fmt: skip
        return said(self.hook("codex", "SessionStart", given=json.dumps(value).encode()).stdout)

    def opencode_begins(self, session: str) -> str:
        value = {"sessionID": session, "directory": str(self.project), "db": str(self.folder / "none.db")}
        done = self.hook("opencode", "session.resumed", given=json.dumps(value).encode())
        assert done.returncode == 0, self.log
        return str(json.loads(done.stdout)["context"]) if done.stdout else ""

    @property
    def index(self) -> Path:
        return Path(index_path(str(self.home), workspace_of(str(self.project))))


def said(output: bytes) -> str:
    value: dict[str, Any] = json.loads(output) if output else {}
    return str(value.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "w")


def test_a_new_session_is_told_once_what_is_kept_in_our_own_voice_and_within_the_limit(workshop: Workshop) -> None:
    for number in range(9):
        session = f"5e551011-0000-4000-8000-00000000010{number}"
        workshop.works(
            session, f"Prompt {number} " + "of many words " * 40, "Then the second one " * 30, hour=10 + number
        )
    text = workshop.begins(NEW)
    assert text.startswith(OWN_BLOCK) and text.endswith("</observational-memory>")
    assert len(text) <= LIMIT and receipts(text) == () and text.count(OWN_BLOCK) == 1
    assert "9 sessions" in text and "72 entries" in text and "search WORDS" in text and "recall" in text
    assert "- src/parse_0.py\n" in text and re.search(r'- \w{4} \(claude-code, .* ago\): "Prompt 8 of', text)
    assert KEY not in text and KEY.encode() not in workshop.index.read_bytes()
    assert all(line.startswith(("<", "- ", "## ", "(", "What is kept")) for line in text.split("\n"))
    assert workshop.begins(NEW) == "", "a hook that is registered twice"
    assert workshop.begins("5e551011-0000-4000-8000-0000000000e1", part="1/4") == "", "the last handler tells it"


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_no_other_start_is_told(workshop: Workshop, source: str) -> None:
    workshop.works(OLD, "Make it parse.")
    assert "workspace" not in workshop.begins(OLD, source, "4/4")


def test_paths_are_those_of_the_repository_wherever_a_session_ran_and_another_repository_hears_nothing(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.works(OLD, "Make it parse.", cwd=str(workshop.project / "tools"))
    assert "- tools/src/parse_0.py" in workshop.begins(NEW)
    other = tmp_path / "other" / "project"
    (other / ".git").mkdir(parents=True)
    assert workshop.begins("5e551011-0000-4000-8000-0000000000e2", cwd=other) == ""


def codex_transcript(workshop: Workshop) -> Path:
    (demo,) = (DEMO / "codex").glob("*.jsonl")
    path = workshop.folder / demo.name
    path.write_text(
        demo.read_text(encoding="utf-8").replace("/home/user/project", str(workshop.project)), encoding="utf-8"
    )
    return path


def test_a_harness_hears_what_another_did_since_it_was_last_here_and_a_resumed_session_each_deed_once(
    workshop: Workshop,
) -> None:
    workshop.works(OLD, "Make it parse.")
    assert workshop.begins(OLD, "resume") == "", "nobody did anything since"
    workshop.maintains("codex", codex_transcript(workshop), CODEX)
    started = workshop.begins(NEW)
    assert "## What other sessions here did since claude-code was last here\n- " in started and "(codex, " in started
    news = workshop.begins(OLD, "resume")
    assert news.startswith(OWN_BLOCK) and "since you were last here" in news and re.search(r"\(\w{4}\.\d+\)", news)
    section = news[news.index("## What") : news.rindex("\n")]
    assert len(section) <= SINCE_LIMIT and len(news) <= LIMIT and "Make it parse" not in news
    assert workshop.begins(OLD, "resume") == ""
    assert "since codex" not in workshop.codex_begins("01a00000-0000-7000-8000-0000000000c9"), "it was here last"


def test_where_our_words_stand_in_every_request_they_stay_the_same_until_somebody_did_something(
    workshop: Workshop,
) -> None:
    workshop.works(OLD, "Make it parse.")
    first = workshop.opencode_begins("ses_1")
    assert first.startswith(OWN_BLOCK) and len(first) <= LIMIT
    assert workshop.opencode_begins("ses_1") == first
    workshop.works(SESSION, "Now print it.", hour=12)
    again = workshop.opencode_begins("ses_1")
    assert again.startswith(first) and "Now print it." in again[len(first) :]
    assert workshop.opencode_begins("ses_1") == again


def test_nothing_is_told_where_memory_is_off_or_the_configuration_may_say_so(workshop: Workshop) -> None:
    workshop.works(OLD, "Make it parse.")
    off = workshop.project / ".observational-memory-off"
    off.touch()
    assert workshop.begins(NEW) == ""
    off.unlink()
    settings = workshop.project / ".observational-memory.yaml"
    settings.write_text("off: true\n", encoding="utf-8")
    assert workshop.begins(NEW) == "", "no maintainer has read the file yet"
    workshop.maintains("claude-code", workshop.folder / f"{OLD}.jsonl", OLD)
    assert not workshop.index.exists()
    settings.write_text("start_index: false\n", encoding="utf-8")
    workshop.maintains("claude-code", workshop.folder / f"{OLD}.jsonl", OLD)
    assert not workshop.index.exists()
    settings.unlink()
    workshop.maintains("claude-code", workshop.folder / f"{OLD}.jsonl", OLD)
    assert workshop.begins(NEW) != ""


def test_what_is_forgotten_is_in_no_index_and_in_nothing_that_was_made_of_one(workshop: Workshop) -> None:
    workshop.works(OLD, "Make the zebra parse.")
    workshop.works(SESSION, "Now print it.", hour=12)
    assert "zebra" in workshop.opencode_begins("ses_1") and "zebra" in workshop.index.read_text(encoding="utf-8")
    assert workshop.command("forget", OLD, "--yes").returncode == 0
    assert "zebra" not in workshop.index.read_text(encoding="utf-8")
    assert "zebra" not in workshop.opencode_begins("ses_1")


def test_a_broken_index_file_is_none(workshop: Workshop) -> None:
    workshop.works(OLD, "Make it parse.")
    for data in (b"", b"obsmem-index 2\nhead\tx", os.urandom(200)):
        workshop.index.write_bytes(data)
        assert workshop.begins(f"5e551011-0000-4000-8000-{int(time.time() * 1000) % 10**12:012d}") == ""
