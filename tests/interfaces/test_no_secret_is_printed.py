"""No command prints a secret, to people or to programs: neither one of a known kind, nor what the user's own patterns name."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from pathlib import Path

import pytest

from tests.interfaces.conftest import Run
from tests.tasks.talk import SESSION, Talk, opened, session_of, watch
from tests.tasks.test_file_story import use

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OWN = "KUNDE-48151623"
SECRETS = (KEY, OWN)

PLANTED = [("memory.db", "notes", "text"), ("memory.db", "pins", "text"), ("archive.db", "sessions", "name"), ("index.db", "cards", "facts")]  # fmt: skip


@pytest.fixture
def handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session in this test's folder whose every part holds both secrets."""
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_MASK", json.dumps([r"KUNDE-\d+"]))
    monkeypatch.chdir(tmp_path)
    talk = Talk(cwd=str(tmp_path))
    both = f"{KEY} and {OWN}"
    talk.user(f"Always deploy with token {both}, and never touch src/{OWN}.py again.")
    talk.run(f"deploy --token {KEY} --customer {OWN}", f"deployed {both}\nerror: {OWN} is odd", failed=True)
    path = str(tmp_path / "src" / "deploy.py")
    use(talk, "Write", {"file_path": path, "content": f"TOKEN = '{KEY}'\nCUSTOMER = '{OWN}'\n"}, f"wrote {both}")
    use(talk, "TodoWrite", {"todos": [{"content": f"rotate {both}", "status": "pending", "activeForm": "x"}]})
    talk.agent(f"I decided to use {both} because {OWN} asked for it. Next I will check {OWN}. Shall I keep {KEY}?")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "transcripts"))
        watch(store, stored)
        return stored.session.handle


COMMANDS = (
    "show {}", "show {} --whole", "recall {}.0", "recall {}.1", "recall {}.0 --context 3", "recall {}.0 --range 0:90", "notes {}",
    "block {}", "sessions", "status", "search --here deploy", "search --here --exact token", "search --here --regex depl.y",
    "search --here --exact KUNDE", "get {}.0", "get {}.1", "get {}.2", "around {}.2 --count 4", "tool toolu_a11", "timeline {}",
    "timeline", "file src/deploy.py", "handoff {}", "handoff {} --style cards", "resume {}", "pins", "rotate {} --force",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_command_prints_holds_none(run: Run, handle: str, command: str, as_json: bool) -> None:
    run("pin", f"Deploy with {KEY} for {OWN}.")
    output = run(*command.format(handle).split(" "), *["--json"] * as_json)
    assert output.status in (0, 4) and output.out, output.err
    for secret in SECRETS:
        assert secret not in output.out + output.err


def _plant(facts: bytes) -> bytes:
    """The packed facts of a card, with secrets behind a word that stands in them."""
    text = zlib.decompress(facts).decode("utf-8")
    assert "deploy" in text
    return zlib.compress(text.replace("deploy", f"deploy {KEY} {OWN}").encode("utf-8"))


@pytest.mark.parametrize("as_json", [False, True])
def test_a_store_that_was_written_before_there_was_masking_prints_none(run: Run, handle: str, as_json: bool) -> None:
    """Its notes, reflections, pins, cards and names hold secrets; every way out masks them once more."""
    run("pin", "Deploy for the customer.")
    home = Path(os.environ["OBSERVATIONAL_MEMORY_HOME"])
    for database, table, column in PLANTED:
        connection = sqlite3.connect(home / database)
        if table == "cards":
            connection.create_function("plant", 1, _plant)
            count = connection.execute("UPDATE cards SET facts=plant(facts)")
        else:
            count = connection.execute(f"UPDATE {table} SET {column}={column}||?", (f" deploy with {KEY} for {OWN}",))
        assert count.rowcount, table
        connection.commit()
        connection.close()
    note = json.loads(run("notes", handle, "--json").out)["notes"][0]["id"]
    leaks = []
    for command in (*COMMANDS, f"recall {note}", f"explain {note}", "explain {}", "search --here --kind note deploy"):
        output = run(*command.format(handle).split(" "), *["--json"] * as_json)
        assert output.status in (0, 3, 4) and output.out + output.err
        leaks += [(command, secret) for secret in SECRETS if secret in output.out + output.err]
    assert leaks == [], "\n".join(map(str, leaks))


def test_the_words_themselves_are_there_for_whoever_asks(run: Run, handle: str) -> None:
    assert all(secret in run("get", f"{handle}.0", "--raw").out for secret in SECRETS)
    assert SESSION in run("sessions", "--json").out
