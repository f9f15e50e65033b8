"""What OpenCode's own files say of the windows of models, and what it makes of a window.

Invariant: files are only read, and one that cannot be read says nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core.jsonc import load
from obsmem.harnesses.base import Limits

MOST_OUTPUT = 32_000  # tokens of an answer that OpenCode asks for at most
LARGEST_FILE = 32 << 20  # bytes


def limits(size: int, output: int) -> Limits:
    """It keeps as much as an answer may have, 32,000 at most, and compacts once the rest is full (read in its program,
    1.18.33)."""
    reserve = min(output or MOST_OUTPUT, MOST_OUTPUT)
    if size <= reserve:
        return Limits()
    known = "the most that the model answers with" if output else "the most that the harness asks for"
    return Limits(reserve, known, size - reserve, "where the harness compacts on its own")


def model_window(home: str, model: str) -> tuple[int, int, str]:
    """The window of a model and the most that it answers with: as the user configured it, else by the list of models that
    OpenCode keeps. Where providers give the same name different windows, the smallest."""
    for path, source in _files(home):
        found = [limit for limit in _limits_in(_read(path), model) if limit[0]]
        if found:
            return (*min(found), source)
    return 0, 0, ""


def _files(home: str) -> Iterator[tuple[str, str]]:
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    for name in ("opencode.json", "opencode.jsonc", "config.json"):
        yield os.path.join(config, "opencode", name), "the harness's configuration"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    yield os.path.join(cache, "opencode", "models.json"), "the harness's list of models"


def _read(path: str) -> Mapping[str, Any]:
    try:
        if os.path.getsize(path) > LARGEST_FILE:
            return {}
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        value = json.loads(text) if path.endswith("models.json") else load(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _limits_in(value: Mapping[str, Any], model: str) -> Iterator[tuple[int, int]]:
    """(window, most output) of a model in every provider that has it."""
    providers = value.get("provider", value)
    for provider in providers.values() if isinstance(providers, dict) else ():
        models = provider.get("models") if isinstance(provider, dict) else None
        known = models.get(model) if isinstance(models, dict) else None
        limit = known.get("limit") if isinstance(known, dict) else None
        if isinstance(limit, dict):
            yield _number(limit.get("input")) or _number(limit.get("context")), _number(limit.get("output"))


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and value is not True and 0 < value < 1e12 else 0
