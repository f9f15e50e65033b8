"""The sheet on which the entries of one Claude Code record are gathered.

Invariant: entries are numbered through over all records of a line, and a record without any leaves a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsmem.core.model import Action, Entry, EntryKind, Speaker
from obsmem.harnesses.written import time_of


def text_of(value: Any) -> str:
    """The value where it is a string, else ''."""
    return value if isinstance(value, str) else ""


class Sheet:
    """Gathers the entries of one record, and the reasons for what yields none."""

    __slots__ = ("_stamp", "entries", "first", "reasons", "side", "source_id")

    def __init__(self, record: Mapping[str, Any], first: int) -> None:
        self.entries: list[Entry] = []
        self.reasons: list[str] = []
        self.first = first
        self.source_id = text_of(record.get("uuid"))
        self._stamp = record.get("timestamp")
        self.side = record.get("isSidechain") is True

    def add(
        self,
        kind: EntryKind,
        speaker: Speaker,
        text: str,
        tool: str = "",
        call_id: str = "",
        ok: bool | None = None,
        actions: tuple[Action, ...] = (),
        exit_code: int | None = None,
    ) -> None:
        """Add an entry; what a sub-agent or its tools say inside a main file is the sub-agent's."""
        if self.side and kind != "notice":
            speaker = "subagent"
        at = time_of(self._stamp)
        block = self.first + len(self.entries)
        self.entries.append(
            Entry(
                -1,
                self.source_id,
                kind,
                speaker,
                text,
                tool,
                call_id,
                ok,
                at,
                True,
                None,
                block,
                actions,
                exit_code,
            )
        )

    def notice(self, text: str, actions: tuple[Action, ...] = ()) -> None:
        """Add words of the harness's, or the reason that there are none."""
        if text.strip():
            self.add("notice", "harness", text, actions=actions)
        else:
            self.reasons.append("no text")


def prune(value: Any, noise: frozenset[str]) -> Any:
    """A JSON value without the keys in ``noise``, at any depth."""
    if isinstance(value, dict):
        return {key: prune(item, noise) for key, item in value.items() if key not in noise}
    if isinstance(value, list):
        return [prune(item, noise) for item in value]
    return value
