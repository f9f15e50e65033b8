"""A tool call keeps what the target's own tool has a word for."""

from __future__ import annotations

import json

import pytest

from obsmem.core.model import Action
from obsmem.core.turns import Draft, Parentage, ToolUse, Turn, Words
from obsmem.harnesses import claude_code_writer, codex_writer, opencode_writer
from obsmem.harnesses.codex_listing import listing

COMMAND = "ls\ndescription: not this"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n context\n-old\n+new\n*** End Patch\n"


def use(action: Action, given: str, name: str = "tool") -> ToolUse:
    return ToolUse(name, (action,), given, "done", True, "call_1")


def test_the_description_of_a_command_is_kept_and_none_is_made_of_the_command_itself() -> None:
    told = use(Action("run", "", COMMAND), f"command: {COMMAND}\ndescription: List\ntimeout: 5")
    assert claude_code_writer.tool_and_input(told) == ("Bash", {"command": COMMAND, "description": "List"})
    assert opencode_writer.tool_and_input(told) == ("bash", {"command": COMMAND, "description": "List"})
    assert codex_writer.tool_and_arguments(told) == ("exec_command", {"cmd": COMMAND})
    silent = use(Action("run", "", "ls"), "command: ls")
    assert claude_code_writer.tool_and_input(silent) == ("Bash", {"command": "ls"})
    assert opencode_writer.tool_and_input(silent)[1]["description"] == ""


@pytest.mark.parametrize(("name", "value"), [("replace_all", True), ("replaceAll", True), ("replace_all", False)])
def test_an_edit_of_every_place_stays_one(name: str, value: bool) -> None:
    edit = use(Action("edit", "a.py", "", "new", "old"), f"path: a.py\nold: old\nnew: new\n{name}: {json.dumps(value)}")
    assert claude_code_writer.tool_and_input(edit)[1].get("replace_all", False) is value
    assert opencode_writer.tool_and_input(edit)[1].get("replaceAll", False) is value


def test_what_was_a_patch_is_kept_with_its_context() -> None:
    assert codex_writer.patch_of(use(Action("edit", "a.py", "", "new", "old"), PATCH, "apply_patch")) == PATCH
    made = codex_writer.patch_of(use(Action("edit", "a.py", "", "new", "old"), "file_path: a.py"))
    assert made == "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch\n"


def test_items_keep_their_weight() -> None:
    items = (("1", "open", "Read"), ("2", "done", "Write"))
    given = "todos[0].content: Read\ntodos[0].priority: high\ntodos[1].content: Write"
    _, made = opencode_writer.tool_and_input(use(Action("todo", items=items), given))
    assert [item["priority"] for item in made["todos"]] == ["high", "medium"]


def _said(thread: object, listed: list[str], **more: object) -> str:
    answers = [
        {"id": 1, "result": {}},
        {"method": "configWarning", "params": {}},
        {"id": 2, "result": {"data": [{"id": name} for name in listed]}},
        {"id": 3, "result": {"thread": thread}, **more},
    ]
    return "".join(json.dumps(one) + "\n" for one in answers)


def test_a_session_counts_as_listed_if_it_is_and_if_all_words_are_shown() -> None:
    turn = Turn((Words("Count\nthe lines", "abcd.1"),), (Words("Three.", "abcd.2"),))
    draft = Draft((turn,), "", "", "title", "/folder", Parentage("codex", "x", "abcd", 2), 0)
    asked = listing("me", draft)
    assert asked.enough is not None
    items = [{"items": [{"text": "Count\nthe lines"}, {"type": "agentMessage", "text": "Three."}]}]
    whole = _said({"turns": items}, ["other", "me"])
    assert asked.enough(whole) and not asked.enough(whole[:-3])
    assert asked.wrong(whole) == ""
    assert "has it not" in asked.wrong(_said({"turns": items}, ["other"]))
    assert "abcd.2" in asked.wrong(_said({"turns": [{"items": items[0]["items"][:1]}]}, ["me"]))
    assert "no rollout" in asked.wrong(
        whole.replace('"result": {"thread"', '"error": {"message": "no rollout"}, "x": {"thread"')
    )


def test_answers_that_come_in_another_order_are_waited_for() -> None:
    asked = listing("me", Draft((), "", "", "title", "/folder", Parentage("codex", "x", "abcd", 2), 0))
    assert asked.enough is not None
    lines = _said({"turns": []}, ["me"]).split("\n")
    assert not asked.enough("\n".join([lines[0], lines[3], ""])) and asked.enough("\n".join([lines[3], lines[2], ""]))
