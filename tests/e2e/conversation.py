"""A conversation as a model's request holds it, in any of the three wire formats: prompts, answers, and calls with results.

Invariant: everything is read from the request itself; a call counts with the result that names it, and with no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from obsmem.core.turns import Turn, all_words, tool_uses

from . import wire


class Called(NamedTuple):
    """A tool call: its name, its arguments with strings as they are (never escaped), and what it gave back, None for nothing."""

    name: str
    given: str
    output: str | None


class Held(NamedTuple):
    """What a request holds: what the user and the agent said, each text by itself, and the calls in order."""

    prompts: list[str]
    answers: list[str]
    calls: list[Called]


def held(body: wire.Body) -> Held:
    """Read a request."""
    made: dict[str, tuple[str, str]] = {}
    outputs: dict[str, str] = {}
    said: dict[str, list[str]] = {"user": [], "assistant": []}
    for message in wire.messages(body):
        for kind, *words in _items(message):
            if kind == "call":
                made[words[0]] = (words[1], words[2])
            elif kind == "output":
                outputs[words[0]] = words[1]
            elif kind in said:
                said[kind].append(words[0])
    calls = [Called(name, given, outputs.get(id_)) for id_, (name, given) in made.items()]
    assert set(outputs) <= set(made), "a result without its call"
    return Held(said["user"], said["assistant"], calls)


def _items(message: Any) -> Iterator[tuple[str, ...]]:
    """(``user`` or ``assistant``, text), (``call``, id, name, arguments) and (``output``, id, text) of one message."""
    kind = str(message.get("type", ""))
    if kind.endswith("_call_output"):
        yield "output", message["call_id"], _joined(message["output"])
    elif kind.endswith("_call"):
        yield "call", message["call_id"], message["name"], _given(message.get("arguments", message.get("input")))
    elif message.get("role") == "tool":
        yield "output", message["tool_call_id"], _joined(message["content"])
    else:
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content or ""}]:
            if block["type"] == "tool_use":
                yield "call", block["id"], block["name"], _joined(block["input"])
            elif block["type"] == "tool_result":
                yield "output", block["tool_use_id"], _joined(block["content"])
            elif block.get("text"):
                yield str(message.get("role")), block["text"]
        for call in message.get("tool_calls") or ():
            yield "call", call["id"], call["function"]["name"], _given(call["function"]["arguments"])


def _given(text: str) -> str:
    """Arguments that are JSON in a string; a free-form call's are the text itself."""
    try:
        return _joined(json.loads(text))
    except ValueError:
        return text


def _joined(value: Any) -> str:
    return "\n".join(wire.texts(value))


class Kept(NamedTuple):
    """How much of a conversation a request holds. ``lost`` are texts that are missing, ``arguments`` the lines of calls that
    are."""

    turns: int
    calls: int
    characters: int
    lost: list[str]
    arguments: list[str]


def kept(turns: list[Turn], request: Held) -> Kept:
    """Compare: a turn is kept whose prompts and answers and the outputs of whose calls all are; the characters of arguments
    count line by line."""
    count = calls = characters = place = 0
    lost: list[str] = []
    arguments: list[str] = []
    said = "\n".join([*request.prompts, *request.answers])
    for turn in turns:
        before = len(lost)
        for words in all_words(turn):
            found = words.text in said
            characters += len(words.text) * found
            lost += [] if found else [words.text]
        for use in tool_uses(turn):
            made = request.calls[place] if place < len(request.calls) else Called("", "", None)
            place += 1
            missing = [line for line in use.input.split("\n") if not _stands(line, made.given)]
            is_there = made.output is not None and use.output in made.output
            calls += is_there and len(missing) < len(use.input.split("\n"))
            characters += len(use.input) - sum(map(len, missing)) + len(use.output) * is_there
            arguments += missing
            lost += [] if is_there else [use.output]
        count += len(lost) == before
    return Kept(count, calls, characters, lost, arguments)


def _stands(line: str, given: str) -> bool:
    """True if a line of a call's words stands in the arguments, as it is, without the argument's name before it, or without
    the sign of a patch."""
    without = (line.partition(": ")[2].strip(), line[1:] if line[:1] in ("+", "-", " ") else "")
    return line in given or any(part and part in given for part in without)
