"""Three wire formats of model providers, written from one kind of scripted answer.

Owns how an answer looks as a stream of server-sent events, and how a request is told from a side request. Knows
nothing of sockets, scripts or logs. Invariant: everything here is a pure function of its arguments.

An answer is a JSON object: ``text`` (str), ``tools`` (list of {name, input, namespace?}), ``usage`` ({input, output}
in tokens), ``seconds`` (how long it takes to begin), ``stalled`` (true: it stops within its text), or ``status`` and
``error`` for a refusal. All keys are optional; {} is the text "OK.", at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Answer = Mapping[str, Any]
Body = Mapping[str, Any]

SUMMARY_TEXT = (
    "<analysis>short</analysis>\n<summary>\n1. Primary request: SCRIPTED-SUMMARY of the work so far.\n</summary>"
)
TITLE_TEXT = '{"title": "Scripted title", "isNewTopic": false}'

# What only a summariser's instructions say, and what only a title request says.
_SUMMARY_MARKS = (
    "create a detailed summary of the conversation",
    "CONTEXT CHECKPOINT COMPACTION",
    "You are a context summarization agent",
)
_TITLE_MARKS = (
    "title generator",
    "concise, sentence-case title",
    "concise, single-line task title",
    "Generate a title",
    "short title",
)


def texts(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def messages(body: Body) -> list[Mapping[str, Any]]:
    """The conversation in a request of any of the three formats."""
    found = body.get("messages", body.get("input"))
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def classify(body: Body) -> str:
    """Name a request: ``summary`` (compaction), ``title`` (a side request), or ``main``."""
    asked = [message.get("content") for message in messages(body) if message.get("role") == "user"]
    given = [message.get("content") for message in messages(body) if message.get("role") in ("system", "developer")]
    # Claude Code and Codex ask for a summary in the last message, OpenCode with a system prompt and without tools.
    said = [asked[-1:]] if body.get("tools") else [asked[-1:], given, body.get("system"), body.get("instructions")]
    text = "\n".join(texts(said))
    if any(mark in text for mark in _SUMMARY_MARKS):
        return "summary"
    if not body.get("tools") and any(mark in text for mark in _TITLE_MARKS):
        return "title"
    return "main"


def tokens(answer: Answer) -> tuple[int, int]:
    """The (input, output) tokens that an answer claims; 100 and 10 where it names none."""
    usage = answer.get("usage", {})
    return int(usage.get("input", 100)), int(usage.get("output", 10))


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _said(answer: Answer) -> str:
    return str(answer.get("text", "" if answer.get("tools") else "OK."))


def anthropic_message(answer: Answer, number: int, model: str) -> dict[str, Any]:
    """One whole Anthropic message, as a request without streaming gets it."""
    text = _said(answer)
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for index, tool in enumerate(answer.get("tools", [])):
        call = f"toolu_{number:04d}{index:02d}"
        content.append({"type": "tool_use", "id": call, "name": tool["name"], "input": tool["input"]})
    taken, given = tokens(answer)
    return {
        "id": f"msg_{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if answer.get("tools") else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": taken,
            "output_tokens": given,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def anthropic_stream(answer: Answer, number: int, model: str) -> Iterator[bytes]:
    """The events of an Anthropic message."""
    message = anthropic_message(answer, number, model)
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        opening: dict[str, Any] = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        if block["type"] == "text":
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=opening)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=message["usage"])
    yield _event("message_stop")


def responses_stream(answer: Answer, number: int, model: str) -> Iterator[bytes]:
    """The events of an OpenAI response. A tool whose input is a string is a custom (free-form) tool call."""
    items: list[dict[str, Any]] = []
    text = _said(answer)
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "id": f"item_{number:06d}", "content": content})
    for index, tool in enumerate(answer.get("tools", [])):
        call: dict[str, Any] = {"call_id": f"call_{number:04d}{index:02d}", "name": tool["name"]}
        if isinstance(tool["input"], str):
            call |= {"type": "custom_tool_call", "input": tool["input"]}
        else:
            call |= {"type": "function_call", "arguments": json.dumps(tool["input"])}
        if "namespace" in tool:
            call["namespace"] = tool["namespace"]
        items.append(call)
    response: dict[str, Any] = {"id": f"resp_{number:06d}", "object": "response", "model": model, "output": []}
    yield _event("response.created", response=response)
    for index, item in enumerate(items):
        if item["type"] == "message":
            yield _event("response.output_item.added", output_index=index, item={**item, "content": []})
            place = {"output_index": index, "content_index": 0, "item_id": item["id"]}
            yield _event("response.output_text.delta", **place, delta=text)
        else:
            yield _event("response.output_item.added", output_index=index, item=item)
        yield _event("response.output_item.done", output_index=index, item=item)
    taken, given = tokens(answer)
    usage = {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": given,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": taken + given,
    }
    yield _event("response.completed", response={**response, "status": "completed", "output": items, "usage": usage})


def chat_stream(answer: Answer, number: int, model: str) -> Iterator[bytes]:
    """The chunks of a Chat Completions answer."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": _said(answer)}]
    for index, tool in enumerate(answer.get("tools", [])):
        function = {"name": tool["name"], "arguments": json.dumps(tool["input"])}
        call = {"index": index, "id": f"call_{number:04d}{index:02d}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    taken, given = tokens(answer)
    usage = {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}
    frame = {"id": f"chat_{number:06d}", "object": "chat.completion.chunk", "created": 0, "model": model}
    for delta in deltas:
        yield _chunk({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reason = "tool_calls" if answer.get("tools") else "stop"
    yield _chunk({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
    yield b"data: [DONE]\n\n"


def _chunk(value: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def stalled(events: Iterable[bytes]) -> Iterator[bytes]:
    """The events up to the first piece of the answer's text, in any of the formats."""
    for event in events:
        yield event
        if b"delta" in event:
            return


STREAMS: Mapping[str, Callable[[Answer, int, str], Iterator[bytes]]] = {
    "/v1/messages": anthropic_stream,
    "/v1/responses": responses_stream,
    "/v1/chat/completions": chat_stream,
}
