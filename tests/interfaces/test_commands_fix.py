"""What ``pin``, ``unpin``, ``pins`` and ``note`` print, on the demo's sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interfaces.conftest import Run
from tests.interfaces.place import PORT, SESSION


def handle(run: Run) -> str:
    return next(one["handle"] for one in json.loads(run("sessions", "--json").out) if one["id"] == SESSION)


def test_a_pin_says_what_it_costs_and_stands_in_the_block(stored: Path, run: Run) -> None:
    name = handle(run)
    done = run("pin", "ship", "on", "Friday", "--session", name)
    assert done.status == 0 and f"for session {name}: ship on Friday" in done.out
    assert "costs 7 of 8,000 tokens in every block" in done.out
    assert "## Pins\n- ship on Friday\n" in run("block", name).out
    (listed,) = json.loads(run("pins", "--session", name, "--json").out)["pins"]
    assert run("recall", listed["id"]).out.rstrip().endswith("ship on Friday")
    assert run("unpin", listed["id"]).status == 0
    assert "Nothing is pinned here" in run("pins", "--session", name).out and "## Pins" not in run("block", name).out


def test_an_entry_is_pinned_and_pins_of_other_sessions_are_counted(stored: Path, run: Run) -> None:
    name = handle(run)
    value = json.loads(run("pin", f"{name}.{PORT}", "--session", name, "--json").out)
    assert value["source"] == f"{name}.{PORT}" and value["tokens"] > 0 and value["scope"] == "session"
    assert "1 pin of other sessions or workspaces" in run("pins").out
    assert f"session {name}" in run("pins", "--all").out


def test_it_is_said_when_pins_take_more_than_their_share(stored: Path, run: Run) -> None:
    assert "more than their share" not in run("pin", "a word", "--scope", "everywhere").out
    assert "more than their share" not in run("pin", "many different words " * 300, "--scope", "everywhere").out
    done = run("pin", "some other words " * 300, "--scope", "everywhere")
    assert "more than their share of 1,200" in done.out and "lose their middle" in done.out
    assert "more than their share of 1,200" in run("pins").out


def test_a_note_by_hand_is_recalled_with_what_it_cites(stored: Path, run: Run) -> None:
    name = handle(run)
    done = run("note", "The port is settled", "--cite", f"{name}.{PORT}", "--session", name, "--json")
    note = json.loads(done.out)
    assert note["entry_ids"] == [f"{name}.{PORT}"] and note["evidence"] == "user"
    assert "the user said it" in run("recall", note["id"]).out
    marked = run("note", "Port 12345 is settled", "--cite", f"{name}.{PORT}", "--session", name)
    assert "do not have 12345" in marked.out


@pytest.mark.parametrize(
    ("words", "status"),
    [(("pin", "zzzz.3"), 3), (("pin", "x", "--scope", "moon"), 2), (("unpin", "abcd1234"), 3), (("note", " "), 2)],
)
def test_a_wrong_call_is_one_sentence(stored: Path, run: Run, words: tuple[str, ...], status: int) -> None:
    done = run(*words)
    assert done.status == status and done.out == "" and done.err.count("\n") == 1
