"""handoff, rotate, resume and export as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from obsmem.interfaces.mcp_scope import Asker
from obsmem.interfaces.mcp_tools import call_tool
from obsmem.store.memory_rotations import TAKEN
from obsmem.tasks.store import open_store
from tests.interfaces.conftest import Run
from tests.interfaces.place import SCRIPT

LAST = "30 per minute per address"


def test_a_handoff_is_printed_and_may_point_to_a_folder(run: Run, stored: Path, tmp_path: Path) -> None:
    assert LAST in run("handoff", "g3vo").out
    output = run("handoff", "g3vo", "--folder", str(tmp_path / "out"))
    assert LAST in output.out and str(tmp_path / "out") in output.out
    assert (tmp_path / "out" / "turns" / "0001.md").is_file()
    assert run("handoff", "g3vo", "--json", "--style", "cards").out.count("## Turns") >= 1
    nowhere = run("handoff")
    assert nowhere.status == 3 and "sessions" in nowhere.err


def test_a_mark_is_told_of_and_taken_back(run: Run, stored: Path) -> None:
    first = run("rotate", "g3vo")
    assert first.status == 0 and "is marked" in first.out
    again = run("rotate", "g3vo", "--style", "anchor")
    assert "was marked already" in again.out
    assert json.loads(run("rotate", "g3vo", "--json").out)["state"] == "waiting"
    assert len(os.listdir(stored / "handoffs")) == 1
    assert run("rotate", "g3vo", "--cancel").status == 0 and not (stored / "handoffs").exists()
    assert run("rotate", "g3vo", "--cancel").status == 3


def test_status_tells_what_continues_what_and_how_many_windows_there_were(run: Run, stored: Path) -> None:
    assert json.loads(run("status", "--json").out)["chains"] == []
    run("rotate", "g3vo", "--force")
    assert "session g3vo is marked, and its handoff waits" in run("status").out
    with open_store(str(stored)) as store:
        mark = store.memory.waiting_rotation("g3vo")
        assert mark is not None
        store.memory.end_rotation(mark.no, TAKEN, "c7cr")
        workspace = store.archive.by_handle("c7cr").session.workspace
        store.archive.connection.execute("UPDATE sessions SET workspace=? WHERE handle='g3vo'", (workspace,))
    told = "session c7cr continues g3vo: window 2 of this work"
    assert told in run("status").out.split("\n")
    (chain,) = json.loads(run("status", "--json").out)["chains"]
    assert (chain["session"], chain["continues"], chain["windows"], chain["marked"]) == ("c7cr", ["g3vo"], 2, False)
    assert told in call_tool("status", {}, Asker(workspace)).text.split("\n")
    assert told not in call_tool("status", {}, Asker(os.getcwd())).text
    assert "continues g3vo, rotation 1" in run("sessions").out


def test_resume_lists_what_there_is(run: Run, stored: Path) -> None:
    values = json.loads(run("resume", "--json").out)
    assert {value["session"] for value in values} == {"g3vo", "c7cr", "hufq", "qsgl"}
    listed = run("resume")
    assert all(value["first_prompt"][:40] in listed.out for value in values) and "resume NAME" in listed.err
    assert LAST in run("resume", "g3vo").out


def test_resume_starts_the_harness_in_the_sessions_folder(run: Run, stored: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    told = tmp_path / "told"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{told}"\nexit 7\n', encoding="utf-8")
    program.chmod(0o755)
    session = next(one for one in json.loads(run("sessions", "--json").out) if one["handle"] == "g3vo")

    def start(path: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), "resume", "g3vo", "--start"]
        return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60)

    assert start(f"{program.parent}:/usr/bin:/bin").returncode == 7, "its status is ours"
    assert told.read_text(encoding="utf-8") == f"--resume\n{session['id']}\n"
    transcript = Path(session["transcript"])
    data = transcript.read_bytes()
    transcript.unlink()
    try:
        start(f"{program.parent}:/usr/bin:/bin")
        assert LAST in told.read_text(encoding="utf-8"), "it begins anew, with the handoff"
        gone = start("/nowhere")
        assert gone.returncode == 3 and "handoff g3vo" in gone.stderr
    finally:
        transcript.write_bytes(data)


def test_an_export_says_what_it_wrote(run: Run, stored: Path, tmp_path: Path) -> None:
    output = run("export", "g3vo", "--folder", str(tmp_path / "out"))
    assert output.status == 0 and "11 turns" in output.out and "grep -rn" in output.out
    assert json.loads(run("export", "g3vo", "--folder", str(tmp_path / "out"), "--json").out)["written"] == 0
    assert run("export", "c7cr", "--folder", str(tmp_path / "out")).status == 2
