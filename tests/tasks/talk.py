"""Hand-written transcripts in the shape of Claude Code's, and a store to read them into."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from obsmem.core.model import Entry
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.system import config
from obsmem.tasks.entries import read_entries
from obsmem.tasks.ingest import Ingested, ingest
from obsmem.tasks.observe import Done, run_passes
from obsmem.tasks.store import Store, open_store

SESSION = "5e551011-0000-4000-8000-0000000000a1"
FORK = "5e551011-0000-4000-8000-0000000000f2"
CLAUDE = "claude-code"


class Talk:
    """A conversation, record by record. ``head`` is the uuid that the next record follows."""

    def __init__(self, session: str = SESSION, cwd: str = "/w/shop") -> None:
        self.session, self.cwd = session, cwd
        self.records: list[dict[str, Any]] = []
        self.head: str | None = None
        self.number = 0

    def _add(self, kind: str, **fields: Any) -> str:
        self.number += 1
        uuid = f"{self.session[-4:]}0000-{self.number:04d}-4000-8000-000000000000"
        minute, second = divmod(self.number, 60)
        self.records.append(
            {"parentUuid": self.head, "isSidechain": False, "userType": "external", "cwd": self.cwd,
             "sessionId": self.session, "version": "2.1.197", "type": kind, "uuid": uuid,
             "timestamp": f"2026-03-01T{10 + minute // 60:02d}:{minute % 60:02d}:{second:02d}.000Z", **fields}
        )  # fmt: skip
        self.head = uuid
        return uuid

    def user(self, text: str) -> str:
        """What a human types."""
        return self._add("user", message={"role": "user", "content": text})

    def agent(self, *texts: str, context: int = 0) -> str:
        """What the agent says; ``context`` is the provider's count of the tokens before it."""
        message: dict[str, Any] = {
            "id": f"msg_{self.number}", "type": "message", "role": "assistant", "model": "claude-opus-5",
            "content": [{"type": "text", "text": text} for text in texts], "stop_reason": None,
        }  # fmt: skip
        if context:
            message["usage"] = {"input_tokens": context, "output_tokens": 5}
        return self._add("assistant", message=message)

    def run(self, command: str, output: str, *, failed: bool = False) -> str:
        """A shell command and what came of it."""
        call = f"toolu_{self.session[-2:]}{self.number}"
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
        self._add(
            "assistant",
            message={
                "id": f"msg_{self.number}",
                "role": "assistant",
                "model": "claude-opus-5",
                "content": [block],
            },
        )
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": failed}
        return self._add("user", message={"role": "user", "content": [result]})

    def turn(self, number: int) -> None:
        """A whole turn with something to note: an order, a command, a conclusion."""
        self.user(f"Please make module number_{number} import cleanly, and never touch src/api_{number}.py again.")
        self.run(f"pytest tests/test_{number}.py", f"{number + 3} passed in 0.{number}2s")
        self.agent(
            f"Fixed src/number_{number}.py: the import cycle with parse_config_{number} is gone because it loads late."
        )

    def compact(self) -> None:
        """A compaction: the boundary, then the summary that replaces what was before."""
        before, self.head = self.head, None
        self._add(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=before,
            compactMetadata={"trigger": "auto", "preTokens": 100},
        )
        self._add(
            "user",
            isCompactSummary=True,
            isVisibleInTranscriptOnly=True,
            message={"role": "user", "content": "This session is being continued from a previous conversation."},
        )

    def fork(self, session: str = FORK) -> Talk:
        """A session that begins with a copy of this one's records: same uuids, its own session id."""
        child = Talk(session, self.cwd)
        child.records = [
            {**record, "sessionId": session, "forkedFrom": {"sessionId": self.session, "messageUuid": record["uuid"]}}
            for record in self.records
        ]
        child.head, child.number = self.head, self.number
        return child

    def lines(self) -> list[bytes]:
        """The records as lines."""
        return [json.dumps(record).encode() + b"\n" for record in self.records]

    def write(self, folder: Path, name: str = "") -> Path:
        """Write the transcript as the harness would name it."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"{self.session}.jsonl")
        path.write_bytes(b"".join(self.lines()))
        return path


def turns(count: int, session: str = SESSION) -> Talk:
    """A conversation of so many turns."""
    talk = Talk(session)
    for number in range(count):
        talk.turn(number)
    return talk


@contextmanager
def opened(readonly: bool = False, **changes: Any) -> Iterator[Store]:
    """The store of this test's world, with some configuration changed."""
    loaded = config.override(config.load(), changes, "test") if changes else config.load()
    with open_store(config=loaded, readonly=readonly) as store:
        yield store


def take(store: Store, path: Path | str, harness: str = CLAUDE, session: str = "", **more: Any) -> Ingested:
    """Read a transcript on."""
    return ingest(store, harness, Source(str(path), session), **more)


def session_of(store: Store, path: Path | str, harness: str = CLAUDE, session: str = "", **more: Any) -> StoredSession:
    """Read a transcript on and return its session."""
    stored = take(store, path, harness, session, **more).stored
    assert stored is not None
    return stored


def watch(store: Store, stored: StoredSession) -> Done:
    """Observe everything there is."""
    return run_passes(store, fresh(store, stored), utc, drain=True)


def utc(at: int) -> str:
    """A clock that does not depend on the machine."""
    from obsmem.core.clock import utc_minute

    return utc_minute(at)


def fresh(store: Store, stored: StoredSession) -> StoredSession:
    """The session as it is stored now."""
    return store.archive.by_handle(stored.session.handle)


def entries(store: Store, stored: StoredSession) -> list[Entry]:
    """All entries of a session, whatever became of them."""
    return read_entries(store, stored, store.archive.entries(stored.no))


def active_texts(store: Store, stored: StoredSession) -> list[str]:
    """The texts on the live path."""
    return [entry.text for entry in entries(store, stored) if entry.active]


def plain(found: list[Entry]) -> list[tuple[Any, ...]]:
    """What two readings of one transcript must agree on."""
    return [(one.seq, one.kind, one.speaker, one.text, one.active, one.at, one.block) for one in found]


def raw_files(folder: str | None = None) -> dict[str, bytes]:
    """Every file below the data folder, byte for byte."""
    root = folder or os.environ["OBSERVATIONAL_MEMORY_HOME"]
    return {
        os.path.join(where, name): Path(where, name).read_bytes() for where, _, names in os.walk(root) for name in names
    }
