"""The small Python project that the demo's story is played in, as it is before the first prompt.

Owns the texts of its files, invented for this purpose. Invariant: the standard library is enough to run all of it, and
nothing in it depends on the day or the machine.
"""

from __future__ import annotations

import json

README = """\
# lantern

Parcel tracking for small shops.

- tests: `python3 -m unittest -q`
- server: `python3 -m lantern.intake`, on port 8080 unless LANTERN_PORT names another
"""

SETTINGS = '''\
"""What an installation may set, from its environment."""

import os

PORT = int(os.environ.get("LANTERN_PORT", "8080"))
DATABASE = os.environ.get("LANTERN_DATABASE", ":memory:")
MAX_BODY_BYTES = 65_536
NORRPOST_SECRET = os.environ.get("LANTERN_NORRPOST_SECRET", "")
'''

STORE = '''\
"""Parcel events in SQLite, one row for each. The table is defined in migrations/0007_parcel_event.sql."""

import sqlite3
from dataclasses import astuple, dataclass
from pathlib import Path

SCHEMA = Path(__file__).parents[1] / "migrations" / "0007_parcel_event.sql"


@dataclass(frozen=True)
class ParcelEvent:
    carrier: str
    carrier_ref: str
    parcel_id: str
    status: str
    at: str


class EventStore:
    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.executescript(SCHEMA.read_text(encoding="utf-8"))

    def append(self, event: ParcelEvent) -> None:
        with self.connection:
            self.connection.execute("INSERT INTO parcel_event VALUES (?, ?, ?, ?, ?)", astuple(event))

    def timeline(self, parcel_id: str) -> list[ParcelEvent]:
        question = "SELECT * FROM parcel_event WHERE parcel_id = ? ORDER BY at"
        return [ParcelEvent(*row) for row in self.connection.execute(question, (parcel_id,))]
'''

INTAKE = '''\
"""The HTTP side: carriers post their events here."""

import json
import logging
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer

from lantern import settings
from lantern.store import EventStore, ParcelEvent

log = logging.getLogger("lantern.intake")


def answer(path: str, headers: Mapping[str, str], body: bytes, store: EventStore, address: str) -> int:
    """The status code for one call of a carrier."""
    if path == "/hooks/fjordpost":
        return fjordpost_call(body, store)
    log.info("no route %s for %s", path, address)
    return 404


def fjordpost_call(body: bytes, store: EventStore) -> int:
    value = json.loads(body)
    store.append(ParcelEvent("fjordpost", value["id"], value["parcel"], value["status"], value["at"]))
    return 204


class Handler(BaseHTTPRequestHandler):
    store: EventStore

    def do_POST(self) -> None:
        length = min(int(self.headers.get("content-length", 0)), settings.MAX_BODY_BYTES)
        body = self.rfile.read(length)
        self.send_response(answer(self.path, self.headers, body, self.store, self.client_address[0]))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


def main() -> None:
    Handler.store = EventStore(settings.DATABASE)
    HTTPServer(("127.0.0.1", settings.PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
'''

TRACKING = '''\
"""What a customer is shown about a parcel."""

from lantern.store import EventStore


def current_status(store: EventStore, parcel_id: str) -> str:
    events = store.timeline(parcel_id)
    return events[-1].status if events else "unknown"
'''

SPECIFICATION = """\
# Norrpost webhooks, version 3

Norrpost posts one JSON object for each event. Answer within 5 s.

| field | meaning |
|---|---|
| `eventId` | unique for ever; a repeated delivery has the same one |
| `shipmentNo` | our parcel id |
| `eventType` | PICKED_UP, ARRIVED_AT_HUB, DEPARTED_HUB, CUSTOMS_HOLD, OUT_FOR_DELIVERY, DELIVERED, RETURNED; more will follow |
| `occurredAt` | ISO 8601 with an offset; late scans come hours afterwards |

Signature: `X-Norrpost-Signature: t=<seconds>,v1=<hex>`. The hex is HMAC-SHA-256 with the shared secret over
`<seconds>.<raw body>`. Refuse what is older than 300 s. The header may hold any text if somebody else calls you.

| your answer | what Norrpost does |
|---|---|
| 2xx | the event is done |
| 400, 5xx | tries again for 24 h |
| 401 | pages the on-call of Norrpost |
| 409 | stops sending this event |
"""

MIGRATION = """\
CREATE TABLE IF NOT EXISTS parcel_event (
    carrier TEXT NOT NULL,
    carrier_ref TEXT NOT NULL,
    parcel_id TEXT NOT NULL,
    status TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (carrier, carrier_ref)
);
"""


def _week() -> str:
    """A week of events: eight of them repeated, three of a type that is new, two that cannot be used."""
    lines = []
    for number in range(240):
        event = number - 1 if number % 26 == 25 else number
        kind = (
            "PARCEL_WEIGHED" if number in (40, 90, 203) else ("ARRIVED_AT_HUB", "DEPARTED_HUB", "DELIVERED")[event % 3]
        )
        at = f"2026-02-{16 + event // 40:02d}T{event % 24:02d}:30:00+01:00"
        value = {"eventId": f"N-{event}", "shipmentNo": f"L-{event // 3}", "eventType": kind, "occurredAt": at}
        lines.append("{}\n" if number in (56, 180) else json.dumps(value) + "\n")
    return "".join(lines)


FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": README,
    "docs/norrpost.md": SPECIFICATION,
    "lantern/__init__.py": "",
    "lantern/settings.py": SETTINGS,
    "lantern/store.py": STORE,
    "lantern/intake.py": INTAKE,
    "lantern/tracking.py": TRACKING,
    "migrations/0007_parcel_event.sql": MIGRATION,
    "samples/norrpost-week.jsonl": _week(),
    "tests/__init__.py": "",
}
"""Path -> content of each file that is there before the story begins."""
