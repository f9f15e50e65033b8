"""A harness's program as a model, with everything off that could read, write, run, remember or call back.

Invariant: a program that cannot be locked down is not started; one that shows that a lock did not hold has its answer
thrown away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from obsmem.core.errors import WorkerError
from obsmem.core.model import Reply, Request
from obsmem.workers import command_presets
from obsmem.workers.base import ANSWER_TOKENS, DEADLINE_SECONDS, KEY, reply, setting
from obsmem.workers.command_base import Answer, Call
from obsmem.workers.command_environment import scrubbed
from obsmem.workers.command_probe import abilities, forget
from obsmem.workers.command_process import Folder, open_folder
from obsmem.workers.command_talk import found, talk


class Locked:
    """One preset's program."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._preset = command_presets.load(options["preset"])
        self._program: str = setting(options, "program", self._preset.PROGRAM)
        self.NAME: str = setting(options, "name", f"command:{options['preset']}")
        self.model: str = setting(options, "model", "")
        self.window: int = setting(options, "window", self._preset.WINDOW)
        self.answer_tokens: int = setting(options, "answer_tokens", ANSWER_TOKENS)
        self.alone: bool = setting(options, "alone", True)
        keys = [name for name in self._preset.VARIABLES if name.endswith(("_KEY", "_TOKEN")) and os.environ.get(name)]
        self.billing = f"{KEY}{keys[0]}" if keys else f"by the login of {self._preset.PROGRAM}"
        self._seconds = float(setting(options, "timeout_seconds", DEADLINE_SECONDS))
        self._names: list[str] = setting(options, "environment", [])

    def ask(self, request: Request) -> Reply:
        """Put the request's prompt to the program. Raises WorkerError."""
        started = time.monotonic()
        outer = dict(os.environ)
        names = [*self._preset.VARIABLES, *self._names]
        environment = scrubbed(names, self._preset.PREFIXES)
        program = found(self._program, environment, self.NAME)
        known = abilities(self._preset, self.NAME, program, environment)
        with open_folder() as folder:
            inside = scrubbed(names, self._preset.PREFIXES, folder.temporary)
            self._preset.confine(folder, inside, outer)
            call = Call(folder, inside, self.model, self.answer_tokens, request.schema, known.flags, known.facts)
            try:
                answer = self._answer(program, call, request.prompt)
            except WorkerError as error:
                if error.fault == "settings":
                    forget(self._preset, program)
                raise
            finally:
                self._preset.finish(folder, outer)
        took = int((time.monotonic() - started) * 1000)
        facts = {"tokens_in": answer.tokens_in, "tokens_out": answer.tokens_out, "model": answer.model or self.model}
        return reply(request, self.NAME, answer.text, ms=took, **facts)

    def _answer(self, program: str, call: Call, prompt: str) -> Answer:
        folder: Folder = call.folder
        argv = [program, *self._preset.arguments(call)]
        output = talk(self.NAME, argv, folder, call.environment, prompt, self._seconds)
        answer = self._preset.read(self.NAME, output)
        if not answer.text.strip():
            raise WorkerError(
                f"The worker {self.NAME} ended well and gave a blank answer. Nothing was read as covered; it will be asked "
                "again.",
                retry=True,
            )
        return answer
