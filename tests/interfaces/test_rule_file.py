"""Cursor's rule file: made where a user asked for it, filled before a compaction, empty afterwards, removed without a trace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.place import CONVERSATION, Cursor, until

EMPTY = "No conversation was compacted here since."


class Folder(Cursor):
    """A conversation of Cursor in a folder where commands are run."""

    @property
    def rule(self) -> Path:
        """Where the rule file stands."""
        return self.project / ".cursor" / "rules" / "observational-memory.mdc"

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a command in the project."""
        return self.command(*words, cwd=self.project, **options)

    def install(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Install for Cursor, without a question."""
        return self.run("install", "--yes", *words, "cursor")

    @property
    def text(self) -> str:
        """What the rule file says."""
        return self.rule.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "place")


def test_it_is_made_only_where_it_was_asked_for(folder: Folder) -> None:
    assert folder.install().returncode == 0
    assert folder.call("preCompact", trigger="auto") == {}
    assert not folder.rule.exists()
    done = folder.install("--rule")
    assert done.returncode == 0, done.stderr
    assert b"+alwaysApply: true" in done.stdout and b"keep it out of version control" in done.stdout
    assert folder.text.startswith("---\ndescription: ") and "\nalwaysApply: true\n---\n" in folder.text
    assert EMPTY in folder.text


def test_a_dry_run_shows_it_and_makes_nothing(folder: Folder) -> None:
    done = folder.install("--rule", "--dry-run", "--json")
    (one,) = json.loads(done.stdout)["harnesses"]
    assert [Path(change["path"]).name for change in one["changes"]] == [
        "hooks.json",
        "mcp.json",
        "observational-memory.mdc",
    ]
    assert not folder.home.exists() and os.listdir(folder.project) == []


def test_it_holds_the_block_from_a_compaction_until_the_conversation_ends(folder: Folder) -> None:
    folder.install("--rule")
    folder.call("preCompact", trigger="auto")
    block = folder.text
    assert CONVERSATION in block and "## Now" in block and EMPTY not in block
    assert "In any other conversation this is background" in block
    given = folder.call("postToolUse", tool_output="x")["additional_context"]
    assert given in block, "a hook and the rule file say the same"
    folder.call("stop", status="completed")
    assert folder.text == block, "it changes before a compaction and at no other time"
    folder.call("sessionEnd", reason="user_close")
    assert until(lambda: EMPTY in folder.text), folder.log


def test_another_conversation_that_ends_leaves_it_alone(folder: Folder) -> None:
    folder.install("--rule")
    folder.call("preCompact", trigger="auto")
    block = folder.text
    other = folder.folder / "c0ffee00-0000-4000-8000-000000000002.jsonl"
    other.write_bytes(folder.transcript.read_bytes())
    folder.call("sessionEnd", reason="user_close", conversation_id=other.stem, transcript_path=str(other))
    assert until(lambda: "name=cursor_sessionEnd" in folder.log and not list((folder.home / "waiting").glob(".seat*")))
    assert folder.text == block


def test_what_is_forgotten_is_gone_from_it(folder: Folder) -> None:
    folder.install("--rule")
    folder.call("preCompact", trigger="auto")
    assert EMPTY not in folder.text
    handle = json.loads(folder.command("sessions", "--json").stdout)[0]["handle"]
    done = folder.command("forget", handle, "--yes")
    assert done.returncode == 0, done.stderr
    assert EMPTY in folder.text


def test_a_file_that_was_deleted_stays_deleted_until_it_is_asked_for_again(folder: Folder) -> None:
    folder.install("--rule")
    folder.rule.unlink()
    folder.call("preCompact", trigger="auto")
    assert not folder.rule.exists()
    folder.install()
    assert not folder.rule.exists()
    folder.install("--rule")
    assert EMPTY in folder.text


def test_a_file_of_the_users_is_never_touched(folder: Folder) -> None:
    folder.rule.parent.mkdir(parents=True)
    folder.rule.write_text("mine", encoding="utf-8")
    done = folder.install("--rule")
    assert done.returncode == 1 and b"is not ours" in done.stderr
    folder.rule.unlink()
    folder.install("--rule")
    folder.rule.write_text("mine", encoding="utf-8")
    folder.call("preCompact", trigger="auto")
    folder.run("uninstall", "cursor")
    assert folder.text == "mine"


@pytest.mark.parametrize("had", ["nothing", "rules"])
def test_uninstalling_leaves_the_folder_as_it_was(folder: Folder, had: str) -> None:
    if had == "rules":
        folder.rule.parent.mkdir(parents=True)
    before = sorted(folder.project.rglob("*"))
    folder.install("--rule")
    folder.call("preCompact", trigger="auto")
    assert folder.install("--rule").stdout.count(b"nothing to do") == 1
    assert EMPTY not in folder.text, "a second install takes nothing away"
    assert folder.command("uninstall", "cursor").returncode == 0
    assert sorted(folder.project.rglob("*")) == before
    assert not (folder.home / "rules.json").exists()


def test_other_harnesses_have_no_use_for_one(folder: Folder) -> None:
    done = folder.run("install", "--rule", "codex", "claude-code")
    assert done.returncode == 2 and b"--rule is for cursor" in done.stderr
