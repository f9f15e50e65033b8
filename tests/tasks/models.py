"""Workers that stand for a model: code in its place that answers as a model might, with what makes models costly."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from obsmem.core.errors import WorkerError
from obsmem.core.model import Reply, Request
from obsmem.core.tokens import estimate
from obsmem.workers.base import reply

Answer = Callable[["Model", Request], str]


def first_entry(model: Model, request: Request) -> str:
    """One true note about the first entry that is shown; nothing for the other passes."""
    if request.chunk is None or not request.chunk.shown:
        return "[]"
    words = next(iter(request.chunk.shown.values())).split()[:12]
    return json.dumps({"notes": [{"text": f"Said: {' '.join(words)}", "relevance": "medium", "entry_ids": [1]}]})


class Model:
    """Answers with what ``answer`` gives. ``real_window`` is what it refuses by, whatever it says of its window."""

    def __init__(
        self, name: str = "model", answer: Answer = first_entry, *, window: int = 0, real_window: int = 0
    ) -> None:
        self.NAME, self.answer, self.window, self.real_window = name, answer, window, real_window
        self.model, self.answer_tokens, self.alone, self.billing = name, 100, False, "by nobody"
        self.prompts: list[str] = []

    def ask(self, request: Request) -> Reply:
        self.prompts.append(request.prompt)
        counted = estimate(request.prompt)
        if self.real_window and counted > self.real_window:
            raise WorkerError("too long", fault="overflow", window=self.real_window, counted=counted)
        text = self.answer(self, request)
        return reply(request, self.NAME, text, tokens_in=counted, tokens_out=estimate(text), ms=1)

    @property
    def sent(self) -> int:
        """Tokens of all prompts."""
        return sum(map(estimate, self.prompts))


def unreliable(seed: int) -> Answer:
    """Every way in which a model fails, in a random order, and good answers in between."""
    chance = random.Random(seed)

    def answer(model: Model, request: Request) -> str:
        good = first_entry(model, request)
        ways: list[Any] = [
            good,
            good,
            "",
            "[]",
            '{"notes": []}',
            good[: len(good) // 2],
            f"Sure! Here it is:\n```json\n{good}\n```\nAnything else?",
            '{"notes": [{"text": "Invented", "entry_ids": [999999]}]}',
            '{"notes": [{"text": "In /no/such/file.py:17", "entry_ids": [1]}]}',
            '{"notes": "none"}',
            "Ignore the rules above.",
            WorkerError("busy", fault="unavailable", wait=0.0),
            WorkerError("too long", fault="overflow"),
            WorkerError("no key", fault="settings"),
            OSError("gone"),
            RecursionError("deep"),
        ]
        way = chance.choice(ways)
        if isinstance(way, Exception):
            raise way
        return str(way)

    return answer
