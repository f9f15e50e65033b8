"""A hook that shortens a tool's output: the whole is kept first, and comes back byte for byte, waiting or archived."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.ids import raw_id
from obsmem.system.paths import session_folder
from obsmem.system.raw_files import read_raw
from obsmem.system.shortening import Settings, write_settings
from tests.interfaces.place import SCRIPT
from tests.tasks.talk import CLAUDE, SESSION, Talk

PYTHON = os.path.realpath(sys.executable)
COMMAND = "pytest -q tests"
PASSED = "".join(f"tests/test_{n}.py::test_that_{n}_is_as_it_should_be PASSED [{n:3d}%]\n" for n in range(100))
OUTPUT = f"{'=' * 20} test session starts {'=' * 20}\ncollected 100 items\n\n{PASSED}\n{'=' * 20} 100 passed in 1.2s {'=' * 20}"


class Session:
    """A session of which a hook is asked, and what it leaves."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "data"
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.transcript = folder / f"{SESSION}.jsonl"
        self.talk = Talk(cwd=str(self.project))
        self.environment = {
            "PATH": os.environ["PATH"],
            "OBSERVATIONAL_MEMORY_HOME": str(self.home),
            "HOME": str(folder),
        }
        self.environment["OBSERVATIONAL_MEMORY_CONFIG"] = os.environ["OBSERVATIONAL_MEMORY_CONFIG"]

    def settings(self, **changes: Any) -> None:
        """What a maintainer compiled of the configuration."""
        self.home.mkdir(exist_ok=True)
        write_settings(str(self.home), Settings(reduce=True, **changes))

    @property
    def folder(self) -> Path:
        """Its folder of small files."""
        return Path(session_folder(str(self.home), CLAUDE, str(self.transcript), SESSION))

    @property
    def waiting(self) -> list[str]:
        """The ids of the outputs that wait."""
        folder = self.folder / "raw"
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def hook(self, call: str, output: str = OUTPUT, command: str = COMMAND, **more: Any) -> str:
        """What the shell's result becomes; '' where it stays."""
        response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, **more}
        payload = {
            "session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project),
            "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": command},
            "tool_response": response, "tool_use_id": call,
        }  # fmt: skip
        return self.answer("PostToolUse", payload)

    def answer(self, event: str, payload: dict[str, Any]) -> str:
        words = [PYTHON, "-I", "-S", str(SCRIPT), "hook", CLAUDE, event]
        done = subprocess.run(
            words, input=json.dumps(payload).encode(), env=self.environment, capture_output=True, timeout=60, check=True
        )
        assert done.stderr == b""
        if not done.stdout:
            return ""
        output: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"]
        assert output["hookEventName"] == "PostToolUse"
        assert set(output["updatedToolOutput"]) >= {"stdout", "stderr", "interrupted", "isImage"}
        return str(output["updatedToolOutput"]["stdout"])

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """One of our commands, in this world."""
        return subprocess.run(
            [sys.executable, str(SCRIPT), *words], env=self.environment, capture_output=True, timeout=120
        )

    def tell(self, output: str, command: str = COMMAND) -> str:
        """Let the transcript go on with this result; returns the id of its call, which must be the hook's."""
        self.talk.run(command, output)
        self.transcript.write_bytes(b"".join(self.talk.lines()))
        return str(self.talk.records[-1]["message"]["content"][0]["tool_use_id"])


def call_of(talk: Talk) -> str:
    """The id that the next call will have."""
    return f"toolu_{talk.session[-2:]}{talk.number}"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def shortened(session: Session, output: str = OUTPUT) -> tuple[str, str]:
    """(the shortened words, the id of the whole) of a result that then stands in the transcript."""
    call = call_of(session.talk)
    words = session.hook(call, output)
    assert session.tell(words) == call
    return words, raw_id(CLAUDE, SESSION, call)


def test_nothing_happens_without_the_users_word(session: Session) -> None:
    assert session.hook("toolu_1") == ""
    assert not session.home.exists() or session.waiting == []


def test_the_whole_waits_privately_before_less_of_it_is_given(session: Session) -> None:
    session.settings()
    words = session.hook("toolu_1")
    assert len(words) < len(OUTPUT) / 2
    assert "100 passed" in words
    id_ = raw_id(CLAUDE, SESSION, "toolu_1")
    assert id_ in words
    (name,) = session.waiting
    assert name == id_
    path = session.folder / "raw" / id_
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    raw = read_raw(str(path))
    assert raw is not None
    assert raw.data == OUTPUT.encode()
    assert raw.call_id == "toolu_1"


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({}, COMMAND + "  # whole output"),
        ({"excluded": ("pytest *",)}, COMMAND),
        ({"minimum": 100_000}, COMMAND),
        ({}, "recall 7c2e.12"),
    ],
    ids=["marker", "excluded", "minimum", "own"],
)
def test_what_is_to_stay_whole_stays_so(session: Session, changes: dict[str, Any], command: str) -> None:
    session.settings(**changes)
    assert session.hook("toolu_1", command=command) == ""
    assert session.waiting == []


def test_an_excluded_folder_or_a_projects_off_switch_keeps_it_whole(session: Session) -> None:
    session.settings(never=(str(session.project),))
    assert session.hook("toolu_1") == ""
    session.settings()
    (session.project / ".observational-memory.yaml").write_text("off: true\n", encoding="utf-8")
    assert session.hook("toolu_1") == ""
    assert session.waiting == []


def test_a_place_that_cannot_be_written_to_leaves_the_output_as_it_is(session: Session) -> None:
    session.settings()
    session.folder.parent.mkdir(parents=True)
    session.folder.write_text("a file where the folder should be", encoding="utf-8")
    assert session.hook("toolu_1") == ""
    assert "outcome=" in (session.home / "log.txt").read_text(encoding="utf-8")


def test_a_sub_agents_output_and_a_picture_stay_as_they_are(session: Session) -> None:
    session.settings()
    payload = {"session_id": SESSION, "transcript_path": str(session.transcript), "cwd": str(session.project),
               "tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": "t1", "agent_id": "a1",
               "tool_response": {"stdout": OUTPUT, "stderr": "", "interrupted": False}}  # fmt: skip
    assert session.answer("PostToolUse", payload) == ""
    assert session.hook("toolu_2", isImage=True) == ""
    assert session.hook("toolu_3", interrupted=True) == ""


def test_of_a_spilled_output_the_file_is_kept_and_not_what_the_payload_shows(session: Session, tmp_path: Path) -> None:
    session.settings()
    whole = OUTPUT.replace("100 passed", "and\n" * 9000 + "100 passed")
    spilled = tmp_path / "spilled.txt"
    spilled.write_text(whole, encoding="utf-8")
    more = {"persistedOutputPath": str(spilled), "persistedOutputSize": len(whole)}
    words = session.hook("toolu_1", whole[:30_000], **more)
    assert "100 passed" in words
    raw = read_raw(str(session.folder / "raw" / session.waiting[0]))
    assert raw is not None
    assert raw.data == whole.encode()
    spilled.unlink()
    assert session.hook("toolu_2", whole[:30_000], **more) == "", "without its file the whole is nowhere"


def test_the_same_output_again_becomes_a_pointer_until_the_context_changes(session: Session) -> None:
    session.settings()
    first, again = session.hook("toolu_1"), session.hook("toolu_2")
    assert len(again) < len(first)
    assert "the same output" in again
    assert raw_id(CLAUDE, SESSION, "toolu_2") in again
    assert "as at" in session.hook("toolu_2b"), "not to the pointer, but to the first"
    compaction = {"session_id": SESSION, "transcript_path": str(session.transcript), "cwd": str(session.project)}
    session.answer("PreCompact", {**compaction, "trigger": "manual"})
    assert session.hook("toolu_3").replace(raw_id(CLAUDE, SESSION, "toolu_3"), "") == first.replace(
        raw_id(CLAUDE, SESSION, "toolu_1"), ""
    )


@pytest.mark.parametrize("milliseconds", [20, 40, 60, 80, 110, 150, 200, 300])
def test_a_hook_that_is_killed_leaves_the_output_as_it_was_or_the_whole_behind(
    session: Session, milliseconds: int
) -> None:
    session.settings()
    response = {"stdout": OUTPUT, "stderr": "", "interrupted": False}
    payload = {"session_id": SESSION, "transcript_path": str(session.transcript), "cwd": str(session.project), "tool_name": "Bash",
               "tool_input": {"command": COMMAND}, "tool_response": response, "tool_use_id": "toolu_1"}  # fmt: skip
    words = [PYTHON, "-I", "-S", str(SCRIPT), "hook", CLAUDE, "PostToolUse"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=session.environment)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(payload).encode())
    process.stdin.close()
    time.sleep(milliseconds / 1000)
    process.kill()
    printed = process.stdout.read()
    process.wait()
    process.stdout.close()
    found = [read_raw(str(session.folder / "raw" / name)) for name in session.waiting if not name.endswith(".tmp")]
    assert all(one is not None and one.data == OUTPUT.encode() for one in found), "whole, or not there"
    assert found or not printed


def test_what_waits_is_recalled_byte_for_byte_and_so_is_what_is_archived(session: Session) -> None:
    session.settings()
    assert session.run("sync").returncode == 0  # an empty store
    words, id_ = shortened(session)
    call = str(session.talk.records[-1]["message"]["content"][0]["tool_use_id"])
    for archived in (False, True):
        if archived:
            assert session.run("ingest", str(session.transcript)).returncode == 0
            assert session.waiting == [], "the archive has it now"
        assert session.run("recall", id_, "--raw").stdout == OUTPUT.encode()
        assert session.run("get", id_, "--raw").stdout == OUTPUT.encode()
        shown = session.run("recall", id_).stdout.decode()
        assert PASSED.split("\n")[0] in shown
        piece = json.loads(session.run("get", id_, "--json", "--range", "0:99999").stdout)
        assert piece["text"] == OUTPUT
        pieces = json.loads(session.run("tool", call, "--json", "--range", "0:99999").stdout)
        assert pieces[-1]["text"] == OUTPUT
    assert words != OUTPUT
    found = session.run("search", "--everywhere", "test_that_57_is_as_it_should_be").stdout.decode()
    assert found.split("\n")[0].split("]")[0].endswith(".1"), "a search finds what was folded away"


def test_bytes_that_differ_from_their_digest_are_nobodys_output(session: Session) -> None:
    session.settings()
    _, id_ = shortened(session)
    path = session.folder / "raw" / id_
    path.write_bytes(path.read_bytes()[:-1])
    assert session.run("ingest", str(session.transcript)).returncode == 0
    assert session.run("recall", id_, "--raw").returncode != 0
    assert path.exists()


@pytest.mark.parametrize("archived", [False, True])
def test_the_agents_tools_give_it_in_its_own_workspace_alone(session: Session, tmp_path: Path, archived: bool) -> None:
    session.settings()
    _, id_ = shortened(session)
    call = str(session.talk.records[-1]["message"]["content"][0]["tool_use_id"])
    made = (
        session.run("ingest", str(session.transcript)) if archived else session.run("sync")
    )  # a store with nothing in it
    assert made.returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    asked = (("recall", {"id": id_}), ("get", {"id": id_}), ("tool", {"call_id": call}))
    for name, given in asked:
        for folder, is_there in ((session.project, True), (elsewhere, False)):
            done = subprocess.run(
                [sys.executable, str(SCRIPT), "mcp", "--call", name],
                input=json.dumps({**given, "max_tokens": 7000}).encode(), env=session.environment, cwd=folder, capture_output=True, timeout=60,
            )  # fmt: skip
            told = (done.stdout + done.stderr).decode()
            assert ("test_that_0_is_as_it_should_be" in told) == is_there, (name, told[:300])
