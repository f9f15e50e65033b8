"""replay, try, ingest, sync: what they read, what they refuse, and that results stay apart from warnings."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.tokens import estimate
from tests.interfaces.conftest import Run
from tests.interfaces.place import DEMO, ENTRIES, ENTRIES_BEFORE_COMPACTION, LIMIT, RECORDS, SCRIPT, SESSION

CLAUDE = DEMO / "claude-code" / "session.jsonl"


def value(run: Run, *arguments: str) -> Any:
    output = run(*arguments, "--json")
    assert output.status == 0
    return json.loads(output.out)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A home folder in which Claude Code and Codex have each kept a session."""
    home = Path(os.environ["HOME"])
    project = home / ".claude" / "projects" / "-home-mira-src-lantern"
    project.mkdir(parents=True)
    shutil.copy(CLAUDE, project / f"{SESSION}.jsonl")
    day = home / ".codex" / "sessions" / "2026" / "04" / "08"
    day.mkdir(parents=True)
    rollout = next((DEMO / "codex").iterdir())
    shutil.copy(rollout, day / rollout.name)
    os.utime(day / rollout.name, (1_700_000_000, 1_700_000_000))
    return home


# replay


def test_replay_of_a_file_ends_with_the_block_and_keeps_nothing(run: Run) -> None:
    output = run("replay", str(CLAUDE))
    assert output.status == 0 and output.err == ""
    assert output.out.startswith(f"session g3vo (claude-code, {SESSION})\n")
    assert f"{RECORDS} records · {ENTRIES} entries · 1 compaction ·" in output.out
    assert '<observational-memory delivery="' in output.out and output.out.rstrip().endswith("</observational-memory>")
    assert not Path(os.environ["OBSERVATIONAL_MEMORY_HOME"]).exists()


def test_replay_names_a_session_as_its_harness_does(run: Run) -> None:
    output = run("replay", str(DEMO / "opencode"))
    assert re.match(r"session qsgl \(opencode, ses_\w+\): Add signed Norrpost webhooks\n", output.out)


def test_replay_of_a_folder_takes_every_session_and_names_what_it_does_not_know(run: Run) -> None:
    output = run("replay", str(DEMO))
    assert output.status == 0 and output.out.count("\nsession ") + output.out.startswith("session ") == 4
    assert "README.md" in output.err and "--harness" in output.err and "not recognised" not in output.out


def test_replay_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLAUDE.read_bytes())))
    assert f"{ENTRIES} entries" in run("replay", "-").out


def test_replay_parse_only_accounts_for_every_line(run: Run) -> None:
    output = run("replay", str(DEMO), "--parse-only")
    assert output.status == 0 and "UNACCOUNTED" not in output.out and "delivery=" not in output.out
    counted = value(run, "replay", str(DEMO), "--parse-only")
    by_harness = {one["harness"]: one for one in counted["sources"]}
    assert set(by_harness) == {"claude-code", "codex", "cursor", "opencode"}
    assert by_harness["claude-code"]["bytes"] == CLAUDE.stat().st_size
    assert by_harness["claude-code"]["lines"] == CLAUDE.read_bytes().count(b"\n")
    assert all(one["unaccounted"] == 0 and one["compactions"] == 1 for one in counted["sources"])
    assert [os.path.basename(path) for path in counted["not_recognised"]] == ["README.md"]


def test_replay_up_to_a_compaction_reads_nothing_after_it(run: Run) -> None:
    whole, before = (value(run, "replay", str(CLAUDE), *more)[0] for more in ((), ("--at", "1")))
    assert before["compactions"] == 0 and whole["compactions"] == 1
    assert before["read"]["entries"] == ENTRIES_BEFORE_COMPACTION < whole["read"]["entries"] == ENTRIES
    words = "".join(before["block"]["parts"])
    assert "30 per minute per address" not in words and "30 per minute per address" in "".join(whole["block"]["parts"])
    assert value(run, "replay", str(CLAUDE), "--at", "9")[0]["read"] == whole["read"]


def test_replay_up_to_a_count_of_tokens(run: Run) -> None:
    short, longer = (value(run, "replay", str(CLAUDE), "--at", at)[0]["read"]["entries"] for at in ("2000t", "5000t"))
    assert 0 < short < longer < ENTRIES


def test_replay_as_json_is_one_document_whatever_lies_beside_the_sessions(run: Run) -> None:
    output = run("replay", str(DEMO), "--json", "--budget", "500")
    values = json.loads(output.out)
    assert len(values) == 4
    for one in values:
        assert {"harness", "path", "session", "read", "passes", "compactions", "block"} == set(one)
        assert one["block"]["tokens"] <= 500 and sum(map(estimate, one["block"]["parts"])) == one["block"]["tokens"]


def test_replay_twice_gives_the_same_notes(run: Run) -> None:
    one, two = (value(run, "replay", str(CLAUDE))[0] for _ in range(2))
    assert one["block"]["shown"] == two["block"]["shown"] and one["passes"] == two["passes"]


def test_replay_with_keep_fills_the_users_own_store(run: Run) -> None:
    assert run("replay", str(CLAUDE), "--keep").status == 0
    assert [one["handle"] for one in value(run, "sessions")] == ["g3vo"]
    assert run("recall", f"g3vo.{LIMIT}").status == 0


@pytest.mark.parametrize("command", ["replay", "ingest"])
def test_a_file_of_no_harness_is_not_taken(run: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("Not a transcript at all.\n", encoding="utf-8")
    output = run(command, str(path))
    assert output.status == 3 and output.out == "" and f"not recognised: {path}" in output.err


def test_an_empty_folder_is_a_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    output = run("replay", str(tmp_path / "empty"))
    assert output.status == 3 and "holds no files" in output.err


# try


def test_try_shows_the_block_of_the_newest_session_and_keeps_nothing(run: Run, machine: Path) -> None:
    output = run("try")
    assert output.status == 0 and f"(claude-code, {SESSION})" in output.out and "## Now" in output.out
    assert not Path(os.environ["OBSERVATIONAL_MEMORY_HOME"]).exists()


@pytest.mark.parametrize("name", ["019d6c41", str(next((DEMO / "codex").iterdir()))])
def test_try_takes_part_of_an_id_or_a_path(run: Run, machine: Path, name: str) -> None:
    output = run("try", name, "--budget", "400")
    assert output.status == 0 and output.out.startswith("session c7cr (codex, ")


# ingest


def test_ingest_twice_adds_nothing(run: Run) -> None:
    first = value(run, "ingest", str(DEMO))
    assert {one["session"] for one in first} == {"g3vo", "c7cr", "hufq", "qsgl"}
    assert all(one["entries"] and one["notes"] and one["bytes"] for one in first)
    counts = value(run, "status")
    again = value(run, "ingest", str(DEMO))
    assert all(one["entries"] == one["notes"] == one["records"] == one["bytes"] == 0 for one in again)
    assert run("ingest", str(CLAUDE)).out == f"g3vo  nothing new  {CLAUDE}\n"
    same = value(run, "status")
    assert (same["entries"], same["notes"], same["bytes"]) == (counts["entries"], counts["notes"], counts["bytes"])


def test_ingest_takes_up_what_has_grown(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:100]))
    first = value(run, "ingest", str(path))[0]
    path.write_bytes(b"".join(lines))
    second = value(run, "ingest", str(path))[0]
    assert first["records"] == 100 and second["records"] == len(lines) - 100
    assert first["entries"] + second["entries"] == ENTRIES


# sync


def test_sync_lists_and_takes_nothing(run: Run, machine: Path) -> None:
    output = run("sync", "--list")
    assert output.status == 0 and "2 of 2 sessions are new or have grown" in output.out
    assert {one["harness"] for one in value(run, "sync", "--list")} == {"claude-code", "codex"}
    assert value(run, "sync", "--list", "--harness", "codex")[0]["harness"] == "codex"
    assert value(run, "status")["sessions"] == 0


def test_sync_asks_and_takes_nothing_where_nobody_can_answer(machine: Path) -> None:
    command = [sys.executable, str(SCRIPT), "sync"]
    done = subprocess.run(command, capture_output=True, env=os.environ, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and b"--yes" in done.stderr and b"Traceback" not in done.stderr


def test_sync_takes_in_what_is_new_and_then_has_nothing_to_do(run: Run, machine: Path) -> None:
    output = run("sync", "--yes")
    assert output.status == 0 and f"g3vo  {RECORDS} records" in output.out and "c7cr  283 records" in output.out
    output = run("sync", "--yes")
    assert output.status == 0 and "0 of 2 sessions are new or have grown" in output.out
    assert value(run, "status")["sessions"] == 2
