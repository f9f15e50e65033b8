"""Reads a Claude Code transcript in order: what follows from the records before a record.

Owns the facts of the session, the queue of prompts typed while the agent is busy, and the names of tools. Invariants:
read whole or in pieces, with the state in between as JSON, a file yields the same; the state stays small; a prompt of
the human's is active exactly once. A prompt that waits is taken at once from its ``enqueue`` record. Where a later
record brings the same words (a user record, a ``queued_command``, ``<bash-input>``) that one stands in the tree of
records, so it counts and the waiting one becomes inactive; so too when the human takes it back (``popAll``). A
``remove`` means that the agent got it between two steps: versions before 2.1.100 wrote nothing else about that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Entry, Session
from obsmem.harnesses.base import Activity, Link, Measure, Parsed, Raw, Source
from obsmem.harnesses.claude_code_blocks import BOUNDARY, SYNTHETIC, record_entries
from obsmem.harnesses.claude_code_branches import Branches, History
from obsmem.harnesses.claude_code_sheet import Sheet, text_of
from obsmem.harnesses.forks import KEY, read_mark
from obsmem.harnesses.written import OWN_BLOCK, WORKER_MARK, link_key, load_objects, receipts, time_of

Reasons = tuple[str, ...]

RECENT_CALLS = 64
MOST_WAITING = 32
MOST_SUMMARIES = 16

_UUID = late.pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_AGENT_FILE = late.pattern(r"agent-(.+)\Z")
_SUMMARISER = "acompact"
_SUMMARY_TASK = "Your task is to create a detailed summary of the conversation"
_QUEUE_TYPES = frozenset(("queue-operation", "last-prompt"))
_PLACED_KINDS = frozenset(("tool_call", "tool_result", "user"))
_NAME_RANKS = {"summary": 1, "ai-title": 2, "custom-title": 3}
_NAME_FIELDS = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


class TranscriptReader:
    """Reads one transcript file in order; see ``Reader``."""

    parent_offset = -1

    def __init__(self, source: Source, state: Mapping[str, Any] | None, history: History) -> None:
        state = state or {}
        kept = state.get("session")
        self.session = Session(*kept) if kept else _session_of(source.path)
        self.parent_id = str(state.get("parent_id", "")) if state else _parent_of(source.path)
        self._branches = Branches(state.get("branches", {}), history)
        self._queue = Queue(state.get("queue", []))
        self._calls: dict[str, str] = dict(state.get("calls", []))
        self._summaries: dict[str, str] = dict(state.get("summaries", []))
        self._name_rank = int(state.get("name_rank", 0))
        self._named = bool(state.get("named", bool(self.session.id)))
        self._begun = bool(state.get("begun", False))
        self._unsettled = True
        self._prompted = bool(state.get("prompted", False))
        self._told: tuple[str, int, int] = tuple(state.get("told", ("", 0, 0)))  # what is told again is no news

    def state(self) -> dict[str, Any]:
        """What a new reader needs to go on from here, as JSON; about 8 KB at most."""
        return {
            "session": list(self.session),
            "parent_id": self.parent_id,
            "branches": self._branches.state(),
            "queue": self._queue.state(),
            "calls": list(self._calls.items()),
            "summaries": list(self._summaries.items()),
            "name_rank": self._name_rank,
            "named": self._named,
            "begun": self._begun,
            "prompted": self._prompted,
            "told": list(self._told),
        }

    def inactive_keys(self) -> frozenset[str] | None:
        """Nothing to say: activity of lines comes with each record."""
        return None

    def read(self, raw: Raw) -> Parsed:
        """Turn one line into entries or reasons. Never raises on bad input."""
        records, reasons = load_objects(raw.data)
        if len(records) == 1:
            return self._read_record(raw.line, records[0], 0, reasons)
        parts: list[Parsed] = []
        first = 0
        for record in records:
            parts.append(self._read_record(raw.line, record, first, ()))
            first += len(parts[-1].entries)
        return _joined(parts, reasons)

    def _read_record(self, line: int, record: Mapping[str, Any], first: int, reasons: Reasons) -> Parsed:
        sheet = record_entries(record, first)
        entries = sheet.entries
        kind = record.get("type")
        if sheet.reasons:
            reasons += tuple(dict.fromkeys(sheet.reasons))
        if self._unsettled:
            self._settle(record)
        activity: tuple[Activity, ...] = ()
        measure = None
        delivered: Reasons = ()
        if kind == "assistant":
            measure = self._measure(record, entries[0].at if entries else -1)
        elif kind in ("attachment", "user"):
            delivered = _receipts(record)
        elif kind == "system" and record.get("subtype") == BOUNDARY:
            measure = _kept(record)
        elif not isinstance(kind, str):
            kind = ""
        if self._summaries or kind in _NAME_RANKS:
            self._learn_name(record, kind)
        if self._queue.items or kind in _QUEUE_TYPES:
            activity = self._follow(line, record, kind, entries)
        for index, entry in enumerate(entries):
            if entry.kind in _PLACED_KINDS:
                entries[index] = self._placed(entry, sheet.side)
        link = None
        id_ = record.get("uuid")
        if isinstance(id_, str) and id_:
            link = _link(id_, record, sheet)
            leads = link.prompt or (kind == "assistant" and not sheet.side)
            activity += self._branches.add(line, link, leads)
        repeats = read_mark(record[KEY]) if KEY in record else None
        return Parsed(tuple(entries), reasons, activity, link, measure, False, delivered, (), repeats)

    def _placed(self, entry: Entry, side: bool) -> Entry:
        """Add what the records before it tell: the tool's name, the first prompt, who speaks in a sub-agent's file."""
        if entry.kind == "tool_call":
            self._calls[entry.call_id] = entry.tool
            if len(self._calls) > RECENT_CALLS:
                del self._calls[next(iter(self._calls))]
        elif entry.kind == "tool_result":
            if not entry.tool and entry.call_id in self._calls:
                entry = entry.with_tool(self._calls[entry.call_id])
            if side and self.session.role == "subagent":
                return entry._replace(speaker="tool")
        elif entry.kind == "user":
            if not self._prompted:
                self._prompted = True
                if WORKER_MARK in entry.text or (side and entry.text.startswith(_SUMMARY_TASK)):
                    self.session = self.session._replace(role="worker")
            if side and self.session.role == "subagent":
                return entry._replace(speaker="agent")
        return entry

    def _follow(self, line: int, record: Mapping[str, Any], kind: str, entries: list[Entry]) -> tuple[Activity, ...]:
        """What a record says about lines before it: a waiting prompt that has come, or where the live path ends."""
        if kind == "queue-operation":
            human = any(entry.speaker == "human" for entry in entries)
            return self._queue.operate(line, text_of(record.get("operation")), text_of(record.get("content")), human)
        if kind == "last-prompt":
            stated = record.get("rewound") is True or record.get("explicit") is True
            leaf = text_of(record.get("leafUuid"))
            return self._branches.move_to(leaf) if stated and leaf else ()
        if kind not in ("user", "attachment"):
            return ()
        found: tuple[Activity, ...] = ()
        for entry in entries:
            if entry.kind == "notice" or (entry.speaker == "human" and entry.kind != "tool_result"):
                words = entry.actions[0].command if entry.actions else entry.text
                found += self._queue.repeat(words, kind == "attachment")
        return found

    def _settle(self, record: Mapping[str, Any]) -> None:
        """Take the facts of the session from the first record that has them."""
        session = self.session
        if not session.cwd and isinstance(cwd := record.get("cwd"), str):
            session = session._replace(cwd=cwd)
        if not session.started_at and (at := time_of(record.get("timestamp"))):
            session = session._replace(started_at=at)
        self.session = session
        if not self._named or not self._begun:
            self._identify(record)
        if "forkedFrom" in record and not self.parent_id and isinstance(fork := record["forkedFrom"], dict):
            self.parent_id = text_of(fork.get("sessionId"))
        self._unsettled = not (self.session.cwd and self.session.started_at and self._named and self._begun)

    def _identify(self, record: Mapping[str, Any]) -> None:
        session_id = text_of(record.get("sessionId"))
        if "isSidechain" in record and not self._begun:
            self._begun = True
            agent = text_of(record.get("agentId"))
            if record.get("isSidechain") is True or self.session.role == "subagent":
                role = "worker" if agent.startswith(_SUMMARISER) else "subagent"
                self.session = self.session._replace(role=role, id=agent or self.session.id)
                self.parent_id = session_id or self.parent_id
                self._named = self._named or bool(agent)
        if not self._named and session_id:
            self._named = True
            self.session = self.session._replace(id=session_id)

    def _learn_name(self, record: Mapping[str, Any], kind: str) -> None:
        if kind in _NAME_RANKS:
            rank, name = _NAME_RANKS[kind], text_of(record.get(_NAME_FIELDS[kind]))
            if kind == "summary" and not self._branches.holds(leaf := text_of(record.get("leafUuid"))):
                # Most summaries are of other files. Keep a few, until their leaf turns up in this one.
                if len(self._summaries) < MOST_SUMMARIES and leaf:
                    self._summaries[leaf] = name[:200]
                return
        elif self._summaries and (leaf := text_of(record.get("uuid"))) in self._summaries:
            rank, name = 1, self._summaries.pop(leaf)
        else:
            return
        if name and rank >= self._name_rank:
            self._name_rank = rank
            self.session = self.session._replace(name=name)

    def _measure(self, record: Mapping[str, Any], at: int) -> Measure | None:
        """What the provider counted for a reply, which is written as one record per block: the last has the whole output.
        A sub-agent's inside a main file stands at the side. The cached parts are not in its ``input_tokens``."""
        message = record.get("message")
        usage = message.get("usage") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(usage, dict) or message.get("model") == SYNTHETIC:
            return None
        side = record.get("isSidechain") is True and self.session.role == "main"
        model = text_of(message.get("model"))
        if model and not side and model != self.session.model:
            self.session = self.session._replace(model=model)
        written, cached = _count(usage, "cache_creation_input_tokens"), _count(usage, "cache_read_input_tokens")
        context = _count(usage, "input_tokens") + written + cached
        request, output = text_of(message.get("id")), _count(usage, "output_tokens")
        told = (request, context, output)
        if not context or (request and told == self._told):
            return None
        self._told = told
        at = at if at >= 0 else time_of(record.get("timestamp"))
        return Measure(context, 0, model, output, cached, written, at, request, "side" if side else "request")


def _count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if type(value) is int and value > 0 else 0


def _kept(record: Mapping[str, Any]) -> Measure:
    """What a compaction says of itself: how it came about and, in newer versions, how much it kept."""
    metadata = record.get("compactMetadata")
    known: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    at, trigger = time_of(record.get("timestamp")), text_of(known.get("trigger"))
    return Measure(_count(known, "postTokens"), at=at, kind="kept", trigger=trigger)


class Queue:
    """Prompts that wait for the agent, each as [line, key of its words, human, stage]."""

    WAITING, DEQUEUED, DELIVERED = range(3)

    def __init__(self, items: Iterable[Iterable[Any]]) -> None:
        self.items: list[list[Any]] = [list(item) for item in items]

    def state(self) -> list[list[Any]]:
        """The items, as JSON."""
        return self.items

    def operate(self, line: int, operation: str, text: str, human: bool) -> tuple[Activity, ...]:
        """Follow one operation of the harness's on its queue. One that names no text means the first item."""
        key = link_key(text.strip())
        if operation == "enqueue":
            self.items.append([line, key, human, self.WAITING])
            del self.items[:-MOST_WAITING]
            return ()
        meant = [item for item in self.items if item[3] == self.WAITING and (not text or item[1] == key)]
        if operation == "popAll":
            self.items = [item for item in self.items if item not in meant]
            return tuple(Activity(item[0], item[0], False) for item in meant if item[2])
        if meant and operation in ("dequeue", "remove"):
            meant[0][3] = self.DEQUEUED if operation == "dequeue" else self.DELIVERED
        return ()

    def repeat(self, text: str, late: bool) -> tuple[Activity, ...]:
        """A record brings these words. ``late``: also those that reached the agent in the middle of a turn.

        Such a record follows at once or never, so what is typed later is not its repetition.
        """
        if not late:
            self.items = [item for item in self.items if item[3] != self.DELIVERED]
        key = link_key(text.strip()) if self.items else ""
        for index, (line, waiting, human, _) in enumerate(self.items):
            if waiting == key:
                del self.items[index]
                return (Activity(line, line, False),) if human else ()
        return ()


def _session_of(path: str) -> Session:
    stem = os.path.splitext(os.path.basename(path))[0]
    agent = _AGENT_FILE.match(stem)
    if agent:
        role = "worker" if agent.group(1).startswith(_SUMMARISER) else "subagent"
        return Session("claude-code", agent.group(1), transcript=path, role=role)
    return Session("claude-code", stem if _UUID.match(stem) else "", transcript=path)


def _parent_of(path: str) -> str:
    """A sub-agent's file lies in ``<session id>/subagents/``, at any depth."""
    parts = os.path.normpath(path).split(os.sep)
    if "subagents" not in parts[:-1]:
        return ""
    return parts[parts.index("subagents") - 1]


def _link(id_: str, record: Mapping[str, Any], sheet: Sheet) -> Link:
    parent = record.get("parentUuid") or record.get("logicalParentUuid")
    prompt = record.get("type") == "user" and not sheet.side and _is_prompt(sheet.entries)
    return Link(id_, text_of(parent), prompt)


def _is_prompt(entries: list[Entry]) -> bool:
    """True if the human typed this. Words with a tool's result are no prompt: results hang beside the live path."""
    human = False
    for entry in entries:
        if entry.kind == "tool_result":
            return False
        human = human or entry.speaker == "human"
    return human


def _joined(parts: list[Parsed], reasons: Reasons) -> Parsed:
    """One line's records together. Their links become one: the records are one step of the live path."""
    links = [part.link for part in parts if part.link]
    link = Link(links[-1].id, links[0].parent, any(each.prompt for each in links)) if links else None
    return Parsed(
        tuple(entry for part in parts for entry in part.entries),
        reasons + tuple(reason for part in parts for reason in part.skipped),
        tuple(change for part in parts for change in part.activity),
        link,
        next((part.measure for part in reversed(parts) if part.measure), None),
        False,
        tuple(receipt for part in parts for receipt in part.receipts),
        repeats=next((part.repeats for part in parts if part.repeats), None),
    )


def _first_text(content: Any) -> str:
    block = content[0] if isinstance(content, list) and content else None
    return text_of(block.get("text")) if isinstance(block, dict) and block.get("type") == "text" else ""


def _receipts(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Marks of our own block where the harness says that it gave it to the model, and not where a hook printed it; and
    those with which a prompt begins."""
    attachment = record.get("attachment")
    if record.get("type") == "user" and record.get("isMeta") is not True:
        message = record.get("message")
        said = message.get("content") if isinstance(message, dict) else None
        first = said if isinstance(said, str) else _first_text(said)
        return receipts(first) if first.lstrip().startswith(OWN_BLOCK) else ()
    if not isinstance(attachment, dict) or attachment.get("type") != "hook_additional_context":
        return ()
    content = attachment.get("content")
    texts = content if isinstance(content, list) else [content]
    return tuple(receipt for text in texts for receipt in receipts(text_of(text)))
