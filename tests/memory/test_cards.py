"""Facts from entries: turns, pairing, refusals, to-dos, and building in pieces."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from obsmem import harnesses
from obsmem.core.model import FACT_KINDS, Action, Card, Entry, Fact
from obsmem.memory.cards import CardBuilder, fold
from tests.memory.card_entries import Script

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"


def build(entries: list[Entry], cwd: str = "") -> list[Card]:
    builder = CardBuilder("abcd", cwd=cwd)
    for entry in entries:
        builder.feed(entry)
    return builder.take()


def facts(script: Script, kind: str = "") -> list[Fact]:
    return [fact for card in build(script.entries) for fact in card.facts if not kind or fact.kind == kind]


def test_a_turn_begins_with_each_human_entry_and_not_with_notices_or_a_boundary() -> None:
    script = Script()
    script.user("Fix the parser.")
    script.notice("<system-reminder>be nice</system-reminder>")
    script.boundary()
    script.run("pytest -q", "3 passed in 0.1s")
    script.user("Now the docs.")
    cards = build(script.entries)
    assert [(card.turn, card.first_seq, card.last_seq) for card in cards] == [(1, 0, 4), (2, 5, 5)]
    assert [fact.kind for fact in cards[0].facts] == ["instruction", "command"]


def test_parallel_calls_pair_by_id_and_strays_do_no_harm() -> None:
    script = Script()
    first = script.call(Action("run", command="make a"))
    second = script.call(Action("run", command="make b"))
    script.result("unknown", "nobody asked")
    script.result(second, "b built")
    script.result(first, "Error: no rule", ok=False, exit_code=2)
    script.call(Action("run", command="never ends"))
    commands = facts(script, "command")
    assert [(fact.subject, fact.seqs, fact.ok) for fact in commands] == [
        ("make b", (1, 3), True),
        ("make a", (0, 4), False),
    ]
    assert commands[1].detail["exit"] == 2
    assert commands[1].detail["errors"] == ["Error: no rule"]


def test_a_call_without_an_id_is_complete_at_once() -> None:
    entry = Entry(0, "", "tool_call", "agent", "w", actions=(Action("write", path="a.py", new="def f():\n  pass\n"),))
    (card,) = build([entry])
    assert [(fact.kind, fact.subject, fact.seqs) for fact in card.facts] == [("write", "a.py", (0,))]


def test_a_failed_edit_is_no_edit() -> None:
    script = Script()
    script.edit("a.py", "x = 1", "x = 2", ok=False)
    assert facts(script, "edit") == []


def test_paths_below_the_working_folder_come_out_relative() -> None:
    script = Script()
    script.read("/w/p/src/a.py")
    script.read("/elsewhere/b.py")
    facts = [fact for card in build(script.entries, cwd="/w/p") for fact in card.facts]
    read = [fact.subject for fact in facts if fact.kind == "read"]
    assert read == ["src/a.py", "/elsewhere/b.py"]


def test_a_refusal_keeps_what_was_refused_and_the_words() -> None:
    script = Script()
    call = script.call(Action("run", command="git push --force"))
    script.result(
        call, "The user doesn't want to proceed. To tell you how to go on, the user said:\nnot on main", ok=False
    )
    script.notice("[Request interrupted by user for tool use]")
    (stop,) = facts(script, "interruption")
    assert (stop.subject, stop.text, stop.seqs) == ("git push --force", "not on main", (0, 1))


def test_an_interruption_names_the_call_that_was_running() -> None:
    script = Script()
    script.call(Action("run", command="sleep 1000 && make"))
    script.notice("[Request interrupted by user]")
    (stop,) = facts(script, "interruption")
    assert stop.subject == "sleep 1000 && make"


def test_the_agents_question_is_tied_to_the_humans_answer() -> None:
    script = Script()
    script.agent("There are two ways to store it: as JSON, or as rows. Which one do you want?")
    script.user("rows")
    script.user("and index them")
    (answer,) = facts(script, "answer")
    assert (answer.subject, answer.text, answer.seqs) == ("Which one do you want?", "rows", (0, 1))


def test_an_asking_tool_gives_one_answer_for_each_pair() -> None:
    script = Script()
    call = script.call(Action("ask", new="Which store?"), text="Which store?")
    entry = Entry(
        1, "", "tool_result", "human", 'Answered: "Which store?"="SQLite", "Keep?"="yes"', call_id=call, ok=True
    )
    facts = [fact for card in build([*script.entries, entry]) for fact in card.facts]
    answers = [fact for fact in facts if fact.kind == "answer"]
    assert [(fact.kind, fact.subject, fact.text) for fact in answers] == [
        ("answer", "Which store?", "SQLite"),
        ("answer", "Keep?", "yes"),
    ]


def test_todos_are_replaced_whole_and_changed_one_by_one() -> None:
    script = Script()
    script.todo(("1", "doing", "parse"), ("2", "open", "render"))
    script.todo(("1", "done", ""))
    call = script.call(Action("todo", items=(("", "open", "ship"),)))
    script.result(call, "Task #3 created")
    assert facts(script, "todo")[-1].detail["items"] == [
        ["1", "done", "parse"],
        ["2", "open", "render"],
        ["3", "open", "ship"],
    ]


def test_a_removed_file_is_a_deletion() -> None:
    script = Script()
    script.run("git rm -q src/old.py && mv a.txt b.txt && rm -rf build")
    assert [fact.subject for fact in facts(script, "delete")] == ["src/old.py", "a.txt"]


def test_the_agents_last_words_of_a_turn_are_its_conclusion() -> None:
    script = Script()
    script.agent("Let me look at the tests first:")
    script.run("pytest", "1 passed in 0.1s")
    script.agent("The parser now accepts empty input, and all tests pass. Next, I'll update the docs.")
    (conclusion,) = facts(script, "conclusion")
    assert conclusion.text == "The parser now accepts empty input, and all tests pass. Next, I'll update the docs."
    assert [fact.text for fact in facts(script, "next")] == ["Next, I'll update the docs."]


def test_a_long_conclusion_is_cut_at_a_word_with_a_mark() -> None:
    script = Script()
    script.agent("word " * 400)
    (conclusion,) = facts(script, "conclusion")
    assert conclusion.text.endswith("word […]")
    assert len(conclusion.text) <= 610


def long_script() -> Script:
    script = Script()
    script.user("Never touch src/api.py. Use uv, not pip.")
    script.todo(("1", "open", "parser"), ("2", "open", "docs"))
    for turn in range(12):
        one = script.call(Action("run", command=f"pytest -q -k t{turn}"))
        two = script.call(Action("edit", path=f"src/m{turn}.py", new=f"def f{turn}():\n    pass\n"))
        script.result(two)
        script.result(one, "E   assert 1 == 2\n1 failed in 0.1s", ok=turn % 2 == 0)
        script.agent(f"Test {turn} is done. Shall I go on with number {turn + 1}?")
        script.user("yes please")
        script.todo(("1", "done", ""))
    return script


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_building_in_pieces_equals_building_in_one_go(step: int) -> None:
    entries = long_script().entries
    whole = [fact for card in build(entries) for fact in card.facts]
    state: dict[str, object] | None = None
    pieces: list[Fact] = []
    for start in range(0, len(entries), step):
        builder = CardBuilder("abcd", state)
        for entry in entries[start : start + step]:
            builder.feed(entry)
        pieces += [fact for card in builder.take() for fact in card.facts]
        state = json.loads(json.dumps(builder.state()))
    assert pieces == whole


def test_the_state_stays_small_however_many_calls_stay_open() -> None:
    builder = CardBuilder("abcd")
    for seq in range(2000):
        call = Action("run", command="x" * 5000)
        builder.feed(Entry(seq, "", "tool_call", "agent", "x", call_id=f"c{seq}", actions=(call,)))
    assert len(json.dumps(builder.state())) < 200_000


def real_entries(tmp_path: Path, name: str) -> list[Entry]:
    source = SHARED / "evals" / "compactions" / f"{name}.jsonl.gz"
    if not source.exists():
        pytest.skip(f"the recorded session {name} is not on this machine")
    path = tmp_path / f"{name}.jsonl"
    with gzip.open(source, "rb") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    harness = harnesses.load("claude-code")
    (origin,) = harness.sources(str(path))
    reader = harness.reader(origin, None, lambda: ())
    entries = [entry for raw in harness.records(origin, 0, 0) for entry in reader.read(raw).entries]
    return [entry._replace(seq=seq) for seq, entry in enumerate(entries)]


@pytest.mark.parametrize("name", ["839b35f7", "79e9becd"])
def test_a_recorded_session_gives_the_same_facts_in_pieces_and_every_fact_is_json(tmp_path: Path, name: str) -> None:
    entries = real_entries(tmp_path, name)
    whole = [fact for card in build(entries) for fact in card.facts]
    state: dict[str, object] | None = None
    pieces: list[Fact] = []
    for start in range(0, len(entries), 37):
        builder = CardBuilder("abcd", state)
        for entry in entries[start : start + 37]:
            builder.feed(entry)
        pieces += [fact for card in builder.take() for fact in card.facts]
        state = json.loads(json.dumps(builder.state()))
    assert pieces == whole
    assert len(whole) > 30
    for fact in whole:
        assert fact.kind in FACT_KINDS
        assert json.loads(json.dumps(fact.detail)) == fact.detail
        assert fact.seqs == tuple(sorted(fact.seqs))


def test_a_recorded_session_folds_to_its_edited_files(tmp_path: Path) -> None:
    entries = real_entries(tmp_path, "839b35f7")
    edited = {
        action.path
        for entry in entries
        for action in entry.actions
        if action.kind in ("edit", "write") and entry.kind == "tool_call"
    }
    state = fold(build(entries))
    assert {path for path, file in state.files.items() if file.edits} == edited
