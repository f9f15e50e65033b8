"""*Names* takes what room is left, tells what the other sections have not, and says where each name stands."""

from __future__ import annotations

from obsmem.core.clock import utc_minute
from obsmem.core.model import Memory
from obsmem.memory.sections_names import ROW, name_lines
from obsmem.memory.wording import View
from tests.memory.card_entries import Script
from tests.memory.state_maker import block, note, state

VIEW = View("abcd", utc_minute, "recall", "1970-01-01")
ROOM = 2_000


def many_names(count: int) -> str:
    return "".join(f"def measure_number_{number}():\n    pass\n" for number in range(count))


def test_names_that_other_lines_told_are_not_told_again() -> None:
    script = Script()
    script.write("new.py", many_names(3))
    lines = name_lines(state(script), VIEW, ["new.py  created: measure_number_1"], ROOM)
    assert [line.text for line in lines] == ["new.py: measure_number_0, measure_number_2"]


def test_a_name_stands_beside_its_file_or_the_command_that_printed_it_or_who_said_it() -> None:
    script = Script()
    script.run("git log --oneline -3", "34157bc5 one\n0eb220a6 two\nd45a7c90 three")
    script.write("new.py", many_names(1))
    script.run("pytest tests/test_new.py", "new.py: measure_number_0 fails in lonely_name")
    script.agent("The cause is in parse_config.")
    lines = [line.text for line in name_lines(state(script), VIEW, [], ROOM)]
    assert lines == [
        "the agent said: parse_config",
        "new.py: measure_number_0",
        "`git log --oneline -3` (abcd.1): 0eb220a6, d45a7c90, 34157bc5",
        "elsewhere: tests/test_new.py, lonely_name",
    ]


def test_a_long_list_is_cut_into_rows_each_with_its_file() -> None:
    script = Script()
    script.write("new.py", many_names(40))
    lines = name_lines(state(script), VIEW, [], ROOM)
    assert len(lines) > 1
    assert all(line.text.startswith("new.py: ") and len(line.text) <= ROW + 30 for line in lines)
    told = ", ".join(line.text.removeprefix("new.py: ") for line in lines).split(", ")
    assert len(told) == len(set(told)) == 40


def test_they_keep_to_their_room_and_what_the_user_said_comes_first() -> None:
    script = Script()
    for number in range(30):
        if number == 15:
            script.user("Look at fetch_orders, please.")
        script.run(f"grep -rn thing_{number} .", many_names(20).replace("measure", f"seen_{number}"))
    lines = name_lines(state(script), VIEW, [], 100)
    assert sum(line.cost for line in lines) <= 100
    assert any("fetch_orders" in line.text for line in lines)


def test_they_take_of_what_flows_to_the_notes_and_are_the_first_to_go() -> None:
    script = Script()
    script.user("Write the measures.")
    for number in range(12):
        script.write(f"module_{number}.py", many_names(40).replace("measure", f"measure_{number}"))
    words = "the reader was found to open its file twice, which costs a second each time it is asked for"
    memory = Memory(notes=tuple(note(f"{words} ({number})", 1, at=60_000 * number) for number in range(400)))
    wide, narrow = block(state(script), memory, 8_000), block(state(script), memory, 1_000)
    assert 0 < wide.sections["Names"] <= 0.21 * 8_000 < wide.sections["Notes"]
    assert "Names" not in narrow.sections and narrow.sections["Notes"] > 0
    assert wide.tokens <= 8_000 and narrow.tokens <= 1_000
