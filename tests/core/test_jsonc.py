"""Editing a document that a person keeps changes only what is ours, whatever the document looks like."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from obsmem.core import jsonc

MARK = "/data/launch"


def is_ours(text: str) -> bool:
    return text.startswith(MARK)


def handler(event: str) -> dict[str, Any]:
    return {"type": "command", "command": f"{MARK} hook x {event}", "timeout": 10}


OURS = {
    "hooks": {
        "Start": [{"hooks": [handler("a 1/2"), handler("a 2/2")]}],
        "Stop": [{"hooks": [handler("b")]}],
    }
}

NASTY = {
    "missing": "",
    "blank": " \n\n",
    "only a comment": "// nothing yet\n",
    "empty object": "{}",
    "empty object over lines": "{\n}\n",
    "empty object with a comment": "{ // mine\n}\n",
    "one line": '{"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}',
    "one line without blanks": '{"a":1,"hooks":{"Stop":[{"hooks":[{"command":"say"}]}]}}',
    "empty places": '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
    "another hook of the event": '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"command": "say"}]}\n    ]\n  }\n}\n',
    "tabs": '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"matcher": "*", "hooks": []}\n\t\t]\n\t}\n}\n',
    "four blanks": '{\n    "model": "x"\n}',
    "carriage returns": '{\r\n  "hooks": {\r\n    "Stop": [\r\n      {"hooks": []}\r\n    ]\r\n  }\r\n}\r\n',
    "trailing commas": '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [],},\n    ],\n  },\n}\n',
    "a comment after the last": '{\n  "a": 1 // about a\n  // the end\n}\n',
    "a comment before the comma": '{\n  "a": 1 /* one */ , // two\n  "b": {} /* three */\n}\n',
    "slashes in strings": '{\n  "url": "http://x//y", "t": "/* no */ \\" // no"\n}\n',
    "byte order mark": '\ufeff{\n  "a": 1\n}\n',
    "not ASCII": '{\n  "name": "Grüße 🎉 \\u00e9"\n}\n',
    "a key twice": '{"hooks": {"Stop": []}, "hooks": {"Other": []}}\n',
    "brackets on one line": '{ "hooks": { "Stop": [ {"hooks": []},\n {"hooks": []} ] } }\n',
}


def without_space(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_what_is_put_in_is_there_and_everything_else_stays(text: str) -> None:
    before = jsonc.load(text)
    after = jsonc.merge(text, OURS)
    value = jsonc.load(after)
    for event, groups in OURS["hooks"].items():
        foreign = before.get("hooks", {}).get(event, [])
        assert value["hooks"][event] == foreign + groups
    assert {key: item for key, item in value.items() if key != "hooks"} == {
        key: item for key, item in before.items() if key != "hooks"
    }
    assert jsonc.count(after, is_ours) == 3
    if "\r\n" in text:
        assert after.count("\n") == after.count("\r\n")


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_a_second_time_changes_nothing(text: str) -> None:
    once = jsonc.merge(text, OURS)
    assert jsonc.merge(once, OURS) == once


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_taking_out_leaves_what_was_there(text: str) -> None:
    again = jsonc.take_out(jsonc.merge(text, OURS), is_ours, kept=jsonc.load(text))
    assert jsonc.load(again) == jsonc.load(text)
    assert without_space(again) == without_space(text if "{" in text else text + "{}")


def test_into_lists_that_hold_something_and_out_again_gives_the_same_bytes() -> None:
    text = '{\n\t"hooks": {\n\t\t"Start": [\n\t\t\t{"hooks": []} // mine\n\t\t],\n\t\t"Stop": [1,],\n\t},\n}\r\n'
    assert jsonc.take_out(jsonc.merge(text, OURS), is_ours) == text


def test_new_text_follows_the_indentation_of_the_document() -> None:
    after = jsonc.merge('{\n\t"a": 1\n}\n', {"hooks": {"Stop": [{"x": 1}]}})
    assert after == '{\n\t"a": 1,\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{\n\t\t\t\t"x": 1\n\t\t\t}\n\t\t]\n\t}\n}\n'


def test_a_document_without_anything_becomes_one_that_ends_with_a_newline() -> None:
    assert jsonc.merge("", {"version": 1}) == '{\n  "version": 1\n}\n'


def test_a_value_that_is_set_already_stays() -> None:
    assert jsonc.merge('{"version": 2}', {"version": 1}) == '{"version": 2}'


def test_a_foreign_handler_in_our_group_stays_and_so_does_its_group() -> None:
    text = '{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "/data/launch b"}, {"command": "say"}]}]}}'
    assert jsonc.load(jsonc.take_out(text, is_ours)) == {
        "hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "say"}]}]}
    }


def test_a_group_that_had_only_ours_goes_whole() -> None:
    text = '{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "/data/launch b"}]}]}, "a": 1}'
    assert jsonc.load(jsonc.take_out(text, is_ours)) == {"a": 1}


def test_members_whose_key_is_ours_and_items_that_are_lists_go_too() -> None:
    text = '{"bash": {"/data/launch *": "allow", "ls": "ask"}, "plugin": ["p", ["q", {"command": "/data/launch x"}]]}'
    assert jsonc.load(jsonc.take_out(text, is_ours)) == {"bash": {"ls": "ask"}, "plugin": ["p"]}


@pytest.mark.parametrize(
    "text",
    ["{", "[1", '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', "{} {}", '{"a": "\n"}', "{'a': 1}", '{"a": nope}', "[" * 5000, "/* x"],
)  # fmt: skip
def test_a_text_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|deeply"):
        jsonc.merge(text, OURS)


@pytest.mark.parametrize("text", ["[]", "1", '{"hooks": []}', '{"hooks": null}', '{"hooks": {"Stop": {}}}'])
def test_something_else_in_the_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (object|list)"):
        jsonc.merge(text, OURS)


# --- documents made up at random


def made_up(chance: random.Random) -> str:
    """A document with hooks of others, written in a random manner."""
    newline = chance.choice(["\n", "\r\n"])
    indent = chance.choice(["  ", "\t", "    "])
    trailing = chance.random() < 0.3
    comments = chance.random() < 0.4

    def blank(depth: int) -> str:
        if chance.random() < 0.1:
            return " "
        remark = chance.choice([" // x, [y] {z}", " /* a\n b */", ""]) if comments else ""
        return remark + newline + indent * depth

    def written(value: Any, depth: int) -> str:
        if not isinstance(value, (dict, list)) or not value:
            return json.dumps(value)
        pairs = isinstance(value, dict)
        items = [f'"{key}": {written(one, depth + 1)}' for key, one in value.items()] if pairs else []
        items = items or [written(one, depth + 1) for one in value]
        inside = ",".join(blank(depth + 1) + item for item in items) + ("," if trailing else "")
        return ("{" if pairs else "[") + inside + blank(depth) + ("}" if pairs else "]")

    events = {
        event: [{"hooks": [{"command": f"say {number}"}]} for number in range(chance.randint(1, 3))]
        for event in ("Start", "Stop", "Other")
    }
    value = {"model": "x", "list": [1, [2, {}]], "hooks": events, "last": {"a": [True, None]}}
    return written(value, 0) + chance.choice(["", newline])


@pytest.mark.parametrize("seed", range(300))
def test_made_up_documents_survive_byte_for_byte(seed: int) -> None:
    text = made_up(random.Random(seed))
    assert jsonc.load(text)["last"] == {"a": [True, None]}
    after = jsonc.merge(text, OURS)
    assert jsonc.count(after, is_ours) == 3
    assert jsonc.merge(after, OURS) == after
    assert jsonc.take_out(after, is_ours) == text
