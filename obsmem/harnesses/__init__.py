"""One module per harness, and a registry that names them and loads one on demand.

A harness module never imports another one; what they share stands in ``base``. This file is on the hook path: it
imports nothing, and holds the little that the turn-end hook must know of a payload without loading a harness.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsmem.harnesses.base import Harness, Hooks

# Name -> module. Order is the order of recognition: the most specific formats first.
REGISTRY = {
    "claude-code": "obsmem.harnesses.claude_code",
    "codex": "obsmem.harnesses.codex",
    "cursor": "obsmem.harnesses.cursor",
    "opencode": "obsmem.harnesses.opencode",
}

# Name -> the event that ends a turn; the payload's keys for session id, transcript and working folder; our answer; how
# the name of a transcript ends that is a database, whose size says nothing.
TURN_ENDS: dict[str, tuple[str, str, str, str, str, tuple[str, ...]]] = {
    "claude-code": ("Stop", "session_id", "transcript_path", "cwd", "", ()),
    "codex": ("Stop", "session_id", "transcript_path", "cwd", "", ()),
    "cursor": ("stop", "conversation_id", "transcript_path", "workspace_roots", "{}", (".vscdb",)),
    "opencode": ("session.idle", "sessionID", "db", "directory", "", (".db",)),
}

# Name -> the environment variables in which it tells the programs that it runs the id of their session.
SESSION_VARIABLES = {
    "claude-code": ("CLAUDE_CODE_SESSION_ID",),
    "codex": ("CODEX_THREAD_ID",),
    "cursor": ("CURSOR_CONVERSATION_ID",),
    "opencode": ("OBSERVATIONAL_MEMORY_OPENCODE_SESSION",),  # our plugin gives it to its shells
}

# Name -> the event within a turn at which we may add words, and the file of the session that says that there are any.
PROMPTS = {
    "claude-code": ("UserPromptSubmit", "block.retry"),
    "codex": ("UserPromptSubmit", "block.retry"),
    "cursor": ("postToolUse", "block.due"),
    "opencode": ("chat.message", "warning"),  # its block stands in every request, so that nothing else is ever owed
}


def is_foreign(name: str, payload: Mapping[str, object], environment: Mapping[str, str]) -> bool:
    """True if another harness runs the hooks that were written for this one: some read each other's configuration.

    Its own hooks see the same event, so these must stay silent.
    """
    if name not in ("claude-code", "codex"):
        return False
    if "cursor_version" in payload or environment.get("CURSOR_VERSION"):
        return True
    transcript = payload.get("transcript_path")
    path = transcript.replace("\\", "/") if isinstance(transcript, str) else ""
    if name == "codex":
        return "/.claude/projects/" in path
    return path.rsplit("/", 1)[-1].startswith("rollout-") or "turn_id" in payload


def load_hooks(name: str) -> Hooks:
    """Import the hook half of a harness alone: payloads in, answers out. A hook needs nothing else of it."""
    module: Hooks = __import__(f"{REGISTRY[name]}_hooks", fromlist=["NAME"])
    return module


def load(name: str) -> Harness:
    """Import the module of a harness. Raises UsageError for an unknown name."""
    from importlib import import_module

    if name not in REGISTRY:
        from obsmem.core.errors import UsageError

        raise UsageError(f"There is no harness named {name!r}. Known are: {', '.join(REGISTRY)}.")
    module: Harness = import_module(REGISTRY[name])
    return module


def recognise(path: str, head: bytes) -> str:
    """Name the harness that wrote a file, from its first bytes; '' where none fits."""
    for name in REGISTRY:
        if load(name).recognise(path, head):
            return name
    return ""
