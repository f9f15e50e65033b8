"""Servers that are busy, slow or gone: pauses, what they ask for, and the deadline."""

from __future__ import annotations

import socket
from email.utils import formatdate
from typing import Any

import pytest

from obsmem.workers import http
from tests.workers.http_worker import ASK, NOW, FakeTime, failure, worker
from tests.workers.model_site import (
    Played,
    completion,
    drip,
    hang,
    hang_up,
    site,
)


def test_a_busy_server_is_asked_again_after_growing_pauses_and_then_given_up(time: FakeTime) -> None:
    with site(Played(503)) as server:
        error = failure(worker(server, time))
    assert (error.fault, error.retry) == ("unavailable", True)
    assert len(server.seen) == http.MOST_TRIES
    assert time.pauses == [1.0, 2.0, 4.0]


def test_chance_shortens_a_pause_but_never_to_nothing(time: FakeTime) -> None:
    clock = time.clock._replace(chance=lambda: 0.0)
    with site(Played(503), completion()) as server:
        http.make({"api": "openai", "url": server.url, "model": "m"}, clock).ask(ASK)
    assert time.pauses == [0.5]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"retry-after": formatdate(NOW + 9, usegmt=True)}, 9.0),
        ({"retry-after": "30", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": formatdate(NOW - 60, usegmt=True)}, 1.0),
        ({"retry-after": "soon"}, 1.0),
        ({"retry-after": "nan"}, 1.0),
        ({"retry-after": "-3"}, 1.0),
    ],
)
def test_a_server_is_left_alone_as_long_as_it_asks(headers: dict[str, str], seconds: float, time: FakeTime) -> None:
    with site(Played(429, "", headers), completion()) as server:
        assert worker(server, time).ask(ASK).items
    assert time.pauses == [pytest.approx(seconds)]


def test_a_wait_that_is_longer_than_what_is_left_is_handed_back(time: FakeTime) -> None:
    with site(Played(429, "", {"retry-after": "61"})) as server:
        error = failure(worker(server, time, timeout_seconds=60))
    assert (error.fault, error.wait, time.pauses, len(server.seen)) == ("unavailable", 61.0, [], 1)


def test_no_pause_goes_beyond_the_deadline(time: FakeTime) -> None:
    with site(Played(500)) as server:
        failure(worker(server, time, timeout_seconds=2.5))
    assert time.pauses == [1.0]
    assert len(server.seen) == 2


@pytest.mark.parametrize("step", [hang, drip])
def test_a_server_that_never_ends_its_answer_does_not_hold_the_worker(step: Any) -> None:
    with site(step) as server:
        error = failure(worker(server, timeout_seconds=0.3))
    assert error.fault == "unavailable"
    assert "time ran out" in str(error)


def test_a_connection_that_breaks_off_is_made_again(time: FakeTime) -> None:
    with site(hang_up, completion()) as server:
        assert worker(server, time).ask(ASK).items
    assert len(server.seen) == 2


def test_a_server_that_is_not_there_is_unavailable_at_once(time: FakeTime) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = failure(worker(f"http://127.0.0.1:{taken.getsockname()[1]}", time))
    assert (error.fault, time.pauses) == ("unavailable", [])
    assert "nothing listens" in str(error)


def test_an_unknown_host_is_unavailable(monkeypatch: pytest.MonkeyPatch, time: FakeTime) -> None:
    def unknown(*args: Any, **names: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no test may ask a name server
    error = failure(worker("https://model.invalid", time))
    assert error.fault == "unavailable"
    assert "name is unknown" in str(error)
