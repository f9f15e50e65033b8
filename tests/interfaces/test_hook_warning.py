"""What a prompt gives of a warning that waits: to the user and to the agent, once, and never in the place of a block."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.pressure import Occupancy, Window
from obsmem.harnesses import PROMPTS, load
from obsmem.memory.render import PART_BYTES
from obsmem.memory.warning import CLOSE, OPEN, Near, warning_words
from obsmem.system import warningfile
from obsmem.system.blockfile import RETRY, write_block
from obsmem.system.paths import session_folder
from obsmem.system.state import WARNING_FILE, State, write_state
from tests.interfaces.place import CONVERSATION, SCRIPT, Place, payload

NEAR = Near(
    Occupancy(120_000, 3_600, window=Window(200_000, mark=167_000, mark_source="learned")), pins=2, pin_tokens=48
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def leave(folder: Path, name: str = "-1:0.72", near: Near = NEAR) -> tuple[str, str]:
    notice, text = warning_words(near)
    warningfile.leave_warning_file(str(folder), name, notice, text)
    return notice, text


def prompt(place: Place, **changes: Any) -> bytes:
    done = place.hook("claude-code", "UserPromptSubmit", given=place.payload("UserPromptSubmit", **changes))
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def test_the_user_and_the_agent_are_told_and_once(place: Place) -> None:
    notice, text = leave(place.notes_folder)
    told = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    assert json.loads(prompt(place)) == {"systemMessage": notice, "hookSpecificOutput": told}
    assert prompt(place) == b""
    assert warningfile.given_warning(str(place.notes_folder)) == "-1:0.72"
    leave(place.notes_folder, "-1:0.9")
    assert json.loads(prompt(place))["systemMessage"] == notice


def test_of_many_prompts_at_once_one_tells(place: Place) -> None:
    leave(place.notes_folder)
    given = place.payload("UserPromptSubmit")
    running = [
        subprocess.Popen(
            place.hook_command("claude-code", "UserPromptSubmit"), stdin=-1, stdout=-1, env=place.environment
        )
        for _ in range(6)
    ]
    said = [process.communicate(given, timeout=60)[0] for process in running]
    assert len([one for one in said if one]) == 1


def test_a_second_try_comes_before_it_and_both_stay_within_one_part(place: Place) -> None:
    _, text = leave(place.notes_folder)
    write_block(str(place.notes_folder / RETRY), "d", ("b" * 400,))
    both = json.loads(prompt(place))["hookSpecificOutput"]["additionalContext"]
    assert both == f"{'b' * 400}\n{text}"
    leave(place.notes_folder)
    write_block(str(place.notes_folder / RETRY), "e", ("b" * PART_BYTES,))
    first, second = json.loads(prompt(place)), json.loads(prompt(place))
    assert first["hookSpecificOutput"]["additionalContext"] == "b" * PART_BYTES and "systemMessage" not in first
    assert second["hookSpecificOutput"]["additionalContext"] == text


def test_a_warning_is_no_longer_than_a_part() -> None:
    assert warningfile.GIVEN_BYTES == PART_BYTES
    longest = Near(NEAR.occupancy, True, 999, 99_999, "/" + "x" * 250, "/" + "y" * 250, shown=False)
    notice, text = warning_words(longest)
    assert len(text.encode()) < PART_BYTES / 2 and len(notice) < 2_000 and "\n" not in notice
    assert text.startswith(OPEN) and text.endswith(CLOSE)


def test_it_says_the_numbers_and_what_is_pinned() -> None:
    notice, text = warning_words(NEAR)
    for said in (notice, text):
        assert "74 %" in said and "123,600 of 167,000" in said and "2 pins (48 tokens)" in said
        assert "observational-memory pin" in said
    assert "recall ID" in text and "learned" in text and "handoff" in text
    assert "tell them" not in text and "tell them" in warning_words(NEAR._replace(shown=False))[1]
    assert "nothing is pinned" in warning_words(NEAR._replace(pins=0))[0]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"obsmem-warning 1 x", b"obsmem-warning 2 x\ny\nz", b"{}" * 20_000]
)
def test_a_damaged_file_tells_nothing(place: Place, content: bytes) -> None:
    place.notes_folder.mkdir(parents=True)
    (place.notes_folder / WARNING_FILE).write_bytes(content)
    assert prompt(place) == b""


def test_where_memory_is_off_or_in_a_worker_nothing_is_told(place: Place) -> None:
    leave(place.notes_folder)
    for name in ("OBSERVATIONAL_MEMORY_WORKER", "OBSERVATIONAL_MEMORY_OFF"):
        done = place.hook("claude-code", "UserPromptSubmit", given=place.payload("UserPromptSubmit"), env={name: "1"})
        assert done.stdout == b""
    write_state(str(place.notes_folder), State(off=True))
    assert prompt(place) == b""
    assert (place.notes_folder / WARNING_FILE).exists()


def test_a_sub_agent_is_not_warned(place: Place) -> None:
    leave(place.notes_folder)
    assert prompt(place, agent_id="a1", agent_type="explorer") == b""
    assert (place.notes_folder / WARNING_FILE).exists()


def call(place: Place, harness: str, value: dict[str, Any], folder: Path, near: Near = NEAR) -> dict[str, Any]:
    """What another harness's prompt answers when a warning waits."""
    leave(folder, near=near)
    done = place.hook(harness, PROMPTS[harness][0], given=json.dumps(value).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_each_harness_gets_it_in_its_own_form(place: Place) -> None:
    notice, text = warning_words(NEAR)
    path = str(place.folder / "rollout-1.jsonl")
    value = payload("codex", "UserPromptSubmit", session_id="s1", transcript_path=path, cwd=str(place.project))
    folder = Path(session_folder(str(place.home), "codex", path, "s1"))
    told = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    assert call(place, "codex", value, folder) == {"systemMessage": notice, "hookSpecificOutput": told}

    path = str(place.folder / f"{CONVERSATION}.jsonl")
    value = {"conversation_id": CONVERSATION, "cursor_version": "3.1", "workspace_roots": [str(place.project)]}
    folder = Path(session_folder(str(place.home), "cursor", path, CONVERSATION))
    hidden = NEAR._replace(shown=load("cursor").SHOWS_NOTICES)
    answer = call(place, "cursor", {**value, "transcript_path": path}, folder, hidden)
    assert answer == {"additional_context": warning_words(hidden)[1]} and "tell them" in answer["additional_context"]

    path = str(place.folder / "opencode.db")
    value = {"sessionID": "ses_1", "directory": str(place.project), "db": path}
    folder = Path(session_folder(str(place.home), "opencode", path, "ses_1"))
    assert call(place, "opencode", value, folder) == {"context": text, "notice": notice}


def test_a_prompt_without_anything_to_tell_looks_for_two_files_and_loads_nothing(place: Place) -> None:
    place.remember()
    loaded = (
        "import sys; bare = set(sys.modules); sys.path.insert(0, sys.argv[1]); sys.argv[:] = sys.argv[2:];"
        "import observational_memory; observational_memory.main();"
        "sys.stderr.write(' '.join(sorted(set(sys.modules) - bare)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", loaded, os.path.dirname(SCRIPT), str(SCRIPT), "hook", "claude-code", "UserPromptSubmit"],
        input=place.payload("UserPromptSubmit"), capture_output=True, env=place.environment, timeout=60, check=True,
    )  # fmt: skip
    ours = {name for name in done.stderr.decode().split() if name.startswith("obsmem.")}
    assert not {
        name for name in ours if name.startswith(("obsmem.harnesses.", "obsmem.interfaces.hook_", "obsmem.core"))
    }
