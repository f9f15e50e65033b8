"""forget, fsck, index, maintain, hooks: what they change, what they ask before, and how they end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from obsmem.system.paths import session_folder
from tests.interfaces.conftest import Run
from tests.interfaces.place import DEMO, ENTRIES, LIMIT, PORT, SCRIPT, SESSION

TELLING = b"30 per minute per address"


def entries(home: Path) -> int:
    with sqlite3.connect(home / "archive.db") as connection:
        return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])


def test_forget_asks_and_removes_nothing_where_nobody_can_answer(stored: Path) -> None:
    before = entries(stored)
    command = [sys.executable, str(SCRIPT), "forget", "g3vo"]
    done = subprocess.run(command, capture_output=True, env=os.environ, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and done.stdout == b"" and b"--yes" in done.stderr
    assert entries(stored) == before


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("yes", 0), ("n", 1), ("", 1)])
def test_forget_does_what_a_person_answers(
    run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    before = entries(stored)
    assert run("forget", "g3vo").status == status
    assert (entries(stored) < before) == (status == 0)


def test_forget_of_a_session_says_what_went_and_how_to_allow_it_again(run: Run, stored: Path) -> None:
    for twin in ("c7cr", "qsgl"):  # they tell the same story
        assert run("forget", twin, "--yes").status == 0
    assert any(TELLING in path.read_bytes() for path in stored.rglob("*") if path.is_file())
    output = run("forget", "g3vo", "--yes")
    assert output.status == 0 and f"{ENTRIES} entries" in output.out and "transcript is not touched" in output.out
    assert "g3vo" not in run("sessions").out and run("recall", f"g3vo.{LIMIT}").status == 3
    assert all(TELLING not in path.read_bytes() for path in stored.rglob("*") if path.is_file())
    again = run("ingest", str(DEMO / "claude-code"))
    assert "not read: " in again.err and "forgotten" in again.err
    undo = f"forget claude-code/{SESSION} --undo"
    assert undo in output.out
    assert run(*undo.split(" ")).out == "It may be read again.\n"
    assert f"{ENTRIES} entries" in run("ingest", str(DEMO / "claude-code")).out
    run("forget", SESSION, "--yes")
    name = f"claude-code/{SESSION}"
    assert json.loads(run("forget", name, "--undo", "--json").out) == {"allowed": name}
    assert run("forget", name, "--undo", "--json").status == 3


def test_forget_of_one_entry_takes_the_notes_that_cite_it(run: Run, stored: Path) -> None:
    result = json.loads(run("forget", f"g3vo.{PORT}", "--yes", "--json").out)
    # Claude Code wrote the words down twice: as they waited, and as they were sent.
    assert result["entries"] == 2 and result["notes"] >= 1 and result["bytes"] > 100
    output = run("recall", f"g3vo.{PORT}")
    assert output.status == 3 and "it was forgotten on request" in output.err
    assert [run("recall", f"g3vo.{PORT + beside}").status for beside in (-2, -1, 1)] == [0, 3, 0]
    assert run("fsck").status == 0


def test_fsck_of_a_sound_store(run: Run, stored: Path) -> None:
    output = run("fsck")
    assert output.status == 0 and output.out == "The store is sound.\n"
    assert json.loads(run("fsck", "--json").out) == []


def test_fsck_names_what_is_wrong_and_ends_with_5(run: Run, stored: Path) -> None:
    with sqlite3.connect(stored / "archive.db") as connection:
        connection.execute("UPDATE segments SET data=x'00' WHERE no=(SELECT min(no) FROM segments)")
    output = run("fsck")
    assert output.status == 5 and "archive" in output.out and "--repair" in output.out
    assert all(not one["repaired"] for one in json.loads(run("fsck", "--json").out))


def test_index_fills_what_is_missing_and_then_nothing(run: Run, stored: Path) -> None:
    first, second = (json.loads(run("index", "--json").out)["added"] for _ in range(2))
    assert first > 300 and second == 0


def test_maintain_prints_nothing_and_leaves_a_block(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes((DEMO / "claude-code" / "session.jsonl").read_bytes())
    home = Path(os.environ["OBSERVATIONAL_MEMORY_HOME"])
    output = run("maintain", "claude-code", "--transcript", str(path), "--session", SESSION, "--cwd", str(tmp_path))
    assert output == (0, "", "")
    assert Path(session_folder(str(home), "claude-code", str(path), SESSION), "block.next").exists()
    assert "maintain harness=claude-code outcome=stretches-" in (home / "log.txt").read_text(encoding="utf-8")


def test_maintain_that_fails_logs_it_and_says_nothing(run: Run, stored: Path) -> None:
    (stored / "archive.db").write_bytes(b"no database at all" * 100)
    output = run("maintain", "claude-code", "--transcript", "/nowhere.jsonl")
    assert output == (1, "", "")
    assert "outcome=failed-" in (stored / "log.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("harness", ["claude-code", "codex", "cursor", "opencode"])
def test_hooks_prints_a_config_whose_commands_start_here(run: Run, harness: str) -> None:
    output = run("hooks", harness)
    assert output.status == 0 and output.err == ""
    config = json.loads(output.out)
    assert os.environ["OBSERVATIONAL_MEMORY_HOME"] in json.dumps(config)
