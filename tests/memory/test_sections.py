"""The lines of the block: what is said of instructions, work, files, commands and notes, and in which order."""

from __future__ import annotations

import pytest

from obsmem.core.clock import utc_minute
from obsmem.core.fold import CommandState, State
from obsmem.core.model import Action, Fact, Memory, Pin
from obsmem.memory.sections import command_lines, file_lines, is_check, now_lines, pin_lines
from obsmem.memory.wording import View, clean, clip, clip_names
from tests.memory.card_entries import Script
from tests.memory.state_maker import block, note, state, text

VIEW = View("abcd", utc_minute, "recall", "1970-01-01")


def section(words: str, name: str) -> list[str]:
    """The lines of one section."""
    if f"## {name}\n" not in words:
        return []
    body = words.split(f"## {name}\n")[1]
    return body.split("\n## ")[0].split("\n</")[0].split("\n")


def test_the_last_instruction_comes_first_with_its_time_and_entry() -> None:
    script = Script()
    script.user("First thing to do here, please.")
    script.agent("Done.")
    script.user("Now the second thing, and carefully.")
    lines = section(text(state(script)), "Now")
    assert lines[0] == 'Last instruction (00:03, abcd.2): "Now the second thing, and carefully."'
    assert lines[-1] == 'Earlier (00:01, abcd.0): "First thing to do here, please."'


def test_a_long_last_instruction_shows_head_and_tail_and_how_to_get_the_rest() -> None:
    script = Script()
    script.user("HEAD " + "and so on, " * 400 + "TAIL")
    line = section(text(state(script)), "Now")[0]
    assert '"HEAD and so on' in line and line.endswith('TAIL"')
    assert "whole: recall abcd.0…]" in line and len(line) < 2_150


def test_a_short_answer_brings_the_words_before_it() -> None:
    script = Script()
    script.user("Write the importer for the new price list, with a dry run.")
    script.user("yes")
    assert section(text(state(script)), "Now")[1].startswith('Before it (00:01, abcd.0): "Write the importer')


def test_a_yes_that_repeats_a_yes_or_answers_nothing_known_is_passed_over() -> None:
    script = Script()
    script.user("Use pnpm")
    for question in ("Shall I write the next story?", "Shall I write the next story?", "Is the table right?"):
        script.agent(question)
        script.user("yes")
    script.agent("Here it is.")
    script.user("ok")
    script.user("Now write the release notes, and keep them short.")
    earlier = [line for line in section(text(state(script)), "Now") if line.startswith("Earlier")]
    assert [line.partition(") ")[2] for line in earlier[:2]] == [
        'to "Is the table right?": "yes"',
        'to "Shall I write the next story?": "yes"',
    ]
    assert len(earlier) == 3 and earlier[2].endswith(': "Use pnpm"')


def test_standing_orders_are_listed_newest_first_and_once() -> None:
    script = Script()
    script.user("Never touch migrations/.")
    script.user("Look at the log first. Always run the linter before you commit anything here. It is slow.")
    script.user("Now start with the parser, and tell me what you find there.")
    lines = section(text(state(script)), "Now")
    assert [line for line in lines if line.startswith("Still standing")] == [
        'Still standing (00:02, abcd.1): "Always run the linter before you commit anything here."',
        'Still standing (00:01, abcd.0): "Never touch migrations/."',
    ]
    earlier = [line for line in lines if line.startswith("Earlier")]
    assert len(earlier) == 1 and "It is slow." in earlier[0], "an order that was its whole entry is not told again"


def test_a_superseded_instruction_is_marked_and_no_longer_stands() -> None:
    script = Script()
    script.user("Always use port 8080 for the server.")
    script.user("Don't use port 8080 any more, use port 8091 from now on.")
    script.user("Now run it and show me the log of the first call, please.")
    words = text(state(script))
    assert '"Always use port 8080 for the server." [superseded by abcd.1]' in words
    assert not any("8080 for the server" in line for line in words.split("\n") if line.startswith("Still standing"))


def test_a_note_of_a_sentence_beside_a_standing_order_is_not_hidden_by_it() -> None:
    """Under a small budget the entry's other words stand nowhere else."""
    script = Script()
    script.user(
        "Never touch migrations/. " + "Something long that will not fit. " * 60 + "The staging host is kestrel-4."
    )
    for number in range(30):
        script.user(f"Never open file number {number} in the folder of the old program, it belongs to others.")
    found = note("User: the staging host is kestrel-4", 0, relevance="critical", evidence="user")
    words = text(state(script), Memory(notes=(found,)), 1_500)
    assert "kestrel-4" in words


def test_todos_stand_in_the_order_of_the_list_and_the_done_ones_in_one_line() -> None:
    script = Script()
    script.todo(("1", "done", "Read it"), ("2", "open", "Write it"), ("3", "doing", "Test it"))
    lines = section(text(state(script)), "Now")
    assert [line.split(" (")[0] for line in lines] == [
        "Open: Write it",
        "In progress: Test it",
        "Done, by the agent's list: Read it",
    ]


def test_a_failing_check_binds_command_error_and_entry() -> None:
    script = Script()
    script.run("pytest -q", "E   assert 1 == 2\nFAILED tests/test_a.py::test_x\n1 failed in 0.1s", False, 1)
    words = text(state(script))
    assert "Failing: `pytest -q` → exit 1; 1 failed in 0.1s; failing: tests/test_a.py::test_x" in words
    assert words.count("`pytest -q`") == 1, "what Now tells is not told again among the commands"


def test_a_failure_that_is_no_check_is_told_among_the_commands() -> None:
    script = Script()
    script.run("cat nowhere.txt", "cat: nowhere.txt: No such file or directory", False, 1)
    script.run("curl localhost:8080", "curl: (7) Failed to connect to localhost port 8080", False, 7)
    words = text(state(script))
    assert "Failing:" not in words
    assert any("curl localhost:8080" in line and "exit 7" in line for line in section(words, "Commands"))


@pytest.mark.parametrize(
    ("command", "expected"),
    [("make test", True), ("uv run mypy src", True), ("npm run build", True), ("curl x", False), ("ls attests", False)],
)
def test_what_counts_as_a_check(command: str, expected: bool) -> None:
    assert is_check(CommandState(command, Fact("command", (1,), 0, subject=command))) is expected


def test_a_mended_command_says_what_was_failing() -> None:
    script = Script()
    script.run("pytest -q", "FAILED tests/test_a.py::test_x\n1 failed in 0.1s", False, 1)
    script.edit("src/a.py", "1", "2")
    script.run("pytest -q", "1 passed in 0.1s")
    words = text(state(script))
    assert "Failing:" not in words
    assert "Done, shown by: `pytest -q` → 1 passed in 0.1s" in words
    assert "; was failing: exit 1; 1 failed in 0.1s; failing: tests/test_a.py::test_x (" in words


def test_an_answer_is_bound_to_its_question() -> None:
    script = Script()
    script.user("Write the importer for the new price list.")
    asked = script.call(Action("ask", new="Skip or refuse?"), text="Skip or refuse?")
    script.result(asked, '"Skip or refuse?"="refuse"')
    assert any(
        line.startswith("Answered (00:03, abcd.2)") and '"Skip or refuse?": "refuse"' in line
        for line in section(text(state(script)), "Now")
    )


def test_files_show_deeds_names_and_what_is_true_on_disk() -> None:
    script = Script()
    script.read("/repo/docs/a.md")
    script.edit("/repo/src/a.py", "", "def load_config():\n    pass")
    script.edit("/repo/src/a.py", "", "class Loader:\n    pass")
    script.write("/repo/src/new.py", "LIMIT = 3\n")
    found = state(script, cwd="/repo")
    lines = [line.text for line in file_lines(found, VIEW, {"src/a.py": "changed", "docs/a.md": "gone"})]
    assert lines[0].startswith("src/new.py  created (") and "LIMIT" in lines[0]
    assert lines[1].startswith("src/a.py  edited ×2 (") and lines[1].endswith(": Loader, load_config [changed since]")
    assert lines[2].startswith("docs/a.md  read (") and lines[2].endswith(" [gone now]")


def test_a_deleted_file_is_not_called_gone() -> None:
    script = Script()
    script.result(script.call(Action("delete", path="old.sh")))
    line = file_lines(state(script), VIEW, {"old.sh": "gone"})[0].text
    assert "deleted (" in line and "gone now" not in line


def test_a_note_that_another_section_tells_is_not_repeated_but_counts_as_shown() -> None:
    script = Script()
    script.user("Rename parse_config, please, in every file of the package.")
    told = note("User wants parse_config renamed", 0, evidence="user")
    more = note("parse_config is called from three places", 0, 55)
    made = block(state(script), Memory(notes=(told, more)))
    assert told.text not in made.parts[0] and more.text in made.parts[0]
    assert set(made.shown) == {told.id, more.id} and made.left_out == ()


def test_a_note_on_a_superseded_instruction_is_marked_and_chosen_last() -> None:
    script = Script()
    script.user("Always use port 8080 for the server.")
    script.user("Don't use port 8080 any more, use port 8091 from now on.")
    notes = (note("Port is 8080", 0, 70, relevance="critical"), note("The proxy is nginx", 71, relevance="low"))
    words = text(state(script), Memory(notes=notes))
    assert "Port is 8080 [superseded]" in words and "The proxy is nginx\n" in words


def test_notes_name_time_relevance_evidence_and_doubt() -> None:
    sure = note("It was seen", 5, relevance="high")
    doubted = note("It was claimed", 6, evidence="agent")._replace(grounding="partial")
    words = text(State(), Memory(notes=(sure, doubted)))
    assert f"[{sure.id[:7]}] 00:01 high t It was seen\n" in words
    assert f"[{doubted.id[:7]}] 00:01 medium a? It was claimed\n" in words


def test_a_time_of_another_day_has_its_date() -> None:
    assert VIEW.when(60_000) == "00:01"
    assert VIEW.when(86_400_000 + 60_000) == "01-02 00:01"
    assert VIEW.when(0) == ""


def test_a_pin_that_is_too_long_loses_its_middle_and_says_how_to_get_it() -> None:
    line = pin_lines([Pin("p7", "START " + "x" * 5_000 + " END", "session", 1)])[0].text
    assert line.startswith("- START") and line.endswith(" END") and "whole: recall p7…]" in line and len(line) < 4_100


def test_a_pin_of_words_that_somebody_spoke_says_where_they_stand_and_a_long_one_leads_there() -> None:
    told, long = pin_lines([
        Pin("p1", "exit 2", "session", 1, "7c2e.12", "tool"), Pin("p2", "x" * 9_000, "session", 1, "7c2e.13", "user")
    ], "om recall", 500)  # fmt: skip
    assert told.text == "- exit 2 (t, 7c2e.12)"
    assert "whole: om recall 7c2e.13…]" in long.text and long.text.endswith("(u, 7c2e.13)")


def test_secrets_control_characters_and_newlines_never_come_out() -> None:
    script = Script()
    script.user("Use AKIAIOSFODNN7EXAMPLE\r\nfor\x1b[31m the\x00 bucket\u2028now\u202e.")
    script.run("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyzAB' x", "no", False, 1)
    words = text(state(script))
    for secret in ("AKIAIOSFODNN7EXAMPLE", "ghp_0123456789", "\x1b", "\x00", "\u2028", "\u202e", "\r"):
        assert secret not in words
    assert "for the bucket now." in words


def test_clipping_keeps_head_and_tail_and_counts_what_is_between() -> None:
    assert clip("short", 10) == "short"
    assert clip("a" * 20 + "b" * 20, 15) == "a" * 10 + " […25 characters…] " + "b" * 5
    assert clip_names(["one", "two", "three"], 10) == "one, two (+1)"
    assert clean("a\n\n b\t</observational-memory>") == "a b ‹/observational-memory>"


def test_the_words_of_the_last_instruction_shrink_to_the_room_that_there_is() -> None:
    script = Script()
    script.user("BEGIN " + "some words to be cut " * 90 + "END")
    long, short = now_lines(state(script), VIEW)[0], now_lines(state(script), VIEW, 120)[0]
    assert short.cost <= 120 < long.cost
    assert '"BEGIN' in short.text and short.text.endswith('END"')


def test_a_command_is_shown_as_it_was_typed_with_the_first_line_that_names_trouble() -> None:
    script = Script()
    output = "[test] ERROR task failed\nmain.go:12:2: undefined: total\nexit status 1"
    script.run("cd sub && make all 2>&1 | tail -3", output, ok=False, exit_code=1)
    (line,) = [line.text for line in command_lines(state(script), VIEW)]
    assert line.startswith("- `cd sub && make all 2>&1 | tail -3` → exit 1")
    assert '"main.go:12:2: undefined: total"' in line and '"[test] ERROR task failed"' in line
