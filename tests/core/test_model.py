"""Entries are changed field by field: nothing else of them moves."""

from __future__ import annotations

from obsmem.core.model import Action, Entry, Place

ENTRY = Entry(
    -1, "id", "tool_result", "tool", "words", "", "call", False, 7, True, None, 2, (Action("run", command="ls"),), 3, 0, 4
)  # fmt: skip


def test_an_entry_gets_its_tool_and_what_archiving_gives_it() -> None:
    place = Place("/t.jsonl", 3, 40, 12, "ab")
    assert ENTRY.with_tool("Bash") == ENTRY._replace(tool="Bash")
    archived = ENTRY.archived(9, place, 5)
    assert archived == ENTRY._replace(seq=9, place=place, tokens=5)
    assert type(archived) is Entry and archived.observable
