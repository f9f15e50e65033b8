"""Any program as a model: the prompt on its standard input, the answer on its standard output.

Owns the options and one call. Invariant: each call has an empty working folder, a scrubbed environment and a hard
deadline, and leaves neither a file nor a process; the prompt is never an argument, which other users could read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from obsmem.core.errors import ConfigError
from obsmem.core.model import Reply, Request
from obsmem.workers.base import ANSWER_TOKENS, DEADLINE_SECONDS, reply, setting
from obsmem.workers.command_base import TROUBLES, Answer, failure
from obsmem.workers.command_environment import scrubbed
from obsmem.workers.command_locked import Locked
from obsmem.workers.command_presets import PRESETS
from obsmem.workers.command_process import Folder, open_folder
from obsmem.workers.command_talk import found, talk

KIND = "command"
MODEL_MARK = "{model}"

OPTIONS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kind": {"const": KIND, "description": "command: a program is the model"},
        "name": {
            "type": "string",
            "minLength": 1,
            "description": "what it is called in 'worker_calls' and messages; default: command:PROGRAM",
        },
        "preset": {
            "enum": list(PRESETS),
            "description": "the harness's program that is asked, locked down completely; either this or 'run'",
        },
        "program": {"type": "string", "minLength": 1, "description": "path of the preset's program; default: on PATH"},
        "run": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "program and arguments; the prompt is its standard input, the answer its standard output; "
            "{model} in an argument stands for 'model'",
        },
        "model": {"type": "string", "description": "the model to ask for; default: the program's own choice"},
        "window": {
            "type": "integer",
            "minimum": 0,
            "description": "tokens that prompt and answer together may have; 0: nobody knows",
        },
        "answer_tokens": {
            "type": "integer",
            "minimum": 1,
            "description": f"tokens that an answer may have; default {ANSWER_TOKENS}",
        },
        "timeout_seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": f"seconds after which the program is killed; default {DEADLINE_SECONDS:.0f}",
        },
        "environment": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "names of further environment variables that the program may see, its key's for example",
        },
        "alone": {
            "type": "boolean",
            "description": "true: no two calls at the same time on one machine, since a login that two programs renew at "
            "once is lost; default: true for a preset, false for 'run'",
        },
    },
    "required": ["kind"],
}


def make(options: Mapping[str, Any]) -> Command | Locked:
    """A worker from its entry in the configuration. Raises ConfigError."""
    _check(options)
    return Locked(options) if options.get("preset") else Command(options)


def _check(options: Mapping[str, Any]) -> None:
    import jsonschema  # costs 130 ms: not on the hook path

    for error in jsonschema.Draft202012Validator(OPTIONS).iter_errors(dict(options)):
        key = ".".join(str(part) for part in error.absolute_path)
        where = f"{key!r} of a command worker" if key else "a command worker"
        raise ConfigError(f"Wrong configuration of {where}: {error.message}. Correct its entry in 'workers'.")
    if bool(options.get("preset")) == bool(options.get("run")):
        raise ConfigError(
            "A command worker needs either 'preset' or 'run', so that it is clear which program is asked. Give one of them."
        )
    if options.get("preset"):
        return
    if options.get("program"):
        raise ConfigError("A command worker has 'program' without 'preset'. Put the program's path into 'run'.")
    marked = any(MODEL_MARK in word for word in options["run"])
    if marked != bool(options.get("model")):
        raise ConfigError(
            f"A command worker has 'model' without {MODEL_MARK} in 'run', or the other way round, so that the program "
            f"would not learn its model. Give both or neither."
        )
    program = os.path.expanduser(options["run"][0])
    if os.path.dirname(program) and not os.path.isabs(program):
        raise ConfigError(
            f"'run' of a command worker names {program!r}, which depends on the working folder, and each call has a new "
            "one. Give an absolute path, or a name that is found on PATH."
        )


class Command:
    """A program of the user's as a model."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._run = [str(word) for word in options["run"]]
        self.NAME: str = setting(options, "name", f"{KIND}:{os.path.basename(self._run[0])}")
        self.model: str = setting(options, "model", "")
        self.window: int = setting(options, "window", 0)
        self.answer_tokens: int = setting(options, "answer_tokens", ANSWER_TOKENS)
        self.alone: bool = setting(options, "alone", False)
        self.billing = f"as {os.path.basename(self._run[0])} is set up"
        self._seconds = float(setting(options, "timeout_seconds", DEADLINE_SECONDS))
        self._names: list[str] = setting(options, "environment", [])

    def ask(self, request: Request) -> Reply:
        """Put the request's prompt to the program. Raises WorkerError."""
        started = time.monotonic()
        with open_folder() as folder:
            answer = self._answer(request, folder)
        return reply(
            request,
            self.NAME,
            answer.text,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            model=answer.model or self.model,
            ms=int((time.monotonic() - started) * 1000),
        )

    def _answer(self, request: Request, folder: Folder) -> Answer:
        environment = scrubbed(self._names, temporary=folder.temporary)
        argv = [word.replace(MODEL_MARK, self.model) for word in self._run]
        argv[0] = found(argv[0], environment, self.NAME)
        output = talk(self.NAME, argv, folder, environment, request.prompt, self._seconds)
        if output.status:
            said = (
                f"The program of the worker {self.NAME} failed with status {output.status}. Run it by hand to see why."
            )
            raise failure(self.NAME, f"{output.stderr}\n{output.stdout}", TROUBLES, said)
        return Answer(output.stdout)
