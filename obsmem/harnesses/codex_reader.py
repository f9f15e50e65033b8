"""Reads a rollout in order and adds what one record alone cannot say.

Identity (the first ``session_meta``), copies of one message (``codex_mirrors``), history copied from a parent, the
turns that a rollback takes back, and whether a compaction's history is the only copy of what it holds. Invariants:
each message is one entry; every record has entries or a reason; what the reader keeps stays small.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from obsmem.core import late
from obsmem.core.model import Entry, Session
from obsmem.harnesses.base import Activity, Measure, Parsed, Raw, Source
from obsmem.harnesses.codex_blocks import builder_of, entries_of
from obsmem.harnesses.codex_copies import CopiedHistory
from obsmem.harnesses.codex_mirrors import Mirrors, text_key
from obsmem.harnesses.codex_records import (
    Payload,
    Usage,
    call_id,
    open_record,
    record_objects,
    sound,
    token_usage,
    type_of,
    usage_of,
    whole_object,
)
from obsmem.harnesses.forks import KEY, read_mark
from obsmem.harnesses.written import WORKER_MARK, receipts, time_of

TURNS_KEPT = 200
CALLS_KEPT = 100
BOUNDARY_WINDOW = 16
FILE_ID = late.pattern(r"rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
CALL_ITEMS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call"})
OUTPUT_ITEMS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "mcp_tool_call_output"}
    | {"tool_search_output"}
)
COMPACTION_ITEMS = frozenset({"compaction", "context_compaction", "compaction_summary"})
END_EVENTS = frozenset({"exec_command_end", "patch_apply_end", "mcp_tool_call_end"})
ITEM, EVENT, COMPLETED = "i", "e", "c"


REPLY_END = 400  # characters of a reply that show whether a summary ends with it


class Reader:
    """See ``base.Reader``. A copy is skipped with a reason that names what it repeats."""

    def __init__(self, source: Source, state: Mapping[str, Any] | None) -> None:
        state = state or {}
        match = FILE_ID.search(os.path.basename(source.path))
        name = match.group(1) if match else os.path.basename(source.path).split(".")[0]
        self.session = Session("codex", str(state.get("id") or name), transcript=source.path)
        for key in ("cwd", "role", "model", "name", "started_at", "window"):
            if key in state:
                self.session = self.session._replace(**{key: state[key]})
        self.parent_id = str(state.get("parent", ""))
        self.parent_offset = int(state.get("parent_offset", -1))
        self._identified = bool(state.get("identified"))
        self._number = int(state.get("number", 0))
        self._prompts = int(state.get("prompts", 0))
        self._began = bool(state.get("began"))
        self._boundary = int(state.get("boundary", -1000))
        self._said = str(state.get("said", ""))
        self._reply: list[Any] = list(state.get("reply", (0, "")))  # line and end of the newest reply
        self._turns: list[int] = list(state.get("turns", ()))
        self._calls: dict[str, str] = dict(state.get("calls", {}))
        self._mirrors = Mirrors(state.get("mirrors"))
        self._copies = CopiedHistory(state.get("copies"))
        self._line = 0

    def state(self) -> dict[str, Any]:
        """What a new reader needs to continue; some kilobytes at most."""
        session = self.session
        kept = {key: getattr(session, key) for key in ("id", "cwd", "role", "model", "name", "started_at", "window")}
        return kept | {
            "parent": self.parent_id,
            "parent_offset": self.parent_offset,
            "identified": self._identified,
            "number": self._number,
            "prompts": self._prompts,
            "began": self._began,
            "boundary": self._boundary,
            "said": self._said,
            "reply": self._reply,
            "turns": self._turns,
            "calls": self._calls,
            "mirrors": self._mirrors.pending,
            "copies": self._copies.state(),
        }

    def inactive_keys(self) -> None:
        """Rollouts have no rows."""

    def read(self, raw: Raw) -> Parsed:
        """Turn one record into entries or reasons. Never raises on bad input."""
        self._line = raw.line
        usage = None if self._copies.active else token_usage(raw.data)
        if usage:
            self._number += 1
            return self._measured(usage)
        whole = whole_object(raw.data)
        if whole is not None:
            return self._take(whole, 0)
        objects, reasons = record_objects(raw.data)
        parts = []
        block = 0
        for value in objects:
            parts.append(self._take(value, block))
            kind, name, payload, stamp = open_record(value)
            block += len(entries_of(kind, name, payload, stamp, 0))
        return _joined(parts, reasons)

    def _take(self, value: dict[str, Any], first: int) -> Parsed:
        kind, name, payload, stamp = open_record(value)
        self._number += 1
        copied = self._copies.active and self._copies.covers(kind, payload, time_of(stamp))
        if name in END_EVENTS and call_id(payload) in self._calls:
            # The call's output tells it too; only calls inside a script have nothing but this event.
            parsed = _only(f"event_msg:{name}, told by the call's output")
            return parsed._replace(copied=True) if copied else parsed
        found = entries_of(kind, name, payload, stamp, first)
        if kind == "event_msg":
            rule = EVENT_RULES.get(name)
        elif kind == "response_item":
            rule = ITEM_RULES.get(name)
        else:
            rule = RECORD_RULES.get(kind)
        parsed = rule(self, payload, found, stamp) if rule else _plain(kind, name, found)
        if KEY in value and (repeats := read_mark(value[KEY])):
            parsed = parsed._replace(repeats=repeats)
        return parsed._replace(copied=True) if copied else parsed

    # --- records about the session ---

    def _session_meta(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        ident = sound(payload.get("id"))
        if not self._identified:
            self._identify(payload, ident, stamp)
            return _only("session_meta")
        if ident in ("", self.session.id):
            self._move(payload)
            return _only("repeated session_meta")
        # The parent's header, copied into a fork or sub-agent: what follows is the parent's history.
        if not self._began and self.parent_id:
            self._copies.begin(self.session.id, time_of(stamp), self.session.started_at)
        return _only("session_meta of another session")

    def _identify(self, payload: Payload, ident: str, stamp: Any) -> None:
        self._identified = True
        origin = payload.get("source")
        spawned = origin.get("subagent") if isinstance(origin, dict) else None
        thread = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
        parents = [payload.get("forked_from_id"), payload.get("parent_thread_id")]
        parents.append(thread.get("parent_thread_id") if isinstance(thread, dict) else None)
        self.parent_id = next((sound(parent) for parent in parents if sound(parent)), "")
        base = payload.get("history_base")
        if isinstance(base, dict) and isinstance(base.get("end_byte_offset"), int):
            self.parent_offset = base["end_byte_offset"]
        agent = payload.get("thread_source") == "subagent" or spawned is not None
        self.session = self.session._replace(
            id=ident or self.session.id,
            started_at=time_of(payload.get("timestamp")) or time_of(stamp),
            role="subagent" if agent else self.session.role,
        )
        self._move(payload)

    def _move(self, payload: Payload) -> None:
        cwd = sound(payload.get("cwd"))
        if cwd:
            self.session = self.session._replace(cwd=cwd)

    def _turn_context(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        model = sound(payload.get("model"))
        if not self._copies.active and payload.get("cwd") != self.session.cwd:
            self._move(payload)
        if model and model != self.session.model:
            self.session = self.session._replace(model=model)
        return _only("turn_context")

    # --- the model's history ---

    def _reasoning(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        return self._mirrored(found, ITEM, "encrypted reasoning", "duplicate of event_msg")

    def _call(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        self._remember_call(found[0].call_id, found[0].tool)
        return Parsed(tuple(found))

    def _output(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        """The output names its call, and the call its tool. What goes on running is told of again when it ends."""
        entry = found[0]
        tool = self._calls.pop(entry.call_id, None) if entry.actions else self._calls.get(entry.call_id)
        return Parsed((entry.with_tool(tool) if tool else entry,))

    def _remember_call(self, ident: str, tool: str) -> None:
        if ident:
            self._calls[ident] = tool
            if len(self._calls) > CALLS_KEPT:
                del self._calls[next(iter(self._calls))]

    def _message(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        parsed = self._mirrored(found, ITEM, "empty message", "duplicate of event_msg")
        if len(found) > 1:
            human = [entry.text for entry in found if entry.kind == "user"]
            # The event joins what the item lists apart.
            for joint in ("", "\n") if len(human) > 1 else ():
                self._mirrors.is_copy("user", ITEM, text_key(joint.join(human)), self._number)
        if found and found[0].speaker == "harness":
            return parsed._replace(receipts=tuple(mark for entry in found for mark in receipts(entry.text)))
        return parsed

    def _mirrored(self, found: list[Entry], side: str, empty: str, copy: str) -> Parsed:
        """Keep what no other side has said. ``empty`` and ``copy`` are the reasons where nothing is kept."""
        if not found:
            return _only(empty)
        self._began = True
        kept: list[Entry] = []
        human = False
        for entry in found:
            key = text_key(entry.text)
            if entry.kind == "assistant":
                self._said = key
                self._reply = [self._line, entry.text.strip()[-REPLY_END:]]
            if not self._mirrors.is_copy(entry.kind, side, key, self._number):
                kept.append(entry)
                human = human or entry.kind == "user"
        if human:
            self._prompt(kept)
        return Parsed(tuple(kept)) if kept else _only(copy)

    def _prompt(self, kept: list[Entry]) -> None:
        if not self._prompts and any(WORKER_MARK in entry.text for entry in kept if entry.speaker == "human"):
            self.session = self.session._replace(role="worker")
        self._prompts += 1
        self._turns.append(self._line)
        del self._turns[:-TURNS_KEPT]

    # --- events ---

    def _mirror_event(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        return self._mirrored(found, EVENT, f"event_msg:{type_of(payload)}", "duplicate of response_item")

    def _item_completed(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        return self._mirrored(found, COMPLETED, "event_msg:item_completed", "duplicate of response_item")

    def _turn_end(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        """The end of a turn repeats the last answer, however long ago that was."""
        if found and text_key(found[0].text) != self._said:
            return self._mirrored(found, EVENT, "event_msg:task_complete", "duplicate of response_item")
        return _only("event_msg:task_complete")

    def _turn_start(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        self._mirrors.forget("user")
        return _only("event_msg:task_started")

    def _search_end(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        """Comes before the web_search_call item, which says the same."""
        return _only("event_msg:web_search_end, told by the call")

    def _token_count(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        usage = usage_of(payload, stamp)
        return self._measured(usage) if usage else _only("event_msg:token_count")

    def _measured(self, usage: Usage) -> Parsed:
        """The cached part stands in the context already. What tools gave since the last words of the agent does not: the
        count follows their results, but tells of the request before them."""
        window, model = usage.window, self.session.model
        if window and window != self.session.window:
            self.session = self.session._replace(window=window)
        if usage.kept:
            measure = Measure(usage.kept, window, model, at=usage.at, kind="kept")
        else:
            request = f"{usage.all}" if usage.all else ""
            counts = (usage.output, usage.cached, usage.written)
            measure = Measure(usage.context, window, model, *counts, usage.at, request, place="spoke")
        return Parsed((), TOKEN_COUNT, (), None, measure)

    def _rolled_back(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        count = payload.get("num_turns")
        count = count if isinstance(count, int) and count > 0 else 0
        undone = self._turns[-count:] if count else []
        if undone:
            del self._turns[-count:]
        spans = (Activity(undone[0], self._line - 1, False),) if undone else ()
        return Parsed(skipped=("event_msg:thread_rolled_back",), activity=spans)

    def _named(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        name = sound(payload.get("thread_name") or payload.get("name"))
        if name:
            self.session = self.session._replace(name=name)
        return _only("event_msg:thread_name_updated")

    # --- compaction ---

    def _compacted(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        """The history that replaces the old one is kept only where it is the first that the file holds."""
        has_summary = len(found) > 1 and found[1].text == payload.get("message")
        kept = found[: 2 if has_summary else 1]
        if not self._began:
            kept += found[len(kept) :]
            if any(entry.speaker == "human" for entry in kept):
                self._prompt(kept)
        if self._number - self._boundary <= BOUNDARY_WINDOW:
            kept = kept[1:]
        self._boundary = self._number
        self._began = True
        measure = Measure(at=time_of(stamp), kind="kept", summary=_summary_of(payload)) if kept else None
        skipped = () if kept else ("duplicate of context_compacted",)
        return Parsed(tuple(kept), skipped, measure=measure, disowned=self._summariser(payload))

    def _summariser(self, payload: Payload) -> tuple[int, ...]:
        """The line of the newest reply, if it is the summary itself: a local compaction asks the model for it, and
        its answer stands in the rollout as if the agent had said it."""
        line, end = self._reply
        message = payload.get("message")
        is_summary = bool(end) and isinstance(message, str) and message.strip().endswith(end)
        return (int(line),) if is_summary and line else ()

    def _context_compacted(self, payload: Payload, found: list[Entry], stamp: Any) -> Parsed:
        if self._number - self._boundary <= BOUNDARY_WINDOW:
            return _only("duplicate of compacted")
        self._boundary = self._number
        return Parsed(tuple(found))


TOKEN_COUNT = ("event_msg:token_count",)

Rule = Callable[[Reader, Payload, list[Entry], Any], Parsed]
RECORD_RULES: dict[str, Rule] = {
    "session_meta": Reader._session_meta,
    "turn_context": Reader._turn_context,
    "compacted": Reader._compacted,
}
ITEM_RULES: dict[str, Rule] = {"message": Reader._message, "reasoning": Reader._reasoning}
ITEM_RULES.update(dict.fromkeys(CALL_ITEMS, Reader._call))
ITEM_RULES.update(dict.fromkeys(OUTPUT_ITEMS, Reader._output))
EVENT_RULES: dict[str, Rule] = {
    "user_message": Reader._mirror_event,
    "agent_message": Reader._mirror_event,
    "agent_reasoning": Reader._mirror_event,
    "agent_reasoning_raw_content": Reader._mirror_event,
    "item_completed": Reader._item_completed,
    "task_complete": Reader._turn_end,
    "turn_complete": Reader._turn_end,
    "task_started": Reader._turn_start,
    "turn_started": Reader._turn_start,
    "token_count": Reader._token_count,
    "thread_rolled_back": Reader._rolled_back,
    "thread_name_updated": Reader._named,
    "context_compacted": Reader._context_compacted,
    "web_search_end": Reader._search_end,
}


def _summary_of(payload: Payload) -> Literal["", "hidden", "none"]:
    """Whether a compaction has a summary that cannot be read, or none at all (a fresh window, the history beside it)."""
    history = payload.get("replacement_history")
    if payload.get("message") or not isinstance(history, list):
        return ""
    hidden = any(isinstance(item, dict) and str(item.get("type")) in COMPACTION_ITEMS for item in history)
    return "hidden" if hidden else "none"


@lru_cache(maxsize=64)
def _only(reason: str) -> Parsed:
    return Parsed(skipped=(reason,))


def _plain(kind: str, name: str, found: list[Entry]) -> Parsed:
    """Entries as they are; a reason where there are none, or the type is not known."""
    known = builder_of(kind, name) is not None
    if found and known:
        return Parsed(tuple(found))
    reason = f"{kind}:{name}" if name and kind in ("event_msg", "response_item") else kind
    return Parsed(tuple(found), (reason if known else f"type:{sound(reason)}",))


def _joined(parts: list[Parsed], reasons: tuple[str, ...]) -> Parsed:
    """What a line says that holds several objects, or something that is none."""
    entries = tuple(entry for part in parts for entry in part.entries)
    skipped = tuple(reason for part in parts for reason in part.skipped) + reasons
    return Parsed(
        entries,
        skipped or (() if entries else ("empty line",)),
        tuple(span for part in parts for span in part.activity),
        measure=next((part.measure for part in reversed(parts) if part.measure), None),
        copied=bool(parts) and all(part.copied for part in parts),
        receipts=tuple(mark for part in parts for mark in part.receipts),
        repeats=next((part.repeats for part in parts if part.repeats), None),
    )
