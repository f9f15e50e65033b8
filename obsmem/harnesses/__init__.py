"""One module per harness, and a registry that names them and loads one on demand.

A harness module never imports another one; what they share stands in ``base``.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from obsmem.core.errors import UsageError
from obsmem.harnesses.base import Harness

# Name -> module. Order is the order of recognition: the most specific formats first.
REGISTRY: dict[str, str] = {
    "claude-code": "obsmem.harnesses.claude_code",
    "codex": "obsmem.harnesses.codex",
    "cursor": "obsmem.harnesses.cursor",
    "opencode": "obsmem.harnesses.opencode",
}


def load(name: str) -> Harness:
    """Import the module of a harness. Raises UsageError for an unknown name."""
    try:
        path = REGISTRY[name]
    except KeyError:
        known = ", ".join(REGISTRY)
        raise UsageError(f"There is no harness named {name!r}. Known are: {known}.") from None
    return cast(Harness, import_module(path))


def recognise(path: str, head: bytes) -> str:
    """Name the harness that wrote a file, from its first bytes; '' where none fits."""
    for name in REGISTRY:
        if load(name).recognise(path, head):
            return name
    return ""
