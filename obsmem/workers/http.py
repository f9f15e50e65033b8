"""A model behind an address: the Messages API or Chat Completions, of a company's server or of one on this machine.

Invariants: no call is made to an address that the configuration does not name; a call takes no longer than its deadline,
its retries included; neither a key nor the words of a prompt or an answer are ever part of a message.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.model import Reply, Request
from obsmem.workers import http_faults, http_forms, http_key, http_wire
from obsmem.workers.base import ANSWER_LIMIT, ANSWER_TOKENS, DEADLINE_SECONDS, ModelWorker, reply, setting
from obsmem.workers.http_faults import Failure
from obsmem.workers.http_forms import Habits

KIND = "http"
MOST_TRIES = 4  # calls that one request may cost because the server is busy
FIRST_PAUSE = 1.0  # seconds; doubled each time, and shortened by chance, so that two callers do not meet again
LONGEST_PAUSE = 16.0

_TOKENS = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string", "minLength": 1}
OPTIONS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["api", "url", "model"],
    "properties": {
        "kind": {"const": KIND, "description": "this kind of worker"},
        "name": {**_TEXT, "description": "what it is called in reports; 'http:' and the model where missing"},
        "api": {"enum": list(http_forms.APIS), "description": "what the server speaks: Messages or Chat Completions"},
        "url": {**_TEXT, "description": "the server's address, with or without /v1 and the endpoint"},
        "model": {**_TEXT, "description": "the model to ask for"},
        "key_env": {**_TEXT, "description": "name of the environment variable that holds the key"},
        "key_command": {
            "anyOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
            "description": "a program (list) or shell line (text) that prints the key, run for every call",
        },
        "window": {"type": "integer", "minimum": 0, "description": "tokens of prompt and answer together; 0: unknown"},
        "answer_tokens": {**_TOKENS, "description": f"tokens that an answer may have; {ANSWER_TOKENS} where missing"},
        "timeout_seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": f"seconds that a call may take, retries included; {DEADLINE_SECONDS:.0f} where missing",
        },
        "structured": {
            "enum": ["auto", "on", "off"],
            "description": "hold the answer to a schema: auto (until the server refuses), on (or fail), off",
        },
        "headers": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "further headers; '{key}' in a value is the key, which is then sent nowhere else",
        },
        "alone": {"type": "boolean", "description": "never two calls at the same time on one machine"},
    },
}

# What servers refused, by address, model and 'structured': learned once in a process, by a call that then got through.
_LEARNED: dict[tuple[str, str, str], Habits] = {}


class Clock(NamedTuple):
    """Time and chance, so that a test can wait without waiting."""

    now: Callable[[], float] = time.monotonic
    date: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


class HttpWorker:
    """A worker that asks one model of one server. Made by ``make``."""

    def __init__(self, options: Mapping[str, Any], clock: Clock | None = None) -> None:
        self.model = str(options["model"])
        self.window = int(setting(options, "window", 0))
        self.answer_tokens = int(setting(options, "answer_tokens", ANSWER_TOKENS))
        self.alone = bool(setting(options, "alone", False))
        self._given_name = str(setting(options, "name", ""))
        self.NAME = self._given_name or f"{KIND}:{self.model}"
        self._api = str(options["api"])
        self._key_env = str(setting(options, "key_env", ""))
        key = "by the key that a command prints" if options.get("key_command") else "without a key"
        self.billing = f"by the key in {self._key_env}, as configured" if self._key_env else key
        self._key_command: str | list[str] = setting(options, "key_command", "")
        self._headers: Mapping[str, str] = setting(options, "headers", {})
        self._structured = str(setting(options, "structured", "auto"))
        self._seconds = float(setting(options, "timeout_seconds", DEADLINE_SECONDS))
        self._clock = clock or Clock()
        secret = bool(self._key_env or self._key_command or self._headers)
        self._url = http_wire.endpoint(str(options["url"]), http_forms.ENDPOINTS[self._api], secret)

    def ask(self, request: Request) -> Reply:
        """Ask the model once. Raises WorkerError where no whole answer comes in time."""
        started = self._clock.now()
        deadline = started + self._seconds
        data = self._call(request, self._key(deadline), deadline)
        if len(data) > ANSWER_LIMIT:
            raise WorkerError(
                f"The worker {self.NAME} sent more than {ANSWER_LIMIT} bytes: nothing was kept. Lower 'answer_tokens'.",
                retry=True,
            )
        said = http_forms.read(self._api, self._object(data), self.NAME)
        return reply(
            request,
            self.NAME,
            said.text,
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
            ms=int((self._clock.now() - started) * 1000),
            model=said.model,
        )

    def _key(self, deadline: float) -> str:
        if self._key_env:
            return http_key.from_environment(self._key_env, self.NAME)
        if self._key_command:
            return http_key.from_command(self._key_command, deadline - self._clock.now(), self.NAME)
        return ""

    def _call(self, request: Request, key: str, deadline: float) -> bytes:
        """Send a request until it is answered, leaving out what the server refuses and waiting where it is busy."""
        place = (self._url, self.model, self._structured)
        habits = _LEARNED.get(place, Habits(structured=self._structured != "off"))
        tries = 0
        while True:
            data, failure = self._try(request, key, habits, deadline)
            if failure is None:
                _LEARNED[place] = habits
                return data
            less = self._less(habits, failure, bool(request.schema))
            if less is not None:
                habits = less
                continue
            tries += 1
            self._wait(failure, tries, deadline)

    def _try(self, request: Request, key: str, habits: Habits, deadline: float) -> tuple[bytes, Failure | None]:
        left = deadline - self._clock.now()
        if left <= 0:
            return b"", Failure("timeout")
        headers = http_forms.headers(self._api, key, self._headers)
        body = http_forms.body(self._api, self.model, self.answer_tokens, request, habits)
        try:
            answer = http_wire.post(self._url, headers, body, left, ANSWER_LIMIT)
        except http_wire.WireError as error:
            return b"", Failure(error.kind)
        return answer.body, http_faults.judge(answer.status, answer.headers, answer.body, self._clock.date())

    def _less(self, habits: Habits, failure: Failure, schema: bool) -> Habits | None:
        """The habits without what a server refused; None where its refusal is about something else. Each can only be
        given up once, so this ends."""
        if failure.status not in (400, 422) or failure.kind not in ("request", "model"):
            return None
        if habits.limit_name == "max_tokens" and "max_completion_tokens" in failure.said:
            return habits._replace(limit_name="max_completion_tokens")
        if habits.temperature and "temperature" in failure.said:
            return habits._replace(temperature=False)
        if not habits.structured or not schema or failure.kind == "model":
            return None
        if self._structured == "auto":  # whatever the words are: without the schema it may go through
            return habits._replace(structured=False)
        if http_faults.names_structure(failure.said):
            raise http_faults.fail(failure._replace(kind="structured"), self.NAME)
        return None

    def _wait(self, failure: Failure, tries: int, deadline: float) -> None:
        """Wait before the next try. Raises WorkerError where there is none, or no time for it."""
        pause = failure.wait
        if not pause:
            pause = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE) * (0.5 + self._clock.chance() / 2)
        over = self._clock.now() + pause >= deadline
        if not http_faults.ROWS[failure.kind].again or tries >= MOST_TRIES or over:
            raise http_faults.fail(failure, self.NAME)
        self._clock.pause(pause)

    def _object(self, data: bytes) -> Mapping[str, Any]:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise WorkerError(
                f"The worker {self.NAME} sent something else than a JSON object: nothing was kept. Check 'url' and 'api'.",
                retry=True,
            )
        return value


def make(options: Mapping[str, Any], clock: Clock | None = None) -> ModelWorker:
    """Make a worker of its configuration. Raises ConfigError."""
    import jsonschema  # costs 130 ms

    given = {key: value for key, value in options.items() if value is not None}
    for error in jsonschema.Draft202012Validator(OPTIONS).iter_errors(given):
        key = ".".join(str(part) for part in error.absolute_path)
        # The value of a header may be a secret, and the validator's message repeats it.
        why = "is no text" if key.startswith("headers.") else error.message
        raise ConfigError(f"The http worker cannot be set up: {key or 'its options'}: {why}. Correct it in 'workers'.")
    if "key_env" in given and "key_command" in given:
        raise ConfigError("The http worker has both key_env and key_command: keep the one that gives its key.")
    for name, value in given.get("headers", {}).items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not value.isascii() or not value.isprintable():
            raise ConfigError(f"The http worker's header {name!r} is no header: use letters of ASCII, on one line.")
        if http_forms.KEY_PLACE in value and "key_env" not in given and "key_command" not in given:
            raise ConfigError(
                f"The http worker's header {name!r} wants a key and there is none: give key_env or key_command."
            )
    return HttpWorker(given, clock)
