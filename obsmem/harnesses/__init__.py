"""One module per harness, and a registry that names them and loads one on demand.

A harness module never imports another one; what they share stands in ``base``. This file is on the hook path: it
imports nothing, and holds the little that the turn-end hook must know of a payload without loading a harness.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from obsmem.harnesses.base import Harness

# Name -> module. Order is the order of recognition: the most specific formats first.
REGISTRY = {
    "claude-code": "obsmem.harnesses.claude_code",
    "codex": "obsmem.harnesses.codex",
    "cursor": "obsmem.harnesses.cursor",
    "opencode": "obsmem.harnesses.opencode",
}

# Name -> the event that ends a turn; the payload's keys for session id, transcript and working folder; our answer.
TURN_ENDS = {
    "claude-code": ("Stop", "session_id", "transcript_path", "cwd", ""),
    "codex": ("Stop", "session_id", "transcript_path", "cwd", ""),
    "cursor": ("stop", "conversation_id", "transcript_path", "workspace_roots", "{}"),
    "opencode": ("session.idle", "sessionID", "db", "directory", ""),
}


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
