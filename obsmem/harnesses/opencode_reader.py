"""Reads one OpenCode source in order, and adds what a record alone does not tell.

That is: the session's facts, who its human is, what a revert took off the live path. Invariants: the state is small,
and reading in pieces with it equals reading in one go. A session made by ``--fork`` is a copy under new ids whose only
trace is its title ("… (fork #2)"): its history cannot be told from its own words, so ``parent_id`` stays '' and nothing
is marked as copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from obsmem.core.model import Entry, EntryKind, Session, Speaker
from obsmem.core.pressure import MeasureKind
from obsmem.harnesses.base import Activity, Measure, Parsed, Raw, Source
from obsmem.harnesses.opencode_parts import moment, trigger_of
from obsmem.harnesses.opencode_records import Record, interpret
from obsmem.harnesses.opencode_rows import revert_of
from obsmem.harnesses.written import WORKER_MARK, parse_time, receipts


class OpenCodeReader:
    """The reader of one source. ``reverted`` gives the keys of its rows that a revert took off the live path; None for
    files, whose records are reverted from the session info on."""

    parent_offset = -1

    def __init__(
        self,
        harness: str,
        source: Source,
        state: Mapping[str, Any] | None,
        reverted: Callable[[], frozenset[str]] | None,
    ) -> None:
        state = state or {}
        known = state.get("session")
        self.session = Session(**known) if known else Session(harness, source.session_id, transcript=source.path)
        self.parent_id: str = state.get("parent_id", "")
        self._revert: tuple[str, str] = tuple(state.get("revert", ("", "")))
        self._past_revert: bool = state.get("past_revert", False)
        self._prompted: bool = state.get("prompted", False)
        self._roles: dict[str, str] = dict(state.get("roles", {}))
        self._reverted = reverted
        self._inactive: frozenset[str] | None = None

    def read(self, raw: Raw) -> Parsed:
        """Turn one record into entries or reasons. Never raises on bad input."""
        record = interpret(raw.data)
        if not raw.complete and _TORN.intersection(record.reasons):
            return Parsed(skipped=("not JSON",))  # it may be whole when the file is read again
        if record.session is not None:
            self._learn_session(record.session)
        measure = self._learn_message(record.message) if record.message is not None else None
        gone, activity = self._off_path(raw, record)
        entries = [
            self._in_context(entry, record)._replace(active=entry.source_id not in gone) for entry in record.entries
        ]
        marks = [mark for entry in entries if entry.kind == "notice" for mark in receipts(entry.text)]
        if measure is None:
            measure = next((_kept(entry) for entry in entries if entry.kind == "boundary"), None)
        return Parsed(tuple(entries), record.reasons, activity, None, measure, False, tuple(marks), (), record.repeats)

    def state(self) -> dict[str, Any]:
        """What must be kept, as JSON, so that a new reader continues where this one ended."""
        return {
            "session": self.session._asdict(),
            "parent_id": self.parent_id,
            "revert": list(self._revert),
            "past_revert": self._past_revert,
            "prompted": self._prompted,
            "roles": self._roles,
        }

    def inactive_keys(self) -> frozenset[str] | None:
        """For rows: the keys at and after the point that the session was reverted to; None for files, or where the rows
        cannot be read. Rows that OpenCode deleted since are in no source any more, and so not among these."""
        if self._reverted is None:
            return None
        if self._inactive is None:
            try:
                self._inactive = self._reverted()
            except OSError:
                return None
        return self._inactive

    def _learn_session(self, info: Mapping[str, Any]) -> None:
        """Take the session's facts from its info (camel case) or its row (column names)."""
        session_id = _text(info, "id")
        if self.session.id and session_id != self.session.id:
            return  # a stream of events may speak of other sessions too
        self.parent_id = _text(info, "parentID") or _text(info, "parent_id")
        self._revert = revert_of(info)
        self._past_revert = self._past_revert and self._revert[0] != ""
        role = "subagent" if self.parent_id else "main"
        self.session = self.session._replace(
            id=session_id,
            cwd=_text(info, "directory") or self.session.cwd,
            name=_text(info, "title") or self.session.name,
            role=self.session.role if self.session.role == "worker" else role,
            started_at=moment(info, "created") or parse_time(info.get("time_created")) or self.session.started_at,
        )

    def _learn_message(self, info: Mapping[str, Any]) -> Measure | None:
        """Take what a message tells about its session; the measure, if a model answered."""
        session, role = self.session, _text(info, "role")
        path = info.get("path")
        cwd = _text(path, "cwd") if isinstance(path, Mapping) else ""
        self.session = session._replace(
            id=session.id or _text(info, "sessionID"),
            cwd=session.cwd or cwd,
            started_at=session.started_at or moment(info, "created"),
            model=(_model(info) or session.model) if role == "assistant" else session.model,
        )
        # Events name a part's message, not its role; parts follow their message closely.
        self._roles.pop(_text(info, "id"), None)
        self._roles[_text(info, "id")] = "summary" if info.get("summary") is True else role
        while len(self._roles) > 4:
            del self._roles[next(iter(self._roles))]
        return _measure(info) if role == "assistant" else None

    def _off_path(self, raw: Raw, record: Record) -> tuple[frozenset[str], tuple[Activity, ...]]:
        """The source ids of this record's entries that are off the live path, and whether the whole line is."""
        everything = frozenset(entry.source_id for entry in record.entries)
        if self._reverted is not None:
            return (everything if raw.key in (self.inactive_keys() or ()) else frozenset()), ()
        message_id, part_id = self._revert
        if not self._past_revert and message_id and record.belongs == message_id:
            self._past_revert = True
            if part_id in record.part_ids:
                return frozenset(record.part_ids[record.part_ids.index(part_id) :]), ()
        if not self._past_revert or not everything:
            return frozenset(), ()
        return everything, (Activity(raw.line, raw.line, False),)

    def _in_context(self, entry: Entry, record: Record) -> Entry:
        """Say who spoke, where the record could not: in events, and in the session of a sub-agent."""
        if record.unvoiced:
            kind, speaker = _VOICES.get(self._roles.get(record.belongs, ""), ("notice", "harness"))
            entry = entry._replace(kind=kind, speaker=speaker)
        if entry.kind != "user":
            return entry
        if not self._prompted:
            self._prompted = True
            if WORKER_MARK in entry.text:
                self.session = self.session._replace(role="worker")
        # What prompts a sub-agent is the agent that started it.
        return entry._replace(speaker="agent") if self.session.role == "subagent" else entry


_TORN = frozenset(("not JSON", "frame of the document"))
_VOICES: Mapping[str, tuple[EntryKind, Speaker]] = {
    "user": ("user", "human"),
    "assistant": ("assistant", "agent"),
    "summary": ("summary", "harness"),
}


def _measure(info: Mapping[str, Any]) -> Measure | None:
    """What the provider counted: cached input is not in ``input``; ``total``, where given, counts what the model wrote, too,
    thinking included. A summariser's request stands at the side. The answer's parts come behind the message, or in it."""
    tokens = info.get("tokens")
    if not isinstance(tokens, Mapping):
        return None
    cache = tokens.get("cache")
    cached, written = (_count(cache, name) if isinstance(cache, Mapping) else 0 for name in ("read", "write"))
    context = _count(tokens, "input") + cached + written
    if not context:
        return None
    output = max(_count(tokens, "output") + _count(tokens, "reasoning"), _count(tokens, "total") - context)
    kind: MeasureKind = "side" if info.get("summary") is True else "request"
    at, request = moment(info, "created"), _text(info, "id")
    return Measure(context, 0, _model(info), output, cached, written, at, request, kind, place="before")


def _kept(boundary: Entry) -> Measure:
    """How a compaction came about; what it keeps is not said."""
    return Measure(at=boundary.at, kind="kept", trigger=trigger_of(boundary.text))


def _count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return int(value) if isinstance(value, (int, float)) and value is not True and 0 < value < 1e12 else 0


def _model(info: Mapping[str, Any]) -> str:
    """The model that answered; older messages name it like the human's choice."""
    chosen = info.get("model")
    return _text(info, "modelID") or (_text(chosen, "modelID") if isinstance(chosen, Mapping) else "")


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""
