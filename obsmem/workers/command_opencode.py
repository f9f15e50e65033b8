"""OpenCode as a worker: ``opencode run`` with an agent that may do nothing, and a configuration folder for each call.

Flags are not enough: instructions, servers and plugins come from its user's configuration. So that folder is a new one
with whom to ask alone. Invariant: an answer in whose events a tool was used is thrown away.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from obsmem.core import jsonc
from obsmem.core.errors import WorkerError
from obsmem.system.files import make_folder, read_bytes, write_atomic
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
    json_lines,
    unlocked,
)
from obsmem.workers.command_process import Folder

PROGRAM = "opencode"
WINDOW = 0
VARIABLES = (
    "OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT", "OPENCODE_CONSOLE_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
    "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY", "XAI_API_KEY", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
)  # fmt: skip
PREFIXES = ("AWS_", "AZURE_")
HELP = ("run", "--help")
LOCKS = ("--pure", "--agent", "--format", "--title", "--model")
OPTIONAL = ()

AGENT = "notes"
# What is taken over from the user's own files: whom to ask.
_KEPT = ("provider", "model", "enabled_providers", "disabled_providers")
_FIXED = {
    "OPENCODE_DB": ":memory:",
    "OPENCODE_PURE": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_AUTOCOMPACT": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
_AGENT: dict[str, Any] = {"mode": "primary", "prompt": SYSTEM, "permission": {"*": "deny"}, "tools": {"*": False}}
_LOCKED: dict[str, Any] = {
    "agent": {AGENT: _AGENT},
    "permission": {"*": "deny"},
    "share": "disabled",
    "autoupdate": False,
    "snapshot": False,
    "mcp": {},
    "plugin": [],
    "instructions": [],
}
_WORDS = ("step_start", "text", "reasoning", "step_finish", "error")

TROUBLES = (
    Trouble(r"unknown argument", "settings", "The worker {name} does not know its flags. Update OpenCode."),
    Trouble(r"rate.?limit|\b429\b|too many requests|usage limit|quota", "unavailable", LIMITED),
    Trouble(
        r"ProviderAuthError|\b401\b|\b403\b|unauthori[sz]ed|api.?key",
        "settings",
        LOGGED_OUT.replace("{remedy}", "Run 'opencode auth login', or name its key's variable in 'environment'."),
    ),
    Trouble(r"ProviderModelNotFoundError|model not found|\b404\b|no models? (?:found|available)", "settings", NO_MODEL),
    Trouble(
        r"MessageOutputLengthError",
        "answer",
        "The answer of the worker {name} was cut off at the limit of its model. It will be asked again.",
    ),
    Trouble(r"overloaded|\b5\d\d\b|connect|timed? ?out|network|fetch failed", "unavailable", BUSY),
)


def facts(say: Callable[..., str]) -> dict[str, Any]:
    """Whether the agent that may do nothing really may not. Raises WorkerError where it may do something."""
    try:
        tools = json.loads(say("debug", "agent", AGENT, "--pure"))["tools"]
    except (ValueError, KeyError, TypeError):
        tools = {"tools": True}
    if any(tools.values()):
        raise unlocked(f"command:{PROGRAM}", "its agent without permissions still has tools")
    return {}


def confine(folder: Folder, environment: dict[str, str], outer: Mapping[str, str]) -> None:
    """A configuration folder and an own home, in which nothing of its user's stands but whom to ask."""
    kept, names = _kept(outer)
    path = os.path.join(folder.file("config"), "opencode", "opencode.json")
    write_atomic(path, json.dumps({**kept, **_LOCKED}).encode(), durable=False)
    make_folder(folder.file("home"))
    environment |= {name: outer[name] for name in names if name in outer}
    environment |= _FIXED
    environment |= {"XDG_CONFIG_HOME": folder.file("config"), "XDG_STATE_HOME": folder.file("state")}
    # Where it looks for what belongs to no project. HOME itself stays, for the logins of clouds.
    environment["OPENCODE_TEST_HOME"] = folder.file("home")


def arguments(call: Call) -> list[str]:
    """The agent that may do nothing; a title, since it would ask a model for one."""
    call.environment["OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX"] = str(call.answer_tokens)
    words = ["run", "--pure", "--agent", AGENT, "--format", "json", "--title", "Notes"]
    return [*words, "--model", call.model] if call.model else words


def read(name: str, output: Output) -> Answer:
    """The texts of all steps, and the usage of the last ones."""
    events = json_lines(output.stdout)
    if any(event.get("type") not in _WORDS for event in events):
        raise unlocked(name, "it used a tool")
    errors = [json.dumps(event.get("error")) for event in events if event.get("type") == "error"]
    if output.status or errors or not events:
        otherwise = f"The worker {name} failed with status {output.status} and did not say why. It will be asked again."
        said = "\n".join(errors) or f"{output.stderr}\n{output.stdout}"
        raise failure(name, said, TROUBLES, otherwise)
    parts = [(event["type"], event["part"]) for event in events if isinstance(event.get("part"), dict)]
    counts = [part.get("tokens") or {} for kind, part in parts if kind == "step_finish"]
    taken = sum(_count(tokens, "input") + sum((tokens.get("cache") or {}).values()) for tokens in counts)
    given = sum(_count(tokens, "output") + _count(tokens, "reasoning") for tokens in counts)
    return Answer("".join(str(part.get("text", "")) for kind, part in parts if kind == "text"), taken, given)


def finish(folder: Folder, outer: Mapping[str, str]) -> None:
    """Its login lies where it always does."""


def _count(tokens: Mapping[str, Any], name: str) -> int:
    return int(tokens.get(name) or 0)


def _kept(outer: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """What of the user's own settings holds here, too, and the variables that it speaks of."""
    base = outer.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    folder = os.path.join(base, "opencode")
    paths = [os.path.join(folder, name) for name in ("config.json", "opencode.json", "opencode.jsonc")]
    kept: dict[str, Any] = {}
    for path in [*paths, outer.get("OPENCODE_CONFIG", "")]:
        text = read_bytes(path).decode("utf-8", "replace") if path else ""
        if not text.strip():
            continue
        try:
            settings = jsonc.load(_with_whole_paths(text, os.path.dirname(path)))
        except ValueError as error:
            raise WorkerError(f"The settings file {path} cannot be read. Correct it.", fault="settings") from error
        kept |= {key: settings[key] for key in _KEPT if isinstance(settings, dict) and key in settings}
    return kept, re.findall(r"\{env:([^}]+)\}", json.dumps(kept))


def _with_whole_paths(text: str, folder: str) -> str:
    """Files that are named from the folder of the settings are named from the root, since that folder is another one."""
    whole = json.dumps(folder)[1:-1]
    return re.sub(r"\{file:(?![/~]|[A-Za-z]:)(?:\./)?([^}]+)\}", lambda found: f"{{file:{whole}/{found[1]}}}", text)
