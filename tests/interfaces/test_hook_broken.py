"""Hooks where everything around them is broken: the agent never notices, and the user is told once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from obsmem.system.notice import leave_trouble, take_notice
from tests.interfaces.place import Cursor, Place, context
from tests.interfaces.test_hook import posix_only, untouched


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def broken_interpreter(place: Place) -> None:
    """Children run under an interpreter without the packages."""
    program = place.folder / "bare-python"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    place.home.mkdir()
    (place.home / "interpreter").write_text(str(program), encoding="utf-8")


def test_without_the_packages_the_log_tells_and_the_next_start_tells_the_user(place: Place) -> None:
    broken_interpreter(place)
    done = place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    told = json.loads(place.start(1, source="startup"))
    assert set(told) == {"systemMessage"} and told["systemMessage"].endswith('observational_memory.py" setup')
    assert place.start(1, source="startup") == b""
    assert "name=claude-code_PreCompact outcome=exit-1" in place.log and untouched(place)


def test_a_recorded_interpreter_that_is_gone_is_replaced_by_the_hooks_own(place: Place) -> None:
    place.home.mkdir()
    (place.home / "interpreter").write_text("/nowhere/python3", encoding="utf-8")
    place.remember()


def test_a_recorded_interpreter_that_cannot_run_is_logged(place: Place) -> None:
    place.home.mkdir()
    (place.home / "interpreter").write_text(str(place.transcript), encoding="utf-8")
    for event, name in (("Stop", "Stop"), ("PreCompact", "PreCompact-auto"), ("SessionStart", "SessionStart-compact")):
        done = place.hook("claude-code", event, given=place.payload(name))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert place.log.count("outcome=PermissionError") == 3


def damage_store(place: Place) -> None:
    (place.home / "archive.db").write_bytes(b"this is no database" * 100)


def break_config(place: Place) -> None:
    path = place.folder / "config.yaml"
    path.write_text("budget_tokens: [many\n", encoding="utf-8")
    place.environment["OBSERVATIONAL_MEMORY_CONFIG"] = str(path)


@pytest.mark.parametrize("spoil", [damage_store, break_config])
def test_what_keeps_the_background_from_working_gives_the_model_nothing_and_the_user_is_told_once_a_day(
    place: Place, spoil: Callable[[Place], None]
) -> None:
    place.home.mkdir()
    spoil(place)
    for again in (False, True):  # the second failure of a day is no news
        done = place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        printed = [place.start(1, source) for source in ("startup", "compact")]
        told = [json.loads(one) for one in printed if one]
        assert [set(one) for one in told] == ([] if again else [{"systemMessage"}])
    assert "maintain harness=claude-code outcome=failed-" in place.log


def test_where_the_user_sees_no_notices_none_is_used_up(tmp_path: Path) -> None:
    cursor = Cursor(tmp_path / "place")
    leave_trouble(str(cursor.home), "StoreError")
    assert "StoreError" not in json.dumps(cursor.call("sessionStart"))
    assert "StoreError" in take_notice(str(cursor.home), "claude-code")


def test_trouble_that_is_over_is_not_told_of(place: Place) -> None:
    place.home.mkdir()
    damage_store(place)
    place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
    (place.home / "archive.db").unlink()
    place.remember()
    assert "systemMessage" not in json.loads(place.start(1))


@pytest.mark.parametrize("content", [b"", b"obsmem-block 1 abc 2\n9999\nshort", b"obsmem-block 1 abc\n", b"\x00" * 99])
def test_a_damaged_block_is_made_anew_or_not_delivered(place: Place, content: bytes) -> None:
    place.remember()
    (place.notes_folder / "block.next").write_bytes(content)
    words = context(place.start(1))
    assert not words or "## Now" in words
    place.remember()
    assert "## Now" in context(place.start(1))


@posix_only
def test_a_deleted_working_folder_is_no_obstacle(place: Place) -> None:
    gone = place.folder / "gone"
    gone.mkdir()
    command = " ".join(f"'{word}'" for word in place.hook_command("claude-code", "PreCompact"))
    given = place.payload("PreCompact-auto", cwd=str(gone))
    done = subprocess.run(
        ["/bin/sh", "-c", f"cd '{gone}' && rmdir '{gone}' && exec {command}"],
        input=given, capture_output=True, env=place.environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"")
    assert (place.notes_folder / "block.next").exists(), place.log


def test_a_data_folder_that_cannot_be_made_is_no_obstacle(place: Place) -> None:
    (place.folder / "file").write_bytes(b"")
    place.environment["OBSERVATIONAL_MEMORY_HOME"] = str(place.folder / "file" / "data")
    for event, name in (("Stop", "Stop"), ("PreCompact", "PreCompact-auto"), ("SessionStart", "SessionStart-compact")):
        done = place.hook("claude-code", event, given=place.payload(name))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_transcript_that_is_gone_is_no_obstacle(place: Place) -> None:
    place.transcript.unlink()
    for event, name in (("Stop", "Stop"), ("PreCompact", "PreCompact-auto"), ("SessionStart", "SessionStart-compact")):
        done = place.hook("claude-code", event, given=place.payload(name))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
