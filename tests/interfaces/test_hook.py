"""Hooks as harnesses run them: real processes, recorded payloads, and everything that can be broken around them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from obsmem.harnesses.written import receipts
from obsmem.interfaces import hook
from obsmem.system import blockfile
from tests.interfaces.place import SCRIPT, SESSION, Place, alive, context, payload, until

posix_only = pytest.mark.skipif(os.name != "posix", reason="process groups are a thing of POSIX systems")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def state(place: Place, **values: object) -> None:
    """Write the session's state file by hand."""
    place.notes_folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{name} {value}\n" for name, value in values.items())
    (place.notes_folder / "state").write_text(text, encoding="utf-8")


def notes(place: Place) -> int:
    """How many notes the store holds; 0 while there is none."""
    try:
        connection = sqlite3.connect(f"file:{place.home / 'memory.db'}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error:
        return 0


def untouched(place: Place) -> bool:
    """True if no database was made."""
    return not list(place.home.glob("*.db")) if place.home.exists() else True


# A turn's end


def test_stop_above_the_threshold_starts_the_maintainer(place: Place) -> None:
    done = place.hook("claude-code", "Stop", given=place.payload("Stop"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert until(lambda: (place.notes_folder / "block.next").exists())
    assert notes(place) > 10
    assert f"read {place.transcript.stat().st_size}\n" in (place.notes_folder / "state").read_text(encoding="utf-8")


def test_stop_below_the_threshold_starts_nothing_and_says_nothing(place: Place) -> None:
    size = place.transcript.stat().st_size
    state(place, read=size - 1_000, rate=0.1, after=10_000)
    assert place.hook("claude-code", "Stop", given=place.payload("Stop")).returncode == 0
    assert place.log == "" and untouched(place)


def test_stop_looks_again_at_a_transcript_that_shrank(place: Place) -> None:
    state(place, read=10**9, rate=0.1, after=10_000)
    place.hook("claude-code", "Stop", given=place.payload("Stop"))
    assert until(lambda: notes(place) > 10)


def test_stop_of_codex_reads_its_own_payload(place: Place) -> None:
    given = payload("codex", "Stop", transcript_path=str(place.transcript), cwd=str(place.project))
    place.home.mkdir()
    (place.home / "interpreter").write_text("/bin/true", encoding="utf-8")
    assert place.hook("codex", "Stop", given=json.dumps(given).encode()).stdout == b""
    assert "hook name=codex_Stop outcome=started" in place.log


def test_stop_of_cursor_answers_with_an_empty_object(place: Place) -> None:
    given = {"conversation_id": "c", "transcript_path": "/nowhere.jsonl", "workspace_roots": [str(place.project)]}
    assert place.hook("cursor", "stop", given=json.dumps(given).encode()).stdout == b"{}"


@posix_only
def test_the_maintainer_survives_the_process_group_of_the_hook(place: Place) -> None:
    mark = place.folder / "survived"
    program = place.folder / "program"
    program.write_text(f'#!/bin/sh\necho $$ > "{mark}.pid"\nsleep 1\necho yes > "{mark}"\n', encoding="utf-8")
    program.chmod(0o755)
    place.home.mkdir()
    (place.home / "interpreter").write_text(str(program), encoding="utf-8")
    command = place.hook_command("claude-code", "Stop")
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env=place.environment, start_new_session=True)
    child.communicate(place.payload("Stop"), timeout=60)
    assert until(lambda: Path(f"{mark}.pid").exists())
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nobody of the hook's own group is left
    assert until(mark.exists)


def test_a_session_is_its_transcript_whatever_id_a_hook_gives(place: Place) -> None:
    """Three ids for one file, as after resumes: one session, one folder, and its block comes whichever id asks."""
    other, third = (SESSION.replace("5d0c", name) for name in ("aaaa", "bbbb"))
    given = place.payload("PreCompact-auto", session_id=other)
    assert place.hook("claude-code", "PreCompact", given=given).returncode == 0
    start = place.payload("SessionStart-compact", source="compact", session_id=third)
    printed = place.hook("claude-code", "SessionStart", "--part", "1/4", given=start).stdout
    assert "## Now" in context(printed), place.log
    place.hook("claude-code", "Stop", given=place.payload("Stop"))
    sessions = json.loads(place.command("sessions", "--all", "--json").stdout)
    assert [one["id"] for one in sessions] == [SESSION]
    assert len(list((place.home / "sessions" / "claude-code").iterdir())) == 1


# Reasons to do nothing


@pytest.mark.parametrize("variable", ["OBSERVATIONAL_MEMORY_WORKER", "OBSERVATIONAL_MEMORY_OFF"])
def test_no_hook_does_anything_inside_a_worker_or_when_switched_off(place: Place, variable: str) -> None:
    for event, name in (("Stop", "Stop"), ("PreCompact", "PreCompact-auto"), ("SessionStart", "SessionStart-compact")):
        done = place.hook("claude-code", event, given=place.payload(name), env={variable: "1"})
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not place.home.exists()


def test_off_files_of_machine_project_and_session_hold(place: Place) -> None:
    place.home.mkdir()
    (place.home / "off").touch()
    place.hook("claude-code", "Stop", given=place.payload("Stop"))
    (place.home / "off").unlink()
    (place.folder / ".observational-memory-off").touch()  # above the working folder
    place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
    (place.folder / ".observational-memory-off").unlink()
    state(place, off=1)
    place.hook("claude-code", "Stop", given=place.payload("Stop"))
    place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
    assert untouched(place)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nobody", "Stop"),
        ("claude-code", "NoSuchEvent"),
        ("claude-code",),
        (),
        ("claude-code", "SessionStart", "--part"),
    ],
)
def test_unknown_words_are_passed_over(place: Place, arguments: tuple[str, ...]) -> None:
    done = place.hook(*arguments, given=b"{}")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


GARBAGE = [b"", b"\x00\xff\xfe garbage", b"[1, 2]", b"null", b'{"session_id": 7, "transcript_path": {}, "cwd": []}', b'{"a": "\\ud800', b"[" * 5_000]  # fmt: skip


@pytest.mark.parametrize("given", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionStart"])
def test_garbage_on_standard_input_harms_nothing(place: Place, event: str, given: bytes) -> None:
    place.home.mkdir()
    (place.home / "interpreter").write_text("/bin/false", encoding="utf-8")
    done = place.hook("claude-code", event, given=given)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert untouched(place)


@posix_only
def test_a_standard_input_that_never_closes_does_not_hold_a_hook(place: Place) -> None:
    child = subprocess.Popen(
        place.hook_command("claude-code", "Stop"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=place.environment
    )
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(place.payload("Stop")[:20])
    child.stdin.flush()
    try:
        assert child.wait(timeout=60) == 0
        assert child.stdout.read() == b""
    finally:
        child.kill()
        child.stdin.close()


@posix_only
def test_a_reader_that_has_gone_does_not_change_the_exit_status(place: Place) -> None:
    place.remember()
    reading, writing = os.pipe()
    os.close(reading)
    command = place.hook_command("claude-code", "SessionStart", "--part", "1/4")
    given = place.payload("SessionStart-compact")
    done = subprocess.run(command, input=given, stdout=writing, stderr=subprocess.PIPE, env=place.environment)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "outcome=BrokenPipeError" in place.log


# Before a compaction


def test_before_a_compaction_nothing_is_printed_and_a_block_is_left(place: Place) -> None:
    done = place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (place.notes_folder / "block.next").read_bytes().startswith(b"obsmem-block 1 ")
    assert notes(place) > 10 and "name=claude-code_PreCompact outcome=exit-0" in place.log


def test_what_a_compaction_is_to_attend_to_stands_in_its_block_and_not_in_that_of_the_next(place: Place) -> None:
    place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-manual"))
    asked = 'The user asked the compaction to attend to: "keep the names"'
    assert asked in (place.notes_folder / "block.next").read_text(encoding="utf-8")
    place.hook("claude-code", "PreCompact", given=place.payload("PreCompact-auto"))
    assert asked not in (place.notes_folder / "block.next").read_text(encoding="utf-8")


@posix_only
def test_at_the_deadline_the_whole_group_is_dead_and_nothing_is_printed(
    place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A program that hangs, with a child of its own, in the place of the maintainer."""
    pids = place.folder / "pids"
    program = place.folder / "program"
    program.write_text(f'#!/bin/sh\nsleep 60 &\necho "$$ $!" > "{pids}.new"\nmv "{pids}.new" "{pids}"\nsleep 60\n')
    program.chmod(0o755)
    place.home.mkdir()
    (place.home / "interpreter").write_text(str(program), encoding="utf-8")
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(place.home))
    monkeypatch.setattr(hook, "COMPACT_SECONDS", 1.0)
    monkeypatch.setattr(hook, "_set_alarm", lambda seconds: None)
    given = place.payload("PreCompact-auto")
    monkeypatch.setattr(hook, "read_payload", lambda: json.loads(given))
    assert hook.run(["claude-code", "PreCompact"], str(SCRIPT)) == 0
    numbers = [int(word) for word in pids.read_text(encoding="utf-8").split()]
    assert len(numbers) == 2
    assert until(lambda: not any(alive(number) for number in numbers))
    with pytest.raises(ChildProcessError):
        os.waitpid(numbers[0], os.WNOHANG)  # it was reaped
    assert capfd.readouterr().out == "" and "outcome=killed" in place.log


# After a compaction


def test_four_parts_at_once_are_one_delivery(place: Place) -> None:
    place.remember()
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(place.start, (1, 2, 3, 4)))
    texts = [text for text in map(context, outputs) if text]
    assert 1 <= len(texts) <= 4 and all(len(text.encode()) <= 9_500 for text in texts)
    marks = [receipts(text)[0].split(" ") for text in texts]
    assert len({delivery for delivery, _ in marks}) == 1
    assert [part for _, part in marks] == [f"{n}/{len(texts)}" for n in range(1, len(texts) + 1)]
    assert "## Now\nLast instruction" in texts[0]
    assert outputs[len(texts) :] == [b""] * (4 - len(texts)), "a part beyond the count prints nothing"


def test_the_first_delivery_stays_as_it_is_though_the_maintainer_renders_again(place: Place) -> None:
    place.remember()
    first = place.start(1)
    with place.transcript.open("ab") as file:
        record = {"type": "user", "uuid": "00000000-aaaa-4000-8000-000000000001", "sessionId": SESSION,
                  "timestamp": "2026-03-02T10:00:00.000Z", "message": {"role": "user", "content": "Now paint it blue."}}  # fmt: skip
        file.write(json.dumps(record).encode() + b"\n")
    done = place.command("maintain", "claude-code", "--transcript", str(place.transcript), "--session", SESSION)
    assert done.returncode == 0
    assert b"paint it blue" in (place.notes_folder / "block.next").read_bytes()
    assert place.start(1) == b"", "a part is given once"
    assert first and blockfile.read(str(place.notes_folder / "block.current"))[1][0] == context(first)
    place.remember()  # the next compaction
    assert "paint it blue" in context(place.start(1))


@pytest.mark.parametrize("source", ["startup", "resume", "clear"])
def test_other_starts_of_a_session_print_nothing(place: Place, source: str) -> None:
    place.remember()
    assert place.start(1, source) == b""


@pytest.mark.parametrize("source", ["compact", "fork", "tomorrow", ""])
def test_an_unknown_source_is_answered_like_a_compaction(place: Place, source: str) -> None:
    place.remember()
    assert "## Now" in context(place.start(1, source))


def test_a_first_start_without_any_rendering_makes_one(place: Place) -> None:
    assert "## Now" in context(place.start(1))


def test_four_parts_at_once_without_any_rendering_are_one_whole_delivery(place: Place) -> None:
    assert not place.home.exists()
    with ThreadPoolExecutor(4) as pool:
        texts = [text for text in map(context, pool.map(place.start, (4, 3, 2, 1))) if text][::-1]
    marks = [receipts(text)[0].split(" ") for text in texts]
    assert len({delivery for delivery, _ in marks}) == 1
    assert [part for _, part in marks] == [f"{n}/{len(texts)}" for n in range(1, len(texts) + 1)]


@pytest.mark.parametrize("part", ["0/4", "x/y", "9/4", "-1/4"])
def test_an_odd_part_number_is_no_failure(place: Place, part: str) -> None:
    place.remember()
    given = place.payload("SessionStart-compact")
    done = place.hook("claude-code", "SessionStart", "--part", part, given=given)
    assert done.returncode == 0 and done.stderr == b""
    context(done.stdout)


def test_codex_gets_the_same_words_in_any_locale(place: Place) -> None:
    transcript = place.folder / "rollout-2026-04-08T13-20-06-019d6c41-7f02-7a53-b1de-5c90e2f4a816.jsonl"
    shutil.copy(next((SCRIPT.parent / "fixtures" / "demo" / "codex").iterdir()), transcript)
    given = payload("codex", "SessionStart-compact", transcript_path=str(transcript), cwd=str(place.project))
    outputs = []
    for locale in ("C.UTF-8", "C", "POSIX", "en_US.ISO-8859-1"):
        calls = (("PreCompact",), ("SessionStart",))
        for call in calls:
            done = place.hook("codex", *call, given=json.dumps(given).encode(), env={"LC_ALL": locale})
        outputs.append(done.stdout)
    assert len(set(outputs)) == 1 and "→" in context(outputs[0])
    marks = receipts(context(outputs[0]))
    assert [mark.split(" ")[1] for mark in marks] == [f"{n}/{len(marks)}" for n in range(1, len(marks) + 1)], (
        "one handler"
    )


# The end of a session


def test_the_end_of_a_session_starts_the_maintainer_whatever_the_threshold(place: Place) -> None:
    state(place, read=place.transcript.stat().st_size, rate=0.1, after=10_000)
    started = time.time()
    done = place.hook("claude-code", "SessionEnd", given=place.payload("SessionEnd"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert until(lambda: "maintain harness=claude-code outcome=stretches" in place.log)
    assert (place.home / "archive.db").stat().st_mtime >= started - 1
