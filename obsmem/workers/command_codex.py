"""Codex as a worker: ``codex exec`` with a home of its own for each call, in which nothing of its user's stands.

Flags are not enough: the user's AGENTS.md and skills are read from its home, and newer models bring tools of their own
that no flag takes away. So its home is a new folder with the login alone, and the models are described to it as what
they are here: models without tools. Invariant: an answer in whose events a tool was used is thrown away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from obsmem.core.errors import WorkerError
from obsmem.system.files import read_bytes, write_atomic
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

PROGRAM = "codex"
WINDOW = 0
VARIABLES = (
    "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE", "OPENAI_API_KEY", "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION", "OPENAI_PROJECT",
)  # fmt: skip
PREFIXES = ()
HELP = ("exec", "--help")
LOCKS = (
    "--ephemeral", "--ignore-rules", "--skip-git-repo-check", "--sandbox", "--config", "--json",
    "--output-last-message",
)  # fmt: skip
OPTIONAL = ("--output-schema",)

_FEATURES = (
    "hooks", "plugins", "apps", "memories", "goals", "shell_tool", "unified_exec", "view_image", "image_generation",
    "multi_agent", "multi_agent_v2", "tool_suggest", "sleep_tool", "code_mode", "code_mode_only", "context_management",
    "current_time_reminder", "deferred_executor", "request_permissions_tool", "standalone_web_search", "token_budget",
    "browser_use", "computer_use", "skill_search", "shell_snapshot", "worktrees", "daemon_auto_start",
)  # fmt: skip
_SETTINGS: dict[str, Any] = {
    **{f"features.{name}": False for name in _FEATURES},
    "web_search": "disabled",
    "tools.experimental_request_user_input.enabled": False,
    "tools.update_plan.enabled": False,
    "skills.include_instructions": False,
    "project_doc_max_bytes": 0,
    "include_apps_instructions": False,
    "include_collaboration_mode_instructions": False,
    "include_environment_context": False,
    "include_permissions_instructions": False,
    "model_reasoning_effort": "low",
    "check_for_update_on_startup": False,
    "analytics.enabled": False,
    "history.persistence": "none",
}
# What a model brings along, and what stands in its place. A key that a version's list does not have is left out.
_PLAIN: dict[str, Any] = {
    "tool_mode": None,
    "shell_type": "disabled",
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
    "multi_agent_version": None,
    "supports_search_tool": False,
    "use_responses_lite": False,
    "model_messages": None,
    "base_instructions": SYSTEM,
}
# What is taken over from the user's own file: whom to ask, and as whom.
_KEPT = ("model", "model_provider", "model_providers", "openai_base_url", "chatgpt_base_url", "forced_login_method")
_LOGIN = "auth.json"
# Events that are words; each other item is something that was done.
_WORDS = ("agent_message", "reasoning", "error")

TROUBLES = (
    Trouble(r"unexpected argument|unrecognized", "settings", "The worker {name} does not know its flags. Update Codex."),
    Trouble(r"usage limit|rate.?limit|\b429\b|too many requests|quota", "unavailable", LIMITED),
    Trouble(
        r"\b401\b|\b403\b|not logged in|unauthori[sz]ed|api key|missing environment variable|refresh token|log ?in again",
        "settings",
        LOGGED_OUT.replace("{remedy}", "Run 'codex login'; a login in a keyring is not seen here, one in auth.json is."),
    ),
    Trouble(r"model.{0,80}(?:does not exist|not found|not supported)|unknown model", "settings", NO_MODEL),
    Trouble(r"overloaded|at capacity|\b5\d\d\b|stream disconnected|connection|error sending request|timed? ?out", "unavailable", BUSY),
)  # fmt: skip


def facts(say: Callable[..., str]) -> dict[str, Any]:
    """The installed version's models, described as models without tools."""
    try:
        models = json.loads(say("debug", "models"))["models"]
    except (ValueError, KeyError, TypeError):
        models = []
    return {"models": [{**model, **{key: value for key, value in _PLAIN.items() if key in model}} for model in models]}


def confine(folder: Folder, environment: dict[str, str], outer: Mapping[str, str]) -> None:
    """A home of its own: the login, and whom to ask, from the user's."""
    home = folder.file("home")
    os.mkdir(home)
    login = os.path.join(_users_home(outer), _LOGIN)
    if os.path.exists(login):
        try:
            os.symlink(login, os.path.join(home, _LOGIN))
        except OSError:  # not allowed to everybody on Windows
            os.link(login, os.path.join(home, _LOGIN))
    kept = _kept(os.path.join(_users_home(outer), "config.toml"))
    lines = [f"{_toml_key(key)} = {_toml(value)}\n" for key, value in kept.items()]
    write_atomic(os.path.join(home, "config.toml"), "".join(lines).encode(), durable=False)
    for provider in (kept.get("model_providers") or {}).values():
        names = [provider.get("env_key"), *(provider.get("env_http_headers") or {}).values()]
        environment |= {name: outer[name] for name in names if name in outer}
    environment |= {"CODEX_HOME": home, "CODEX_EXEC_SERVER_URL": "none"}


def arguments(call: Call) -> list[str]:
    """Every tool and customisation off, our system prompt, the answer held to the schema."""
    words = ["exec", "--ephemeral", "--ignore-rules", "--skip-git-repo-check", "--sandbox", "read-only", "--json"]
    settings = {**_SETTINGS, "model_instructions_file": call.folder.write("instructions", SYSTEM)}
    if call.facts.get("models"):
        catalog = json.dumps({"models": call.facts["models"]})
        settings["model_catalog_json"] = call.folder.write("models", catalog)
    for key, value in settings.items():
        words += ["--config", f"{key}={_toml(value)}"]
    if call.model:
        words += ["--model", call.model]
    if call.schema and "--output-schema" in call.flags:
        words += ["--output-schema", call.folder.write("schema", json.dumps(call.schema))]
    return [*words, "--output-last-message", call.folder.file("answer"), "-"]


def read(name: str, output: Output) -> Answer:
    """The last message, and the usage from the events."""
    events = json_lines(output.stdout)
    items = [event["item"] for event in events if isinstance(event.get("item"), dict)]
    if any(item.get("type") not in _WORDS for item in items):
        raise unlocked(name, "it used a tool")
    done = next((event for event in reversed(events) if event.get("type") == "turn.completed"), None)
    if output.status or done is None:
        said = [json.dumps(event) for event in events if event.get("type") in ("error", "turn.failed")]
        otherwise = f"The worker {name} failed with status {output.status} and did not say why. It will be asked again."
        raise failure(name, "\n".join(said) or output.stderr, TROUBLES, otherwise)
    usage = done.get("usage") or {}
    messages = [str(item.get("text", "")) for item in items if item.get("type") == "agent_message"]
    text = output.folder.read("answer") or (messages[-1] if messages else "")
    return Answer(text, int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0))


def finish(folder: Folder, outer: Mapping[str, str]) -> None:
    """Keep a renewed login: a version that does not write through the link has put a new file in its place."""
    ours = os.path.join(folder.file("home"), _LOGIN)
    if os.path.islink(ours) or not os.path.exists(ours):
        return
    theirs = os.path.join(_users_home(outer), _LOGIN)
    new = read_bytes(ours)
    if new and new != read_bytes(theirs):
        write_atomic(theirs, new)


def _users_home(outer: Mapping[str, str]) -> str:
    return outer.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")


def _kept(path: str) -> dict[str, Any]:
    """What of the user's own settings holds here, too. Python reads TOML from 3.11 on; before, its defaults hold."""
    try:
        loads = import_module("tomllib").loads
    except ImportError:
        return {}
    try:
        settings = loads(read_bytes(path).decode("utf-8"))
    except ValueError as error:
        raise WorkerError(
            f"The settings file {path} cannot be read ({type(error).__name__}). Correct it.", fault="settings"
        ) from error
    return {key: settings[key] for key in _KEPT if key in settings}


def _toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, (str, bool, int, float)) else json.dumps(str(value))


def _toml_key(key: str) -> str:
    return json.dumps(key)
