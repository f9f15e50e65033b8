"""What the agent of the demo's story writes into the project of ``story_project``: new files, and what edits replace.

Owns these texts. Invariant: the faults in them are meant, the story's own tests find each; what an edit replaces is whole
lines, because one harness edits by patches.
"""

from __future__ import annotations

SIGNATURE = '''\
"""Whether a call really comes from Norrpost. The rules are in docs/norrpost.md."""

import hashlib
import hmac

TOLERANCE_SECONDS = 300


def sign(secret: str, at: int, body: bytes) -> str:
    """The value of the header X-Norrpost-Signature."""
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def fields(header: str) -> dict[str, str]:
    """What a header holds; a piece without '=' is left out."""
    return dict(piece.split("=", 1) for piece in header.split(",") if "=" in piece)


def is_valid(secret: str, header: str, body: bytes, now: float) -> bool:
    """True for a call that was signed with our secret in the last TOLERANCE_SECONDS."""
    found = fields(header)
    if not found.get("t", "").isdecimal() or abs(now - int(found["t"])) > TOLERANCE_SECONDS:
        return False
    expected = fields(sign(secret, int(found["t"]), body))["v1"]
    return hmac.compare_digest(expected, found.get("v1", ""))
'''
COMPARISON = '    return hmac.compare_digest(expected, found.get("v1", ""))\n'
COMPARISON_OF_BYTES = '    return hmac.compare_digest(expected.encode(), found.get("v1", "").encode())\n'

TEST_SIGNATURE = """\
import unittest

from lantern.signature import TOLERANCE_SECONDS, is_valid, sign

SECRET, NOW, BODY = "winter", 1_772_438_400, b'{"eventId":"N-1"}'


class SignatureTest(unittest.TestCase):
    def test_what_we_signed_is_valid(self) -> None:
        self.assertTrue(is_valid(SECRET, sign(SECRET, NOW, BODY), BODY, NOW))

    def test_another_body_is_not(self) -> None:
        self.assertFalse(is_valid(SECRET, sign(SECRET, NOW, BODY), b"{}", NOW))

    def test_an_old_call_is_not(self) -> None:
        self.assertFalse(is_valid(SECRET, sign(SECRET, NOW, BODY), BODY, NOW + TOLERANCE_SECONDS + 1))

    def test_a_header_of_any_text_is_not(self) -> None:
        for header in ("", "v1=abc", "t=soon,v1=abc", f"t={NOW}", f"t={NOW},v1=åäö"):
            with self.subTest(header=header):
                self.assertFalse(is_valid(SECRET, header, BODY, NOW))
"""

NORRPOST = '''\
"""Norrpost's events as ours."""

import json
import logging
from datetime import datetime, timezone

from lantern.store import ParcelEvent

log = logging.getLogger("lantern.norrpost")

STATUS = {
    "PICKED_UP": "accepted",
    "ARRIVED_AT_HUB": "in_transit",
    "DEPARTED_HUB": "in_transit",
    "CUSTOMS_HOLD": "held",
    "OUT_FOR_DELIVERY": "out_for_delivery",
    "DELIVERED": "delivered",
    "RETURNED": "returned",
}


def to_event(body: bytes) -> ParcelEvent:
    """Raises ValueError where something that we need is missing or broken."""
    value = json.loads(body)
    try:
        kind, at = str(value["eventType"]), datetime.fromisoformat(value["occurredAt"])
        status = STATUS.get(kind, "unknown")
        if status == "unknown":
            log.warning("norrpost: unknown type %s", kind)
        moment = at.astimezone(timezone.utc).isoformat()
        return ParcelEvent("norrpost", str(value["eventId"]), str(value["shipmentNo"]), status, moment)
    except (KeyError, TypeError) as error:
        raise ValueError(f"norrpost: {error}") from error
'''

ROUTE_BEFORE = '''\
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
'''
ROUTE = '''\
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from lantern import norrpost, settings
from lantern.signature import is_valid
from lantern.store import EventStore, ParcelEvent

log = logging.getLogger("lantern.intake")


def answer(path: str, headers: Mapping[str, str], body: bytes, store: EventStore, address: str) -> int:
    """The status code for one call of a carrier."""
    if path == "/hooks/fjordpost":
        return fjordpost_call(body, store)
    if path == "/hooks/norrpost":
        return norrpost_call(headers, body, store)
    log.info("no route %s for %s", path, address)
    return 404


def norrpost_call(headers: Mapping[str, str], body: bytes, store: EventStore) -> int:
    """401 pages Norrpost's on-call, so it is for a wrong signature alone."""
    if not is_valid(settings.NORRPOST_SECRET, headers.get("X-Norrpost-Signature", ""), body, time.time()):
        return 401
    try:
        event = norrpost.to_event(body)
    except ValueError:
        return 409
    store.append(event)
    return 204
'''

TEST_INTAKE = """\
import json
import time
import unittest
from unittest import mock

from lantern import settings
from lantern.intake import answer
from lantern.signature import sign
from lantern.store import EventStore

USUAL = {"eventId": "N-1", "shipmentNo": "L-204", "eventType": "DELIVERED", "occurredAt": "2026-03-02T09:15:00+01:00"}


class NorrpostRouteTest(unittest.TestCase):
    def setUp(self) -> None:
        self.store = EventStore(":memory:")
        secret = mock.patch.object(settings, "NORRPOST_SECRET", "winter")
        secret.start()
        self.addCleanup(secret.stop)

    def call(self, body: bytes, secret: str = "winter") -> int:
        headers = {"X-Norrpost-Signature": sign(secret, int(time.time()), body)}
        return answer("/hooks/norrpost", headers, body, self.store, "192.0.2.7")

    def test_a_signed_event_is_stored(self) -> None:
        self.assertEqual(self.call(json.dumps(USUAL).encode()), 204)
        self.assertEqual([event.status for event in self.store.timeline("L-204")], ["delivered"])

    def test_a_repeated_delivery_is_stored_once(self) -> None:
        self.assertEqual([self.call(json.dumps(USUAL).encode()) for _ in range(2)], [204, 204])
        self.assertEqual(len(self.store.timeline("L-204")), 1)

    def test_an_unknown_type_is_stored_as_unknown(self) -> None:
        with self.assertLogs("lantern.norrpost", "WARNING"):
            self.call(json.dumps({**USUAL, "eventType": "PARCEL_WEIGHED"}).encode())
        self.assertEqual(self.store.timeline("L-204")[0].status, "unknown")

    def test_a_wrong_signature_is_401(self) -> None:
        self.assertEqual(self.call(json.dumps(USUAL).encode(), secret="summer"), 401)

    def test_a_body_that_cannot_be_used_is_409(self) -> None:
        for body in (b"not json", b"{}", b"[]"):
            self.assertEqual(self.call(body), 409)
"""

APPEND = """\
    def append(self, event: ParcelEvent) -> None:
        with self.connection:
            self.connection.execute("INSERT INTO parcel_event VALUES (?, ?, ?, ?, ?)", astuple(event))
"""
APPEND_ONCE = '''\
    def append(self, event: ParcelEvent) -> bool:
        """False where the carrier sent this event before."""
        with self.connection:
            done = self.connection.execute("INSERT OR IGNORE INTO parcel_event VALUES (?, ?, ?, ?, ?)", astuple(event))
        return done.rowcount == 1
'''

TIMELINE_BY_RANK = """\
        question = "SELECT * FROM parcel_event WHERE parcel_id = ? ORDER BY rank, at"
"""
TIMELINE = """\
        question = "SELECT * FROM parcel_event WHERE parcel_id = ? ORDER BY at"
"""
LAST_EVENT = """\
from lantern.store import EventStore


def current_status(store: EventStore, parcel_id: str) -> str:
    events = store.timeline(parcel_id)
    return events[-1].status if events else "unknown"
"""
LAST_FINAL = """\
from lantern.store import EventStore

FINAL = ("delivered", "returned")  # a scan that comes later changes nothing of these


def current_status(store: EventStore, parcel_id: str) -> str:
    events = store.timeline(parcel_id)
    final = [event for event in events if event.status in FINAL]
    return (final or events)[-1].status if events else "unknown"
"""

TEST_TRACKING = """\
import unittest

from lantern.store import EventStore, ParcelEvent
from lantern.tracking import current_status


class TrackingTest(unittest.TestCase):
    def shown(self, *statuses: str) -> str:
        store = EventStore(":memory:")
        for hour, status in enumerate(statuses):
            store.append(ParcelEvent("norrpost", f"N-{hour}", "L-204", status, f"2026-03-02T{hour:02d}:00:00+00:00"))
        return current_status(store, "L-204")

    def test_the_last_event_counts(self) -> None:
        self.assertEqual(self.shown("accepted", "in_transit", "out_for_delivery"), "out_for_delivery")

    def test_a_late_scan_does_not_undo_a_delivery(self) -> None:
        self.assertEqual(self.shown("accepted", "delivered", "in_transit"), "delivered")

    def test_a_return_after_a_delivery_is_shown(self) -> None:
        self.assertEqual(self.shown("delivered", "in_transit", "returned"), "returned")
"""

REPLAY = '''\
"""Takes a file of Norrpost events, one JSON object in each line, and counts what became of them."""

import logging
import sys
from collections import Counter

from lantern import norrpost
from lantern.store import EventStore


def replay(lines: list[bytes], store: EventStore) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        try:
            event = norrpost.to_event(line)
        except ValueError:
            print(f"line {number} cannot be used")
            counts["unusable"] += 1
            continue
        counts["new" if store.append(event) else "repeated"] += 1
        counts["of unknown type"] += event.status == "unknown"
    return counts


if __name__ == "__main__":
    logging.disable()
    with open(sys.argv[1], "rb") as file:
        found = file.read().splitlines()
    print(f"{len(found)} lines:", ", ".join(f"{n} {name}" for name, n in replay(found, EventStore(":memory:")).items()))
'''

LIMITS = '''\
"""How often one address may call. Kept in memory: one process serves."""

from collections import deque

PER_MINUTE = 30


class Limit:
    def __init__(self) -> None:
        self._calls: dict[str, deque[float]] = {}

    def allows(self, address: str, now: float) -> bool:
        """Count a call; False where this address has had its PER_MINUTE calls of the last 60 s."""
        calls = self._calls.setdefault(address, deque())
        while calls and calls[0] <= now - 60:
            calls.popleft()
        if len(calls) >= PER_MINUTE:
            return False
        calls.append(now)
        return True
'''
TEST_LIMITS = """\
import unittest

from lantern.limits import PER_MINUTE, Limit


class LimitTest(unittest.TestCase):
    def test_one_call_too_many_is_refused_and_a_minute_later_taken(self) -> None:
        limit = Limit()
        self.assertEqual([limit.allows("192.0.2.7", 0) for _ in range(PER_MINUTE + 1)], [True] * PER_MINUTE + [False])
        self.assertTrue(limit.allows("192.0.2.7", 60))

    def test_another_address_has_its_own_count(self) -> None:
        limit = Limit()
        for _ in range(PER_MINUTE):
            limit.allows("192.0.2.7", 0)
        self.assertTrue(limit.allows("192.0.2.8", 0))
"""

ROUTES = ROUTE[ROUTE.index("from lantern.signature") : ROUTE.index("        return fjordpost_call")]
LIMITED_ROUTES = (
    ROUTES.replace("from lantern.sig", "from lantern.limits import Limit\nfrom lantern.sig")
    .replace('intake")\n', 'intake")\nlimit = Limit()\n')
    .replace("    if path", "    if not limit.allows(address, time.time()):\n        return 429\n    if path")
)
