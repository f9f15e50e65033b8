"""What a session established before a compaction, by rule, and which of it the rest of the session then used.

Invariant: no rule here is the product's; a fact has its answer and a question from which the answer was withheld.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.survival.record import Case, Event

EDITORS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
CUE, AROUND = 400, 150  # characters of what was said before a use, and of the use itself on either side
RARE = 0.05  # of the sessions that hold a token at most, for it to be session-specific

# A definition's name, in the languages of the transcripts; written for this bench.
_DEFINED = re.compile(
    r"(?m)^\s*(?:export\s+|pub(?:\([a-z]+\))?\s+|async\s+|static\s+|abstract\s+|default\s+)*"
    r"(?:def|class|func(?:\s*\([^)\n]*\))?|function|fn|struct|enum|interface|trait|type|const|let|var)\s+([A-Za-z_]\w{5,})"
)
_TROUBLE = re.compile(r"(?i)\b(?:error|fail(?:ed|ure|s)?|panic|fatal|exception|not found|denied|cannot|undefined)\b")
_EXIT = re.compile(r"^(?:Error: )?Exit code \d+\s*$")
_PATH = re.compile(r"(?<![\w./-])(?:[\w.@-]+/){1,8}[\w.@-]+\.\w{1,6}(?!\w)")
_NAME = re.compile(r"\b(?:[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[a-z]+(?:_[a-z0-9]+){1,6})\b")
_REFERENCE = re.compile(r"(?<![\w#])#\d{2,6}\b|\b[0-9a-f]{7,12}\b(?=[^0-9a-f])")


class Fact(NamedTuple):
    """``kind``, the subject that a question names, and the answer (several words of it for a to-do). ``line`` is where it stands."""

    kind: str
    subject: str
    answer: str
    line: int
    cue: str = ""


def short_path(path: str, repository: str) -> str:
    """A path as people write it: below the repository."""
    return path[len(repository) :].lstrip("/") if repository and path.startswith(repository) else path


def facts_of(case: Case) -> list[Fact]:
    """The facts of every class but demand."""
    return [*_files(case), *_identifiers(case), *_commands(case), *_words(case), *_todos(case)]


def _files(case: Case) -> Iterator[Fact]:
    edited: dict[str, int] = {}
    read: dict[str, int] = {}
    failed = {event.call for event in case.known if event.kind == "result" and event.failed}
    for event in case.known:
        path = event.given.get("file_path") or event.given.get("notebook_path")
        if event.kind == "call" and isinstance(path, str) and event.call not in failed:
            (edited if event.tool in EDITORS else read if event.tool == "Read" else {})[path] = event.line
    for path, line in edited.items():
        yield Fact("edited", "files that were edited", short_path(path, case.repository), line)
    for path, line in read.items():
        if path not in edited:
            yield Fact("read only", "files that were only read", short_path(path, case.repository), line)


def _identifiers(case: Case) -> Iterator[Fact]:
    home: dict[str, tuple[str, int]] = {}
    for event in case.known:
        if event.kind != "call" or event.tool not in EDITORS:
            continue
        path = str(event.given.get("file_path", ""))
        edits = event.given.get("edits")
        news = [edit.get("new_string") for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
        news += [event.given.get("new_string"), event.given.get("content")]
        for text in news:
            for name in _DEFINED.findall(text) if isinstance(text, str) else ():
                home[name] = (path, event.line)  # the last file that defines it
    for name, (path, line) in home.items():
        yield Fact("identifier in file", name, short_path(path, case.repository), line)


def _commands(case: Case) -> Iterator[Fact]:
    """How each command ended the last time, where that was with an error."""
    called = {event.call: event for event in case.known if event.kind == "call" and event.tool == "Bash"}
    last: dict[str, tuple[Event, Event]] = {}
    for event in case.known:
        call = called.get(event.call) if event.kind == "result" else None
        if call is not None:
            last[_command_line(str(call.given.get("command", "")), case.repository)] = (call, event)
    for command, (_, result) in last.items():
        error = _error_line(result.text) if result.failed else ""
        if error and command:
            yield Fact("command and error", command, error, result.line)


def _command_line(command: str, folder: str) -> str:
    """A command on one line, without a step into the folder that it runs in anyway."""
    line = " ".join(command.split())
    return re.sub(rf"^cd {re.escape(folder)}/?(?: && | ; |; | )", "", line) if folder else line


def _error_line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip() and not _EXIT.match(line.strip())]
    if not lines or "user doesn't want to" in text or "tool use was rejected" in text or "requires approval" in text:
        return ""
    return next((line for line in lines if _TROUBLE.search(line)), lines[0])


def _words(case: Case) -> Iterator[Fact]:
    for event in case.known:
        if event.kind == "prompt" and len(event.text.split()) >= 3:
            begin = " ".join(event.text.split()[:3])
            yield Fact("user's words", begin, " ".join(event.text.split())[:300], event.line)


def _todos(case: Case) -> Iterator[Fact]:
    state: dict[str, tuple[str, str]] = {}
    line = 0
    for event in case.known:
        if event.kind == "call" and event.tool == "TodoWrite" and isinstance(event.given.get("todos"), list):
            items = [item for item in event.given["todos"] if isinstance(item, dict)]
            state = {str(n): (str(item.get("content")), str(item.get("status"))) for n, item in enumerate(items)}
            line = event.line
        elif event.kind == "call" and event.tool == "TaskUpdate" and str(event.given.get("taskId")) in state:
            key = str(event.given["taskId"])
            state[key] = (
                str(event.given.get("subject") or state[key][0]),
                str(event.given.get("status") or state[key][1]),
            )
            line = event.line
        elif event.kind == "call" and event.tool == "TaskCreate":
            state[str(len(state) + 1)] = (str(event.given.get("subject")), "pending")
            line = event.line
    for text, status in state.values():
        if status in ("pending", "in_progress"):
            yield Fact("open to-do", "to-dos that are open", text, line)


def tokens_of(text: str) -> set[str]:
    """Paths, structured names and references in a text: what could be asked for by name."""
    return {match.group(0) for shape in (_PATH, _NAME, _REFERENCE) for match in shape.finditer(text)}


def names_of(text: str) -> set[str]:
    """Structured names in a text."""
    return {match.group(0) for match in _NAME.finditer(text)}


def document_frequency(cases: Iterable[Case]) -> tuple[Counter[str], int]:
    """In how many sessions each token occurs, and the number of sessions."""
    held: dict[str, set[str]] = {}
    for case in cases:
        found = held.setdefault(case.session, set())
        for event in (*case.known, *case.later):
            found |= tokens_of(event.text)
    return Counter(token for found in held.values() for token in found), len(held)


def demand_of(case: Case, frequency: Counter[str], sessions: int) -> list[Fact]:
    """Session-specific tokens that stood before the compaction and were used after it, in a call or a prompt, each with the
    words just before its first use (without it and its parts)."""
    known: dict[str, int] = {}
    for event in case.known:
        for token in tokens_of(event.text):
            known.setdefault(token, event.line)
    found: dict[str, Fact] = {}
    before = ""
    for event in case.later:
        if event.kind in ("call", "prompt"):
            for token in tokens_of(event.text):
                rare = frequency[token] <= max(1, RARE * sessions)
                if token in known and token not in found and rare:
                    place = event.text.find(token)
                    cue = before[-CUE:] + " " + event.text[max(0, place - AROUND) : place + len(token) + AROUND]
                    found[token] = Fact("demand", "", token, known[token], without(cue, token))
        if event.kind in ("said", "prompt"):
            before = event.text
    return list(found.values())


def without(text: str, token: str) -> str:
    """A text without a token and the parts that it is made of."""
    parts = {token, *re.findall(r"[A-Za-z0-9]{3,}", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", token))}
    for part in sorted(parts, key=len, reverse=True):
        text = re.sub(re.escape(part), " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())
