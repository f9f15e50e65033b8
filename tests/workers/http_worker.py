"""Making an http worker for a test, failing with it, and a time that passes only where somebody waits."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from obsmem.core.answers import SCHEMAS
from obsmem.core.errors import WorkerError
from obsmem.core.model import Memory, Request
from obsmem.workers import http
from tests.workers.model_site import Site

PROMPT = "What was decided about the harbour?"
ASK = Request("observe", "abcd", Memory(), prompt=PROMPT, schema=SCHEMAS["observe"])
KEY = "sk-made-up-0123456789"
NOW = 1_800_000_000.0


class FakeTime:
    """Time that passes only where somebody waits; chance always takes its highest."""

    def __init__(self) -> None:
        self.at = 100.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds

    @property
    def clock(self) -> http.Clock:
        return http.Clock(lambda: self.at, lambda: NOW, self.pause, lambda: 1.0)


def worker(place: Site | str, time: FakeTime | None = None, **options: Any) -> Any:
    """A worker for a server or an address, of Chat Completions unless ``options`` say otherwise."""
    url = place if isinstance(place, str) else place.url
    given = {"api": "openai", "url": url, "model": "m", **options}
    return http.make(given, time.clock if time else None)


def failure(made: Any) -> WorkerError:
    """What a worker raises, after a look that neither prompt nor key stand in it."""
    with pytest.raises(WorkerError) as caught:
        made.ask(ASK)
    shown = "".join(traceback.format_exception(caught.value))
    assert PROMPT not in shown
    assert KEY not in shown
    assert str(caught.value).startswith("The worker")
    return caught.value
