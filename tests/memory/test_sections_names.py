"""*Names* takes what room is left, and tells what *Files* has not."""

from __future__ import annotations

from obsmem.core.clock import utc_minute
from obsmem.memory.sections_names import ROW, name_lines
from obsmem.memory.wording import View
from tests.memory.card_entries import Script
from tests.memory.state_maker import block, state

VIEW = View("abcd", utc_minute, "recall", "1970-01-01")


def many_names(count: int) -> str:
    return "".join(f"def measure_number_{number}():\n    pass\n" for number in range(count))


def test_names_that_files_told_are_not_told_again_and_changed_files_come_first() -> None:
    script = Script()
    script.read("old.py")
    script.write("new.py", many_names(3))
    lines = name_lines(state(script), VIEW, ["new.py  created: measure_number_1"])
    assert [line.text for line in lines] == ["new.py: measure_number_0, measure_number_2"]


def test_a_long_list_is_cut_into_rows_each_with_its_file() -> None:
    script = Script()
    script.write("new.py", many_names(40))
    lines = name_lines(state(script), VIEW, [])
    assert len(lines) > 2
    assert all(line.text.startswith("new.py: ") and len(line.text) <= ROW + 30 for line in lines)
    told = ", ".join(line.text.removeprefix("new.py: ") for line in lines).split(", ")
    assert len(told) == len(set(told)) == 40


def test_a_block_has_them_only_where_room_is_left() -> None:
    script = Script()
    script.user("Write the measures.")
    for number in range(12):
        script.write(f"module_{number}.py", many_names(40).replace("measure", f"measure_{number}"))
    wide, narrow = block(state(script), budget=8_000), block(state(script), budget=1_000)
    assert "## Names" in "\n".join(wide.parts)
    assert wide.tokens <= 8_000 and narrow.tokens <= 1_000
    assert wide.sections["Names"] > 0
    assert wide.sections["Files"] <= 0.21 * 8_000
