"""What shortening would do, what it did, and what was asked for again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsmem.core.decisions import REDUCE
from tests.interfaces.test_hook_reduce import COMMAND, OUTPUT, Session, call_of, shortened
from tests.tasks.talk import opened


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    made = Session(tmp_path)
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(made.home))
    return made


def test_a_dry_run_shows_what_the_model_would_get_and_keeps_nothing(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(OUTPUT, encoding="utf-8")
    done = session.run("reduce", str(path), "--command", COMMAND, "--exit", "0")
    assert done.returncode == 0
    assert b"100 passed" in done.stdout
    assert len(done.stdout) < len(OUTPUT) / 2
    value = json.loads(session.run("reduce", str(path), "--command", COMMAND, "--exit", "0", "--json").stdout)
    assert value["shortened"] and value["text"] == done.stdout.decode()
    whole = session.run("reduce", str(path), "--command", f"{COMMAND} # whole output")
    assert whole.stdout.decode() == OUTPUT
    assert b"stays as it is" in whole.stderr
    assert not session.home.exists()


def test_rules_are_listed_by_name(session: Session) -> None:
    names = [one["name"] for one in json.loads(session.run("reduce", "--rules", "--json").stdout)]
    assert {"git-diff", "pytest", "repeat"} <= set(names)


def test_stats_say_what_was_saved_and_what_was_recalled_afterwards(session: Session) -> None:
    session.settings()
    _, first = shortened(session)
    shortened(session, OUTPUT.replace("100 items", "100 items in all"))
    session.tell("…the whole of it…", f"recall {first} --raw")
    session.hook(call_of(session.talk), "\n".join(f"{n}: {n * n * 7919}" for n in range(900)), "./own-program")
    assert session.run("maintain", "claude-code", "--transcript", str(session.transcript), "--session", session.talk.session,
                       "--cwd", str(session.project)).returncode == 0  # fmt: skip
    value = json.loads(session.run("reduce", "--stats", "--days", "3650", "--json").stdout)
    total = value["total"]
    assert (total["outputs"], total["recalled"]) == (2, 1)
    assert total["whole_bytes"] == 2 * len(OUTPUT) + len(" in all")
    assert 0 < total["kept_bytes"] < total["whole_bytes"] / 2
    assert total["kept_tokens"] < total["whole_tokens"] / 2
    assert [one["name"] for one in value["rules"]] == ["pytest"]
    assert [one["name"] for one in value["commands"]] == ["pytest"]
    assert value["left"] == {"no rule": 1}
    with opened() as store:
        (stored,) = store.archive.sessions()
        why = [one.why for one in store.memory.decisions(stored.session.handle) if one.what == REDUCE]
    assert sorted(why) == ["left as it is: no rule", "shortened by pytest", "shortened by pytest"]
    assert b"2 outputs" in session.run("reduce", "--stats").stdout


def test_the_config_to_copy_has_the_handler_only_where_it_is_asked_for(session: Session) -> None:
    plain = json.loads(session.run("hooks", "claude-code").stdout)["hooks"]
    more = json.loads(session.run("hooks", "claude-code", "--reduce").stdout)["hooks"]
    assert set(more) - set(plain) == {"PostToolUse"}
    assert {event: more[event] for event in plain} == plain
    none = session.run("hooks", "codex", "--reduce")
    assert none.stdout == session.run("hooks", "codex").stdout
    assert b"outputs stay as they are" in none.stderr
