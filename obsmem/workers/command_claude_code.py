"""Claude Code as a worker: ``claude -p`` with every tool, hook, server, skill and instruction file off.

Invariant: its own report of how the session began is read with each answer; one that names a tool, a server or a
command that was not shut out is a failure, whatever the answer says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from obsmem.core.errors import WorkerError
from obsmem.workers.base import SYSTEM
from obsmem.workers.command_base import (
    BUSY,
    LIMITED,
    LOGGED_OUT,
    NO_MODEL,
    Answer,
    Call,
    Output,
    Trouble,
    failure,
    unlocked,
)
from obsmem.workers.command_process import Folder

PROGRAM = "claude"
WINDOW = 200_000
VARIABLES = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "CLOUD_ML_REGION",
    "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
)  # fmt: skip
PREFIXES = (
    "AWS_",
    "ANTHROPIC_DEFAULT_",
    "ANTHROPIC_VERTEX_",
    "ANTHROPIC_BEDROCK_",
    "ANTHROPIC_FOUNDRY_",
    "VERTEX_REGION_",
)
HELP = ("--help",)
LOCKS = (
    "--safe-mode", "--tools", "--strict-mcp-config", "--setting-sources", "--disable-slash-commands",
    "--no-session-persistence", "--permission-mode", "--settings", "--system-prompt", "--output-format", "--verbose",
)  # fmt: skip
OPTIONAL = ("--json-schema", "--effort")
THINKING_TOKENS = 8_000  # newer models think whatever they are told, and that counts as part of the answer
ANSWER_TOOL = "StructuredOutput"  # the schema's own tool, through which the answer comes
_FIXED = {
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "ENABLE_TOOL_SEARCH": "false",  # else a placeholder stands among the tools
    "MAX_THINKING_TOKENS": "0",
    "CLAUDE_CODE_MAX_RETRIES": "2",  # else it waits for minutes before it says that it was refused
}

_REFUSAL = re.compile(r"the request is ~?(\d+) tokens \(limit (\d+)\)")

TROUBLES = (
    Trouble(r"unknown option|unknown argument", "settings", "The worker {name} does not know its flags. Update Claude Code."),
    Trouble(
        r"\b429\b|rate.?limit|usage limit|hit your .{0,20}limit|reached your .{0,20}limit|limit reached",
        "unavailable",
        LIMITED,
    ),
    Trouble(
        r"credit balance",
        "settings",
        "The worker {name} has no credit left at its provider. Top it up, or take its API key out of the environment to "
        "use a subscription.",
    ),
    Trouble(
        r"not logged in|/login|\b401\b|\b403\b|invalid.{0,12}api.?key|oauth token|authentication|organization has been disabled",
        "settings",
        LOGGED_OUT.replace("{remedy}", "Run 'claude' and log in; a key helper in its settings file is not read here."),
    ),
    Trouble(r"issue with the selected model|\b404\b|model not found", "settings", NO_MODEL),
    Trouble(
        r"error_max_structured_output_retries|error_max_turns",
        "answer",
        "The worker {name} gave no answer in the form that was asked for. It will be asked again.",
    ),
    Trouble(r"overloaded|\b5\d\d\b|connection|timed? ?out|network|fetch failed|internal server error", "unavailable", BUSY),
)  # fmt: skip


def facts(say: Callable[..., str]) -> dict[str, Any]:
    """Nothing else is needed."""
    return {}


def confine(folder: Folder, environment: dict[str, str], outer: Mapping[str, str]) -> None:
    """Nothing but its flags is needed; these variables keep it quiet and quick."""
    environment |= _FIXED


def arguments(call: Call) -> list[str]:
    """Every customisation off, our system prompt, the answer held to the schema."""
    words = ["-p", "--safe-mode", "--tools", "", "--strict-mcp-config", "--setting-sources", ""]
    words += ["--disable-slash-commands", "--no-session-persistence", "--permission-mode", "dontAsk"]
    words += [
        "--settings",
        '{"disableAllHooks":true}',
        "--system-prompt",
        SYSTEM,
        "--output-format",
        "json",
        "--verbose",
    ]
    if call.model:
        words += ["--model", call.model]
    if "--effort" in call.flags:
        words += ["--effort", "low"]
    if call.schema and "--json-schema" in call.flags:
        words += ["--json-schema", json.dumps(call.schema)]
    call.environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(call.answer_tokens + THINKING_TOKENS)
    return words


def read(name: str, output: Output) -> Answer:
    """The answer from the list of events that ``--verbose`` makes of the JSON output."""
    events = _events(output.stdout)
    result = next((event for event in reversed(events) if event.get("type") == "result"), None)
    otherwise = f"The worker {name} failed with status {output.status} and did not say why. It will be asked again."
    if result is None:
        if output.status:
            raise failure(name, f"{output.stderr}\n{output.stdout}", TROUBLES, otherwise)
        raise WorkerError(f"The worker {name} printed no result in JSON. It will be asked again.", retry=True)
    _assert_locked(name, events)
    if output.status or result.get("is_error") or result.get("subtype") != "success":
        words = ("subtype", "terminal_reason", "api_error_status", "result", "errors")
        said = "\n".join(str(result.get(word)) for word in words)
        # What the server said comes in the program's own words.
        said = _REFUSAL.sub(r"prompt is too long: \1 tokens > \2 maximum", said)
        raise failure(name, said, TROUBLES, otherwise)
    usage = result.get("usage") or {}
    taken = sum(int(usage.get(part) or 0) for part in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))  # fmt: skip
    structured = result.get("structured_output")
    text = str(result.get("result") or "") if structured is None else json.dumps(structured)
    return Answer(text, taken, int(usage.get("output_tokens") or 0), _model(events))


def finish(folder: Folder, outer: Mapping[str, str]) -> None:
    """Its login lies where it always does."""


def _events(stdout: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(stdout)
    except ValueError:
        return []
    found = value if isinstance(value, list) else [value]
    return [event for event in found if isinstance(event, dict)]


def _begin(events: list[dict[str, Any]]) -> dict[str, Any]:
    return next((event for event in events if event.get("subtype") == "init"), {})


def _assert_locked(name: str, events: list[dict[str, Any]]) -> None:
    begin = _begin(events)
    if not begin:
        raise unlocked(name, "it does not say with which tools it began")
    tools = [tool for tool in begin.get("tools", ["tools"]) if tool != ANSWER_TOOL]
    for what, found in (
        ("tools", tools),
        ("servers", begin.get("mcp_servers")),
        ("commands", begin.get("slash_commands")),
    ):
        if found:
            raise unlocked(name, f"it began with {what}")


def _model(events: list[dict[str, Any]]) -> str:
    messages = [event["message"] for event in events if isinstance(event.get("message"), dict)]
    said = [str(message["model"]) for message in messages if message.get("model")]
    return said[-1] if said else str(_begin(events).get("model", ""))
