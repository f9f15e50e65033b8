"""The payloads that real programs gave to hooks, kept as fixtures without anything of the machine they came from.

Owns ``fixtures/harnesses/<harness>/payloads/<event>.json`` and what is replaced in them. Invariants: a fixture holds
no path, id or time of the run that it was recorded in; fixtures are written only when ``OBSMEM_E2E_RECORD`` is set.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .world import PROJECT_ROOT, Call, World

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_AGENT = re.compile(r"\ba[0-9a-f]{16}\b")
_OPENCODE_ID = re.compile(r"\b(ses|msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}\b")
_ROLLOUT_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")
_DAY_FOLDER = re.compile(r"/sessions/\d{4}/\d\d/\d\d/")


def folder(harness: str) -> Path:
    """Where a harness's payload fixtures are."""
    return PROJECT_ROOT / "fixtures" / "harnesses" / harness / "payloads"


def name(call: Call) -> str:
    """A fixture's name: the event, with its source or trigger where it has one."""
    variant = call.payload.get("source") or call.payload.get("trigger")
    return f"{call.event}-{variant}" if variant else call.event


class Scrubber:
    """Replaces what belongs to one run. Equal ids stay equal, different ones stay different."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ids: dict[str, str] = {}

    def name(self, found: str, public: str) -> None:
        """Let one id of the run have a name of its own."""
        self._ids[found] = public

    def scrub(self, value: Any) -> Any:
        """The same JSON value without paths, ids and times of the run."""
        if isinstance(value, dict):
            # A duration says nothing about the shape and would differ in each recording.
            return {
                self._scrub_text(key): 12 if key == "duration_ms" else self.scrub(item) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.scrub(item) for item in value]
        return self._scrub_text(value) if isinstance(value, str) else value

    def _scrub_text(self, text: str) -> str:
        world = self._world
        pairs = [(world.project, "/home/user/project"), (world.home, "/home/user"), (world.folder, "/home/user")]
        pairs += [(Path(sys.executable), "python3"), (PROJECT_ROOT, "/opt/observational-memory")]
        for path, public in pairs:
            text = text.replace(str(path), public)
            text = text.replace(re.sub(r"[^A-Za-z0-9]", "-", str(path)), re.sub(r"[^A-Za-z0-9]", "-", public))
        text = _UUID.sub(lambda match: self._id(match.group(), "00000000-0000-4000-8000-{:012d}"), text)
        text = _AGENT.sub(lambda match: self._id(match.group(), "a{:016d}"), text)
        text = _OPENCODE_ID.sub(lambda match: self._id(match.group(), f"{match[1]}_{{:026d}}"), text)
        text = _DAY_FOLDER.sub("/sessions/2026/01/02/", text)
        return _ROLLOUT_TIME.sub("2026-01-02T03-04-05", text)

    def _id(self, found: str, form: str) -> str:
        return self._ids.setdefault(found, form.format(len(self._ids) + 1))


def compare(harness: str, world: World, calls: Iterable[Call]) -> list[str]:
    """Say where payloads differ in their keys from the recorded ones; record them instead if that is asked for."""
    first: dict[str, Call] = {}
    for call in calls:
        first.setdefault(name(call), call)
    if os.environ.get("OBSMEM_E2E_RECORD"):
        _record(harness, world, first)
    differences = []
    for event, call in sorted(first.items()):
        path = folder(harness) / f"{event}.json"
        if not path.exists():
            differences.append(f"{event}: not recorded")
            continue
        recorded = json.loads(path.read_text(encoding="utf-8"))
        changed = sorted(set(recorded) ^ set(call.payload))
        if changed:
            differences.append(f"{event}: {', '.join(changed)}")
    return differences


def _record(harness: str, world: World, first: dict[str, Call]) -> None:
    scrubber = Scrubber(world)
    folder(harness).mkdir(parents=True, exist_ok=True)
    for event, call in sorted(first.items(), key=lambda item: item[1].started):
        text = json.dumps(scrubber.scrub(call.payload), indent=2, ensure_ascii=False)
        (folder(harness) / f"{event}.json").write_text(text + "\n", encoding="utf-8")
