"""The state after cards: files, commands, to-dos, and which orders still stand."""

from __future__ import annotations

from obsmem.core.fold import State, fold, relative_path
from obsmem.memory.cards import CardBuilder
from tests.memory.card_entries import Script


def state_of(script: Script, cwd: str = "") -> State:
    builder = CardBuilder("abcd")
    for entry in script.entries:
        builder.feed(entry)
    return fold(builder.take(), cwd)


def standing(script: Script) -> list[str]:
    state = state_of(script)
    return [
        order.words
        for instruction in state.instructions
        for order in instruction.orders
        if order.standing and order.superseded_by is None
    ]


def test_an_order_is_superseded_only_by_words_that_name_its_object() -> None:
    script = Script()
    script.user("Always use `pip`.")
    script.user("Never touch src/api.py.")
    later = script.user("From now on use `uv` instead of `pip`.")
    state = state_of(script)
    assert [item.superseded_by for item in state.instructions] == [later, None, None]


def test_when_in_doubt_both_stand() -> None:
    script = Script()
    script.user("Never edit src/api.py.")
    script.user("Actually, src/api.py needs a test, too.")
    script.user("Add the new route to src/api.py.")
    script.user("Should we use src/b.py instead of src/api.py?")
    assert standing(script) == ["Never edit src/api.py."]


def test_a_new_value_of_a_setting_supersedes_the_old_one() -> None:
    script = Script()
    script.user("Use port 8080 for the server.")
    later = script.user("Actually, use port 9090.")
    assert state_of(script).instructions[0].superseded_by == later


def test_one_order_of_an_instruction_falls_and_the_others_stand() -> None:
    script = Script()
    script.user("Always pass --fast. Never touch the `core` folder.")
    script.user("don't pass --fast any more")
    state = state_of(script)
    assert state.instructions[0].superseded_by is None
    assert state.instructions[0].standing
    assert standing(script)[0] == "Never touch the `core` folder."


def test_an_agent_and_an_earlier_entry_supersede_nothing() -> None:
    script = Script()
    script.user("use `uv` instead of `pip`")
    script.user("Always use `pip`.")
    script.agent("I'll use `uv` instead of `pip` because it is faster, as discussed.")
    assert all(item.superseded_by is None for item in state_of(script).instructions)


def test_files_know_edits_reads_and_the_names_that_came() -> None:
    script = Script()
    script.read("/w/a.py")
    script.edit("/w/a.py", "x", "def one():\n    pass\n")
    script.edit("/w/a.py", "y", "def two():\n    pass\n")
    script.write("/w/new.py", "class New:\n    pass\n")
    script.read("/w/b.py")
    script.run("rm /w/new.py")
    files = state_of(script, "/w").files
    assert files["a.py"].edits == 2
    assert [name for name, _ in files["a.py"].identifiers] == ["two", "one"]
    assert not files["a.py"].created
    assert files["new.py"].created
    assert files["new.py"].deleted
    assert [path for path, file in files.items() if file.read_only] == ["b.py"]


def test_a_command_remembers_its_failure_and_what_fixed_it() -> None:
    script = Script()
    script.run("pytest -q 2>&1 | tail -5", "E   assert 1 == 2\n1 failed in 0.1s", ok=True)
    assert [command.command for command in state_of(script).failing] == ["pytest -q"]
    script.run("pytest -q | head -20", "3 passed in 0.1s")
    state = state_of(script)
    command = state.commands["pytest -q"]
    assert state.failing == ()
    assert command.runs == 2
    assert command.failure is not None
    assert command.failure.detail["errors"] == ["E   assert 1 == 2"]
    assert command.fixed_by == command.last


def test_a_pipe_that_ended_well_without_a_summary_fixes_nothing() -> None:
    script = Script()
    script.run("make", "a.c:1:1: error: no", ok=False)
    script.run("make 2>&1 | tail -3", "see the log")
    state = state_of(script)
    assert state.commands["make"].last.ok is None
    assert [command.command for command in state.failing] == ["make"]


def test_todos_keep_the_entry_that_gave_them_their_state() -> None:
    script = Script()
    script.todo(("1", "open", "parse"), ("2", "open", "render"))
    script.todo(("1", "done", "parse"), ("2", "open", "render"))
    assert state_of(script).todos == (("1", "done", "parse", 2), ("2", "open", "render", 0))


def test_a_question_is_open_until_the_human_speaks() -> None:
    script = Script()
    script.agent("Both ways are possible here. Which of them shall it be?")
    question = state_of(script).question
    assert question is not None
    assert question.text == "Which of them shall it be?"
    script.user("the first")
    assert state_of(script).question is None


def test_paths_below_a_folder_are_relative_to_it() -> None:
    assert relative_path("/w/a/b.py", "/w/a") == "b.py"
    assert relative_path("/w/ab.py", "/w/a") == "/w/ab.py"
    assert relative_path("C:\\w\\a.py", "C:\\w") == "a.py"
    assert relative_path("/w/a.py", "") == "/w/a.py"


def test_a_wider_run_that_passes_mends_the_narrower_one_that_failed() -> None:
    """``pytest -q`` runs what ``pytest -q tests/test_a.py`` ran, ``lint && test`` runs both; ``npm test`` is another."""
    failed = "FAILED tests/test_a.py::test_one - assert 1 == 2\n1 failed, 4 passed in 0.2s"
    script = Script()
    script.run("pytest -q tests/test_a.py", failed, False, 1)
    script.run("mise run lint", "error: unused name", False, 1)
    script.run("terraform apply prod", "error: cannot lock state", False, 1)
    assert len(state_of(script).failing) == 3
    script.run("npm test", "3 passed")
    script.run("terraform apply", "done")
    assert len(state_of(script).failing) == 3
    script.run("mise run lint && pytest -q", "5 passed in 1s")
    script.run("pytest -q", "5 passed in 1s")
    assert [command.command for command in state_of(script).failing] == ["terraform apply prod"]
