"""Reads OpenCode's folder ``storage``: one JSON file per session, message and part, as before the database came.

``session/<project>/<session>.json``, ``message/<session id>/<message>.json``, ``part/<message id>/<part>.json``; an older
form has all parts in ``part/``. Invariants: ids come from the files' content, names only where that has none; a file
that cannot be read or parsed costs only itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.opencode_parts import moment, voice_of
from obsmem.harnesses.opencode_rows import Row, parsed


class _File(NamedTuple):
    """A JSON file: its text as it is, and what it says."""

    name: str
    text: str
    value: Mapping[str, Any]

    def own_id(self) -> str:
        value = self.value.get("id")
        return value if isinstance(value, str) and value else self.name

    def row(self, table: str, session_id: str, message_id: str = "") -> Row:
        created = moment(self.value, "created") or moment(self.value, "start")
        updated = moment(self.value, "updated") or moment(self.value, "completed") or moment(self.value, "end")
        return Row(table, self.own_id(), self.text, session_id, message_id, created, updated)


def is_tree(path: str) -> bool:
    """True for a folder that holds sessions and messages as files."""
    return (Path(path) / "session").is_dir() and (Path(path) / "message").is_dir()


def session_ids(path: str) -> list[str]:
    """The ids of all sessions in the folder, oldest first."""
    sessions = [(moment(file.value, "created"), file.own_id()) for file in _files(Path(path) / "session", "*/*.json")]
    return list(dict.fromkeys(session_id for _, session_id in sorted(sessions)))


def rows(path: str, session_id: str) -> Iterator[Row]:
    """Yield the rows of a session in order."""
    folder = Path(path)
    for file in _files(folder / "session", "*/*.json"):
        if file.own_id() == session_id:
            yield file.row("session", session_id)
            break
    flat = _flat_parts(folder / "part")
    messages = list(_files(folder / "message" / session_id, "*.json"))
    for message in sorted(messages, key=lambda file: (moment(file.value, "created"), file.own_id())):
        message_id = message.own_id()
        voice = voice_of(message.value)
        row = message.row("message", session_id, message_id)
        yield row._replace(role=voice.role, summary=voice.summary, message_time=voice.at)
        for part in [*_files(folder / "part" / message_id, "*.json"), *flat.get(message_id, ())]:
            row = part.row("part", session_id, message_id)
            yield row._replace(role=voice.role, summary=voice.summary, message_time=voice.at)


def _files(folder: Path, pattern: str) -> Iterator[_File]:
    """The JSON files below a folder, by name: real names are ids, and ids ascend."""
    for path in sorted(folder.glob(pattern)):
        try:
            text = path.read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            continue
        yield _File(path.stem, text, parsed(text))


def _flat_parts(folder: Path) -> dict[str, list[_File]]:
    """The parts that lie in the folder itself, by the message that they name."""
    found: dict[str, list[_File]] = {}
    for file in _files(folder, "*.json"):
        found.setdefault(str(file.value.get("messageID") or ""), []).append(file)
    return found
