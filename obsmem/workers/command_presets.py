"""The presets: programs that can be locked down completely, each in a module of its own.

Owns the registry, which is loaded on demand, and says what such a module has. Invariant: what only one program needs
stands in its module alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from obsmem.workers.command_base import Answer, Call, Output
from obsmem.workers.command_process import Folder

# Word in the configuration -> module.
PRESETS: dict[str, str] = {
    "claude": "obsmem.workers.command_claude_code",
    "codex": "obsmem.workers.command_codex",
    "opencode": "obsmem.workers.command_opencode",
}


class Preset(Protocol):
    """What a preset's module has."""

    PROGRAM: str
    """The program's name on PATH."""

    WINDOW: int
    """Tokens that each of its models takes at least; 0 where that depends."""

    VARIABLES: tuple[str, ...]
    """The environment variables that hold its login, or say where that is and whom to ask."""

    PREFIXES: tuple[str, ...]
    """Beginnings of the names of further such variables."""

    HELP: tuple[str, ...]
    """The arguments that make it list its flags."""

    LOCKS: tuple[str, ...]
    """The flags without which it is not locked: a version that lacks one is not asked."""

    OPTIONAL: tuple[str, ...]
    """Flags that an older version may lack, at the price of a worse answer but not of a weaker lock."""

    def facts(self, say: Callable[..., str]) -> dict[str, Any]:
        """What else is to be known of an installed version; ``say(*arguments)`` is what it prints."""

    def confine(self, folder: Folder, environment: dict[str, str], outer: Mapping[str, str]) -> None:
        """Turn the program away from its user's customisations; ``outer`` is the environment that is not scrubbed."""

    def arguments(self, call: Call) -> list[str]:
        """The arguments of one call."""

    def read(self, name: str, output: Output) -> Answer:
        """The answer in what the program left. Raises WorkerError where there is none, or a lock did not hold."""

    def finish(self, folder: Folder, outer: Mapping[str, str]) -> None:
        """Carry over what must outlive the call's folder: a login that was renewed."""


def load(word: str) -> Preset:
    """Import the module of a preset."""
    return cast(Preset, import_module(PRESETS[word]))
