"""recall, sessions, show, notes, block, status, config: what they print, as text and as JSON, and that they write nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.tokens import estimate
from obsmem.store.archive_schema import row_number
from obsmem.tasks.forget import apply_retention
from obsmem.tasks.store import open_store
from tests.interfaces.conftest import Run
from tests.interfaces.place import ENTRIES, LIMIT, LIMIT_LINE, SCRIPT, SESSION


def value(run: Run, *arguments: str) -> Any:
    """What a command gives to a program."""
    output = run(*arguments, "--json")
    assert output.status == 0 and output.err == ""
    return json.loads(output.out)


def query(home: Path, words: str, *values: object) -> list[Any]:
    """Ask the memory of a data folder."""
    with sqlite3.connect(home / "memory.db") as connection:
        return connection.execute(words, values).fetchall()


def transcript(home: Path) -> Path:
    """The transcript that the session g3vo was read from."""
    with sqlite3.connect(home / "archive.db") as connection:
        return Path(connection.execute("SELECT path FROM sources WHERE path LIKE '%claude-code%'").fetchone()[0])


def take_away(home: Path, *entries: int) -> None:
    """Let the archive lose entries of the session g3vo."""
    with sqlite3.connect(home / "archive.db") as connection:
        (number,) = connection.execute("SELECT no FROM sessions WHERE handle='g3vo'").fetchone()
        for seq in entries:
            connection.execute("DELETE FROM entries WHERE no=?", (row_number(number, seq),))


# recall


def test_recall_of_a_note_prints_it_and_the_exact_words(run: Run, stored: Path) -> None:
    (name, text, session) = query(stored, "SELECT id, text, session FROM notes WHERE text LIKE '%8091%' LIMIT 1")[0]
    output = run("recall", name)
    assert output.status == 0 and output.err == ""
    assert output.out.startswith(f"Note [{name[:7]}] ") and text in output.out
    for (seq,) in query(stored, "SELECT seq FROM note_entries WHERE note=?", name):
        assert f"[{session}.{seq}] " in output.out
    for spelling in (name[:7], f"[{name[:7]}]", name.upper(), f" {name[:9]} "):
        assert run("recall", spelling).out == output.out


def test_recall_of_an_ambiguous_beginning_names_the_candidates(run: Run, stored: Path) -> None:
    ids = sorted(one for (one,) in query(stored, "SELECT id FROM notes"))
    with sqlite3.connect(stored / "memory.db") as connection:
        twin = ids[0][:8] + ("0000" if not ids[0].endswith("0000") else "1111")
        columns = [row[1] for row in connection.execute("PRAGMA table_info(notes)")]
        copied = ", ".join({"id": "?", "no": "NULL"}.get(column, column) for column in columns)
        connection.execute(f"INSERT INTO notes SELECT {copied} FROM notes WHERE id=?", (twin, ids[0]))
    output = run("recall", ids[0][:8])
    assert output.status == 2 and output.out == ""
    assert ids[0] in output.err and twin in output.err and "Give more digits." in output.err
    assert run("recall", ids[0]).status == 0


def test_recall_of_a_reflection_shows_its_notes_and_their_entries(run: Run, stored: Path) -> None:
    (name, text) = query(stored, "SELECT id, text FROM reflections LIMIT 1")[0]
    output = run("recall", name)
    assert output.status == 0
    assert output.out.startswith(f"Reflection [{name[:7]}] {text[:60]}") and "\nNote [" in output.out
    assert re.search(r"\n\[\w+\.\d+\] ", output.out)


def test_recall_of_an_entry_prints_its_words_and_where_they_stood(run: Run, stored: Path) -> None:
    output = run("recall", f"g3vo.{LIMIT}")
    assert f"{transcript(stored)}:{LIMIT_LINE}:\n30 per minute per address." in output.out


def test_recall_raw_is_the_record_byte_for_byte(run: Run, stored: Path) -> None:
    lines = transcript(stored).read_bytes().split(b"\n")
    command = [sys.executable, str(SCRIPT), "recall", f"g3vo.{LIMIT}", "--raw"]
    assert subprocess.run(command, capture_output=True, env=os.environ).stdout == lines[LIMIT_LINE - 1] + b"\n"


def test_recall_raw_of_a_note_gives_each_record_once(stored: Path) -> None:
    data = transcript(stored).read_bytes()
    for (name,) in query(stored, "SELECT id FROM notes WHERE session='g3vo' LIMIT 12"):
        command = [sys.executable, str(SCRIPT), "recall", name, "--raw"]
        written = subprocess.run(command, capture_output=True, env=os.environ).stdout.splitlines(keepends=True)
        assert written and len(set(written)) == len(written) and all(line in data for line in written)


def test_recall_keeps_to_its_budget_and_tells_the_way_to_the_rest(run: Run, stored: Path) -> None:
    name = max(
        (one["id"] for one in value(run, "show", "g3vo")), key=lambda id_: len(value(run, "recall", id_)["sources"][0]["text"])
    )  # fmt: skip
    whole = value(run, "recall", name)["sources"][0]["text"]
    for budget in ("150", "300"):
        output = run("recall", name, "--budget", budget)
        assert estimate(output.out) <= int(budget)
        cut = re.search(rf"\[… \d+ characters left out: recall {re.escape(name)} --range (\d+):(\d+) …\]", output.out)
        assert cut is not None
        rest = run("recall", name, "--range", f"{cut[1]}:{cut[2]}").out
        assert rest == whole[int(cut[1]) : int(cut[2])] + "\n"
    for (note,) in query(stored, "SELECT id FROM notes"):
        assert estimate(run("recall", note).out) <= 2_000


def test_recall_with_context_shows_the_neighbours(run: Run, stored: Path) -> None:
    output = run("recall", f"g3vo.{LIMIT}", "--context", "1")
    names = re.findall(r"^\[(g3vo\.\d+)\].*?( · around it)?:$", output.out, re.MULTILINE)
    assert names == [
        (f"g3vo.{LIMIT - 1}", " · around it"),
        (f"g3vo.{LIMIT}", ""),
        (f"g3vo.{LIMIT + 1}", " · around it"),
    ]


def test_recall_prints_what_is_left_and_names_what_is_missing(run: Run, stored: Path) -> None:
    (name,) = query(
        stored, "SELECT note FROM note_entries WHERE session='g3vo' GROUP BY note HAVING count(*) > 1 LIMIT 1"
    )[0]
    first, *others = [seq for (seq,) in query(stored, "SELECT seq FROM note_entries WHERE note=? ORDER BY seq", name)]
    take_away(stored, first)
    output = run("recall", name)
    assert output.status == 4
    assert output.out.startswith(f"Note [{name[:7]}]") and f"Not available: g3vo.{first}: Entry g3vo.{first} is no longer" in output.out  # fmt: skip
    assert all(f"[g3vo.{seq}] " in output.out for seq in others)
    raw = run("recall", name, "--raw")
    assert raw.status == 4 and raw.out and f"g3vo.{first}: " in raw.err
    left = run("recall", name, "--raw", "--json")
    assert left.status == 4 and left.err == "" and list(json.loads(left.out)["missing"]) == [f"g3vo.{first}"]
    take_away(stored, *others)
    output = run("recall", name)
    assert output.status == 4 and output.out.startswith("Note [") and f"g3vo.{others[-1]}: Entry" in output.out
    assert json.loads(run("recall", name, "--json").out)["status"] == "source_unavailable"


def test_recall_after_the_transcript_was_deleted_is_the_same(run: Run, stored: Path) -> None:
    before = run("recall", f"g3vo.{LIMIT}").out
    path = transcript(stored)
    with sqlite3.connect(stored / "archive.db") as connection:
        connection.execute("UPDATE sources SET path=?", (str(path) + ".gone",))
        connection.execute("UPDATE sessions SET transcript='/gone.jsonl'")
    assert run("recall", f"g3vo.{LIMIT}").out.split("\n", 1)[1] == before.split("\n", 1)[1]


# Runs a command once as it is, so that all modules are loaded, and again as a user who may write nowhere (permissions do
# not stop root). Prints what the second run printed.
_AS_NOBODY = """
import contextlib, io, os, sys
from obsmem.interfaces.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(sys.argv[1:])
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
sys.exit(main(sys.argv[1:]))
"""
_READERS = (("recall", f"g3vo.{LIMIT}"), ("sessions",), ("notes", "g3vo"), ("status",), ("show", "g3vo", "3"))


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
@pytest.mark.parametrize("arguments", _READERS, ids=[one[0] for one in _READERS])
def test_what_only_reads_works_where_nothing_may_be_written(stored: Path, arguments: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "data"
        shutil.copytree(stored, home)
        for path in (*home.rglob("*"), home, Path(folder)):
            path.chmod(0o555 if path.is_dir() else 0o444)
        environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": str(home), "PYTHONPATH": str(SCRIPT.parent)}
        environment["OBSERVATIONAL_MEMORY_CONFIG"] = "/nowhere.yaml"
        try:
            command = [sys.executable, "-c", _AS_NOBODY, *arguments]
            done = subprocess.run(command, capture_output=True, env=environment, cwd="/")
            assert (done.returncode, done.stderr) == (0, b"") and done.stdout
        finally:
            for path in (Path(folder), home, *home.rglob("*")):
                path.chmod(0o755)


def test_commands_that_show_change_no_file(run: Run, stored: Path) -> None:
    def contents() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes() for path in stored.rglob("*") if path.is_file() and path.name != "interpreter"
        }

    before = contents()
    for arguments in (("recall", "g3vo.3", "--context", "2"), ("sessions",), ("show", "g3vo"), ("notes", "g3vo"), ("status",), ("config",)):  # fmt: skip
        assert run(*arguments).status == 0
    assert contents() == before


# the others


def test_sessions_lists_the_newest_first_and_says_which_exist_only_here(run: Run, stored: Path) -> None:
    listed = value(run, "sessions")
    assert {one["handle"] for one in listed} == {"g3vo", "c7cr", "hufq", "qsgl"}
    assert [one["updated_at"] for one in listed] == sorted((one["updated_at"] for one in listed), reverse=True)
    assert all(one["entries"] and one["notes"] and one["bytes"] and one["transcript_exists"] for one in listed)
    with sqlite3.connect(stored / "archive.db") as connection:
        connection.execute("UPDATE sessions SET transcript='/gone.jsonl' WHERE handle='g3vo'")
    lines = run("sessions").out.split("\n")
    assert lines[0].startswith("handle  harness")
    assert [("only here" in line) for line in lines if line.startswith(("g3vo", "c7cr"))].count(True) == 1
    assert "1 session only here, the transcript being gone: g3vo" in run("status").out


def test_show_prints_entries_in_order_and_clips_long_ones(run: Run, stored: Path) -> None:
    entries = value(run, "show", "g3vo")
    assert [one["id"] for one in entries] == [f"g3vo.{number}" for number in range(ENTRIES)]
    assert [one["id"] for one in value(run, "show", "g3vo", "3:5")] == ["g3vo.3", "g3vo.4", "g3vo.5"]
    assert value(run, "show", "g3vo", f"{ENTRIES - 2}:")[-1]["id"] == f"g3vo.{ENTRIES - 1}"
    long = max(entries, key=lambda one: len(one["text"]))
    seq = long["id"].partition(".")[2]
    clipped, whole = run("show", "g3vo", seq).out, run("show", "g3vo", seq, "--whole").out
    assert f"[…{len(long['text']) - 500} more characters]" in clipped and len(clipped) < 700 < len(whole)


@pytest.mark.parametrize(
    ("name", "handle"), [("g3vo", "g3vo"), (SESSION, "g3vo"), (SESSION[:8], "g3vo"), ("signed norrpost", "qsgl")]
)
def test_a_session_is_found_by_handle_id_name_or_part(run: Run, stored: Path, name: str, handle: str) -> None:
    assert run("show", name, "0").out.startswith(f"[{handle}.0] ")


def test_notes_are_listed_by_time_and_filtered(run: Run, stored: Path) -> None:
    found = value(run, "notes", "g3vo")
    assert set(found) == {"notes", "reflections"} and found["reflections"]
    assert [one["at"] for one in found["notes"]] == sorted(one["at"] for one in found["notes"])
    strong = value(run, "notes", "g3vo", "--relevance", "critical,high")["notes"]
    assert {one["relevance"] for one in strong} == {"critical", "high"}
    assert len(run("notes", "g3vo").out.splitlines()) == len(found["notes"]) + len(found["reflections"])
    dropped = [value(run, "notes", handle, "--dropped")["notes"] for handle in ("g3vo", "c7cr", "hufq", "qsgl")]
    assert any(dropped)
    for one in next(filter(None, dropped)):
        assert "dropped: no longer in the block" in run("recall", one["id"]).out


def test_block_is_what_a_model_would_get(run: Run, stored: Path) -> None:
    block = value(run, "block", "g3vo", "--budget", "1000")
    assert block["tokens"] <= 1000 and len(block["parts"]) == 1
    assert run("block", "g3vo", "--budget", "1000").out == block["parts"][0] + "\n"


def test_status_counts_what_is_kept(run: Run, stored: Path) -> None:
    status = value(run, "status")
    assert status["sessions"] == 4 and status["only_here"] == [] and status["gaps"] == 0
    assert set(status["files"]) == {"archive.db", "memory.db", "index.db"}
    text = run("status").out
    assert text.startswith(f"data folder {stored}") and "every transcript is still in its place" in text


def test_config_lists_every_key_as_a_file_would_hold_it(run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_BUDGET_TOKENS", "4000")
    listed = value(run, "config")
    assert listed["budget_tokens"]["value"] == 4000 and listed["budget_tokens"]["origin"].endswith("SET_BUDGET_TOKENS")
    lines = run("config", "--origin").out.splitlines()
    assert "budget_tokens: 4000" in lines and "chunk_max_tokens: null" in lines
    assert sum(line.startswith("    from ") for line in lines) == len(listed)


def test_recall_of_what_retention_removed_says_so_and_keeps_the_note(
    run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_RETENTION_DAYS", "1")
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_RETENTION_KEEP", "nothing")
    (name, text) = query(stored, "SELECT id, text FROM notes WHERE session='g3vo' LIMIT 1")[0]
    with open_store(str(stored)) as store:
        assert apply_retention(store, now=10**13) > 0
    output = run("recall", name)
    assert output.status == 4 and output.out.startswith(f"Note [{name[:7]}]") and text in output.out
    reason = output.out.split("Not available: ")[1]
    assert "retention" in reason or "removed" in reason
    raw = run("recall", name, "--raw")
    assert raw.status == 4 and raw.out == "" and raw.err.startswith("g3vo.")
    assert run("notes", "g3vo").status == 0


def test_what_is_left_is_shown_where_retention_kept_only_what_is_cited(run: Run, stored: Path) -> None:
    take_away(stored, 125)
    with sqlite3.connect(stored / "archive.db") as connection:
        ((last,),) = connection.execute(
            "SELECT max(g.no) FROM segments g JOIN sources s ON s.no=g.source JOIN sessions e ON e.no=s.session "
            "WHERE e.handle='g3vo'"
        )
        connection.execute("UPDATE segments SET data=x'' WHERE no=?", (last,))
    output = run("show", "g3vo")
    assert output.status == 4 and f"\n[g3vo.{ENTRIES - 1}] not available: " in output.out
    assert output.out.startswith("[g3vo.0] ") and "Norrpost is our second carrier" in output.out
    listed = json.loads(run("show", "g3vo", "--json").out)
    assert "missing" in listed[-1] and listed[0]["text"]
    there = [one["id"] for one in listed if "text" in one]
    output = run("recall", there[-1], "--context", "5")
    assert output.status == 0 and there[-2] in output.out
