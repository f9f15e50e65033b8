"""Canned answers, for tests and dry runs: a list in order, or a table keyed by what is asked.

Invariant: an answer is given exactly as it was written, and a request without an answer is a WorkerError, so that a
script which is too short cannot pass for a deliberate "nothing to note".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.model import Reply, Request
from obsmem.system.state import WORKER_VARIABLE

NAME = "scripted"
OTHERWISE = "*"
PRINTED_LIMIT = 1 << 20  # bytes


class Scripted:
    """Gives its answers in order, or, where they are a mapping, by ``request_key``, task, or ``*``.

    An answer is a list of proposals, or a mapping {"error": message, "retry": bool} that is raised as WorkerError, or
    {"items": [...], "tokens_in": n, "tokens_out": n}, or {"run": [program, argument, ...]}: what that program prints, as
    JSON, is the list of proposals. ``asked`` keeps every request, for tests to look at.
    """

    NAME = NAME

    def __init__(self, answers: Sequence[Any] | Mapping[str, Any]) -> None:
        self.asked: list[Request] = []
        self._table = dict(answers) if isinstance(answers, Mapping) else None
        self._answers = [] if isinstance(answers, Mapping) else list(answers)

    def ask(self, request: Request) -> Reply:
        """Give the next answer, or the one for this request. Raises WorkerError where there is none."""
        self.asked.append(request)
        answer = self._pick(request)
        tokens: dict[str, Any] = {}
        if isinstance(answer, Mapping):
            if "error" in answer:
                raise WorkerError(str(answer["error"]), retry=bool(answer.get("retry", False)))
            if "run" in answer:
                return Reply(_printed(answer["run"]), NAME)
            tokens = {name: int(answer.get(name, 0)) for name in ("tokens_in", "tokens_out")}
            answer = answer.get("items")
        if not isinstance(answer, Sequence) or isinstance(answer, str):
            raise WorkerError("The scripted answer is no list of proposals: correct the script.")
        return Reply(tuple(dict(item) for item in answer), NAME, **tokens)

    def _pick(self, request: Request) -> Any:
        if self._table is None:
            if not self._answers:
                raise WorkerError("The scripted worker has no answer left: the script is shorter than the run.")
            return self._answers.pop(0)
        for key in (request_key(request), request.task, OTHERWISE):
            if key in self._table:
                return self._table[key]
        raise WorkerError(
            f"The scripted worker has no answer for {request.task} {request_key(request)}: add that key, or {OTHERWISE!r}."
        )


def _printed(command: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """The proposals that a program prints. It is not waited for when it prints too much, nor are its children."""
    import subprocess

    environment = {**os.environ, WORKER_VARIABLE: "1"}
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        data = process.stdout.read(PRINTED_LIMIT + 1)
        if len(data) > PRINTED_LIMIT:
            process.kill()
            raise WorkerError(f"The program {command[0]} printed more than {PRINTED_LIMIT} bytes.")
    try:
        value = json.loads(data)
    except ValueError as error:
        raise WorkerError(f"The program {command[0]} printed no JSON ({error}).") from error
    if process.returncode or not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise WorkerError(f"The program {command[0]} failed, or printed no list of proposals.")
    return tuple(value)


def request_key(request: Request) -> str:
    """Name a request by what it asks about: 12 hex digits over task, session and the chunk's text or the note ids."""
    if request.chunk is not None:
        subject = request.chunk.text
    else:
        subject = "\n".join(note.id for note in request.memory.notes)
    joined = "\n".join((request.task, request.session, subject))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def make(options: Mapping[str, Any]) -> Scripted:
    """The worker of a configuration: ``path`` names its script. Raises ConfigError."""
    if not isinstance(options.get("path"), str):
        raise ConfigError("A worker of kind 'scripted' has no 'path': name the JSON file of its answers.")
    return load(options["path"])


def load(path: str | Path) -> Scripted:
    """Read a script from a JSON file: a list or an object of answers. Raises ConfigError where it is neither."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The script {path} cannot be read ({error}): give a JSON file of answers.") from error
    if not isinstance(value, (list, dict)):
        raise ConfigError(f"The script {path} holds neither a list nor an object: give a JSON file of answers.")
    return Scripted(value)
