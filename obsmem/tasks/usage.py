"""What models were asked, what it took, and what is left of the day; which of them may be asked now.

Invariant: only counts and times, never a word of what was asked.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from obsmem.core.errors import ObsmemError
from obsmem.store.spending import Calls, Knowledge, Spending
from obsmem.tasks.ask import BUDGET, cascade, midnight
from obsmem.tasks.store import Store
from obsmem.workers.base import as_model

DAY = 86_400_000  # milliseconds


class Today(NamedTuple):
    """What was spent since midnight, and the day's limits (None: none). ``paused`` once they kept a call from being made."""

    calls: int
    tokens: int
    most_calls: int | None
    most_tokens: int | None
    paused: bool

    def words(self) -> str:
        """``12 of 300 calls, 18200 of 1000000 tokens today``."""
        calls, tokens = (
            f"{spent} of {most}" if most is not None else str(spent)
            for spent, most in ((self.calls, self.most_calls), (self.tokens, self.most_tokens))
        )
        paused = "; paused: budget, extractive notes until midnight" if self.paused else ""
        return f"{calls} calls, {tokens} tokens today{paused}"


class Model(NamedTuple):
    """A configured model: what is known of it, whether it may be asked now, and how its calls are paid for."""

    name: str
    billing: str
    known: Knowledge
    is_left_alone: bool


def today(store: Store) -> Today:
    """What was spent today and what may be."""
    spending, now = Spending(store.memory.connection), int(time.time() * 1000)
    calls, tokens = spending.spent(midnight(now))
    limits = store.config["worker_calls_per_day"], store.config["worker_tokens_per_day"]
    return Today(calls, tokens, *limits, paused=spending.known(BUDGET).until > now)


def models(store: Store) -> list[Model]:
    """The configured models, in the order in which they are asked. Raises ConfigError."""
    spending, now = Spending(store.memory.connection), int(time.time() * 1000)
    found = []
    for worker in cascade(store, strict=True):
        model = as_model(worker)
        if model is not None:
            known = spending.known(model.NAME)
            found.append(Model(model.NAME, model.billing, known, known.until > now))
    return found


def ask_again(store: Store) -> None:
    """End whatever keeps a configured model from being asked: somebody mended it. The day's limits stay. Raises
    ConfigError."""
    for model in models(store):
        Spending(store.memory.connection).trust_again(model.name)


def usage(store: Store, days: int) -> list[Calls]:
    """Calls of the last ``days`` days, today among them."""
    return Spending(store.memory.connection).calls(midnight(int(time.time() * 1000) - (days - 1) * DAY))


def status_value(store: Store) -> dict[str, Any]:
    """What ``status`` says of models; a configuration that is wrong is said, not raised."""
    try:
        known = [{"name": one.name, "billing": one.billing, **one.known._asdict()} for one in models(store)]
    except ObsmemError as error:
        return {"models": [], "wrong": str(error), "today": today(store)._asdict()}
    return {"models": known, "wrong": "", "today": today(store)._asdict()}
