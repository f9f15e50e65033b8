"""A model's server on loopback that plays a script, and keeps every request for a test to look at."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

NOTES = {"notes": [{"text": "The port is 8080.", "relevance": "high", "entry_ids": [1], "at": ""}]}
RELEASE_SECONDS = 30.0  # after which a server that hangs answers all the same, so that a lost deadline fails a test


class Seen(NamedTuple):
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any


class Played(NamedTuple):
    """One answer: a status, a body (text, or a value for JSON), and headers."""

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = MappingProxyType({})


Step = Played | Callable[["Handler"], None]


class Site(ThreadingHTTPServer):
    """Plays its steps in order, the last one again and again."""

    daemon_threads = True

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.steps = steps
        self.seen: list[Seen] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is part of many tests."""


class Handler(BaseHTTPRequestHandler):
    """Answers with the next step."""

    server: Site

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append(
            Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(data))
        )
        step = self.server.steps.pop(0) if len(self.server.steps) > 1 else self.server.steps[0]
        if isinstance(step, Played):
            self.play(step)
        else:
            step(self)

    def do_GET(self) -> None:
        self.do_POST()

    def play(self, step: Played) -> None:
        body = step.body if isinstance(step.body, bytes) else None
        if body is None:
            body = (step.body if isinstance(step.body, str) else json.dumps(step.body)).encode()
        self.send_response(step.status)
        for name, value in step.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def site(*steps: Step) -> Iterator[Site]:
    """A server that plays these steps while the block runs."""
    server = Site(list(steps))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


def completion(text: str = json.dumps(NOTES), ended: str | None = "stop", **fields: Any) -> Played:
    """A whole answer of Chat Completions."""
    message = {"role": "assistant", "content": text, **fields.pop("message", {})}
    usage = {"prompt_tokens": 120, "completion_tokens": 30}
    value = {"model": "m-2026", "choices": [{"message": message, "finish_reason": ended}], "usage": usage}
    return Played(200, {**value, **fields})


def message(text: str = json.dumps(NOTES), ended: str | None = "end_turn", **fields: Any) -> Played:
    """A whole answer of Messages, with a block of thinking before it."""
    content = [{"type": "thinking", "thinking": "[{}]"}, {"type": "text", "text": text}]
    usage = {
        "input_tokens": 20,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 4000,
        "output_tokens": 50,
    }
    return Played(200, {"model": "m-2026", "content": content, "stop_reason": ended, "usage": usage, **fields})


def refusal(status: int, text: str, headers: dict[str, str] | None = None, **fields: Any) -> Played:
    """An error with its words."""
    return Played(status, {"error": {"message": text, **fields}}, headers or {})


def hang(handler: Handler) -> None:
    """Never answer."""
    handler.server.released.wait(RELEASE_SECONDS)
    handler.play(completion())


def drip(handler: Handler) -> None:
    """Send a letter of a header now and then, so that no socket ever waits long."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nx-slow: ")
    rounds = int(RELEASE_SECONDS / 0.02)
    while not handler.server.released.wait(0.02) and rounds:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        rounds -= 1


def pour(handler: Handler) -> None:
    """Send a body that has no end."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while not handler.server.released.is_set():
            handler.wfile.write(b" " * 65_536)
    except OSError:
        pass  # the caller has had enough


def hang_up(handler: Handler) -> None:
    """Break the connection off before any answer."""
    handler.close_connection = True
    handler.connection.close()
