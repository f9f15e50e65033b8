"""The two forms of request that are spoken, Messages and Chat Completions: what is sent, and how an answer is read.

Pure: values in, values out. Invariant: an answer that was cut off, refused or left empty is raised as WorkerError, whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from obsmem import __version__
from obsmem.core.errors import WorkerError
from obsmem.core.model import Request
from obsmem.workers.base import SYSTEM

APIS = ("anthropic", "openai")
ENDPOINTS = {"anthropic": "/messages", "openai": "/chat/completions"}
KEY_PLACE = "{key}"  # stands for the key in the value of an extra header

_CUT = ("length", "max_tokens")
_REFUSED = ("refusal", "content_filter", "safety")
_FULL = ("model_context_window_exceeded",)


class Habits(NamedTuple):
    """What a server and model took of the optional parts of a request. Every part is sent until it is refused."""

    temperature: bool = True
    structured: bool = True
    limit_name: str = "max_tokens"


class Said(NamedTuple):
    """What an answer says: the model's words, the tokens that were counted (0 where unknown) and the model's own name."""

    text: str
    tokens_in: int
    tokens_out: int
    model: str


def body(api: str, model: str, answer_tokens: int, request: Request, habits: Habits) -> bytes:
    """A request as JSON. The prompt stands alone in one message, our instructions in the system's place."""
    # A lone surrogate cannot be sent as UTF-8, and some servers refuse it as an escape too.
    prompt = request.prompt.encode("utf-8", "replace").decode("utf-8")
    fields: dict[str, Any] = {"model": model, habits.limit_name: answer_tokens, "stream": False}
    message = {"role": "user", "content": prompt}
    if api == "anthropic":
        fields |= {"system": SYSTEM, "messages": [message]}
    else:
        fields["messages"] = [{"role": "system", "content": SYSTEM}, message]
    if habits.temperature:
        fields["temperature"] = 0
    if habits.structured and request.schema:
        fields |= _structured(api, request)
    return json.dumps(fields).encode("ascii")


def _structured(api: str, request: Request) -> dict[str, Any]:
    """The fields that hold an answer to the schema.

    For Messages this is ``output_config``, not a forced tool: the models that always think refuse a forced tool with
    status 400, while every model since the end of 2025 takes ``output_config`` (and servers that imitate the API mostly
    ignore either). Where it is unknown it is refused or ignored, and the prompt alone asks for JSON.
    """
    if api == "anthropic":
        return {"output_config": {"format": {"type": "json_schema", "schema": request.schema}}}
    named = {"name": request.task, "strict": True, "schema": request.schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def headers(api: str, key: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request; ``extra`` wins, and its ``{key}`` is the key, which then stands nowhere else."""
    fields = {
        "content-type": "application/json",
        "accept": "application/json",
        "user-agent": f"observational-memory/{__version__}",
    }
    if api == "anthropic":
        fields["anthropic-version"] = "2023-06-01"
    if key and not any(KEY_PLACE in value for value in extra.values()):
        name, value = ("x-api-key", key) if api == "anthropic" else ("authorization", f"Bearer {key}")
        fields[name] = value
    return fields | {name.lower(): value.replace(KEY_PLACE, key) for name, value in extra.items()}


def read(api: str, value: Mapping[str, Any], worker: str) -> Said:
    """Read an answer. Raises WorkerError where it is none, or holds no whole answer of the model."""
    text, ended, known = _messages(value) if api == "anthropic" else _completions(value)
    if not known:
        raise WorkerError(
            f"The worker {worker} sent JSON that is no answer of the {api} API: nothing was kept. Check 'api' and 'url'.",
            retry=True,
        )
    if ended in _CUT:
        raise WorkerError(
            f"The worker {worker} reached its limit of answer tokens and was cut off: nothing was kept. "
            "Raise 'answer_tokens' if this happens often.",
            retry=True,
        )
    if ended in _FULL:
        raise WorkerError(
            f"The worker {worker} filled its window before its answer ended: nothing was kept. Less will be sent.",
            fault="overflow",
        )
    if ended in _REFUSED:
        raise WorkerError(
            f"The worker {worker} refused to answer this ({ended}): nothing was kept. Another worker may take it."
        )
    if not text.strip():
        raise WorkerError(f"The worker {worker} gave an empty answer: nothing was kept. Ask again.", retry=True)
    model = value.get("model")
    return Said(text, *_usage(api, value.get("usage")), model if isinstance(model, str) else "")


def _messages(value: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Text, reason of the end, and whether this is an answer at all. Blocks of thinking are no part of the answer."""
    blocks = value.get("content")
    return _text(blocks), str(value.get("stop_reason") or ""), isinstance(blocks, list)


def _completions(value: Mapping[str, Any]) -> tuple[str, str, bool]:
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return "", "", False
    content = message.get("content")
    text = content if isinstance(content, str) else _text(content)
    return text, "refusal" if message.get("refusal") else str(choice.get("finish_reason") or ""), True


def _text(blocks: Any) -> str:
    """The text of a list of blocks; '' where there is none."""
    texts = (
        [
            block.get("text")
            for block in blocks
            if isinstance(block, dict) and block.get("type") in ("text", "output_text")
        ]
        if isinstance(blocks, list)
        else []
    )
    return "".join(text for text in texts if isinstance(text, str))


def _usage(api: str, value: Any) -> tuple[int, int]:
    usage = value if isinstance(value, dict) else {}
    if api == "openai":
        return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    # What is read from or written to a cache is not in input_tokens.
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(_count(usage.get(part)) for part in parts), _count(usage.get("output_tokens"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
