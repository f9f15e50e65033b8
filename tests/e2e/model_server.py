"""A scripted model on 127.0.0.1: answers from a file, and keeps every request.

Owns the socket, the order of answers, and the log. Invariants: it listens on loopback only; a main request gets
the next unused line of the script (which may grow while the server runs) or a plain "OK.", a summariser's request one
of its own script or a plain summary, other side requests take none; every request is in the log before it is
answered. Run as a program (``python -m tests.e2e.model_server FOLDER``), it can live in a network namespace of its own;
the folder then holds ``script.jsonl``, ``script-summary.jsonl``, ``requests.jsonl`` and ``port``.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from . import wire

LOG, PORT = "requests.jsonl", "port"
SCRIPTS = {"main": "script.jsonl", "summary": "script-summary.jsonl"}
_USUAL: dict[str, wire.Answer] = {"summary": {"text": wire.SUMMARY_TEXT}, "title": {"text": wire.TITLE_TEXT}}


class ModelServer(ThreadingHTTPServer):
    """Serves one script. ``folder`` holds the script and the log."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), RequestHandler)
        self.folder = folder
        self.number = 0
        self.taken = dict.fromkeys(SCRIPTS, 0)
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        """The port that the system gave."""
        return int(self.server_address[1])

    def take(self, path: str, body: Mapping[str, Any]) -> tuple[int, wire.Answer]:
        """Log a request and choose its answer. Returns the request's number, from 1, and the answer."""
        kind = wire.classify(body)
        with self._lock:
            self.number += 1
            record = {"number": self.number, "path": path, "kind": kind, "body": body}
            with open(self.folder / LOG, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            return self.number, self._next(kind) or _USUAL.get(kind, {})

    def _next(self, kind: str) -> wire.Answer:
        if kind not in SCRIPTS:
            return {}
        path = self.folder / SCRIPTS[kind]
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        unused = [line for line in lines if line][self.taken[kind] :]
        if not unused:
            return {}
        self.taken[kind] += 1
        return cast("wire.Answer", json.loads(unused[0]))


class RequestHandler(BaseHTTPRequestHandler):
    """One connection. Anything that is not a model request gets an empty answer."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_HEAD(self) -> None:
        """Say that we are here."""
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        """List no models: the programs ask, and go on without an answer."""
        self._send(404, b"{}", "application/json")

    def do_POST(self) -> None:
        """Answer a model request from the script."""
        length = int(self.headers.get("content-length") or 0)
        data = self.rfile.read(length)
        path = self.path.split("?", 1)[0]
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        if path == "/v1/messages/count_tokens":
            return self._send(200, b'{"input_tokens": 100}', "application/json")
        if path not in wire.STREAMS or not isinstance(body, dict):
            return self._send(404, b"{}", "application/json")
        number, answer = self.server.take(path, body)
        time.sleep(float(answer.get("seconds", 0)))
        if "status" in answer:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": answer["error"]}}
            return self._send(int(answer["status"]), json.dumps(error).encode(), "application/json")
        model = str(body.get("model", "scripted"))
        if path == "/v1/messages" and not body.get("stream"):
            message = json.dumps(wire.anthropic_message(answer, number, model)).encode()
            return self._send(200, message, "application/json")
        events = wire.STREAMS[path](answer, number, model)
        if answer.get("stalled"):
            return self._stall(b"".join(wire.stalled(events)))
        return self._send(200, b"".join(events), "text/event-stream")

    def _stall(self, data: bytes) -> None:
        """Send the beginning of a stream, and leave the rest open until the client goes away."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        with suppress(ConnectionError):  # its way of going away may be a reset
            self.wfile.write(data)
            self.rfile.read(1)

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class names it so)
        """Keep quiet: the log of requests is the record."""


def main() -> None:
    """Serve the folder named on the command line until killed; its file ``port`` appears once it listens."""
    folder = Path(sys.argv[1])
    server = ModelServer(folder)
    unfinished = folder / (PORT + ".new")
    unfinished.write_text(str(server.port), encoding="ascii")
    unfinished.replace(folder / PORT)
    server.serve_forever()


if __name__ == "__main__":
    main()
