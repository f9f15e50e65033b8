"""What answers a model request. One module per kind, and a registry that names them and loads one on demand.

Two kinds never import each other; what they share stands in ``base``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from obsmem.core.errors import UsageError

# Kind -> module.
REGISTRY: dict[str, str] = {
    "extractive": "obsmem.workers.extractive",
    "http": "obsmem.workers.http",
    "scripted": "obsmem.workers.scripted",
    "command": "obsmem.workers.command",
}


def load(kind: str) -> ModuleType:
    """Import the module of a kind of worker. Raises UsageError for an unknown kind."""
    try:
        path = REGISTRY[kind]
    except KeyError:
        known = ", ".join(REGISTRY)
        raise UsageError(f"There is no kind of worker named {kind!r}. Known are: {known}.") from None
    return import_module(path)
