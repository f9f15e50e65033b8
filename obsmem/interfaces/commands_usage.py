"""The command that says what models cost: usage."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from obsmem.interfaces.report import many, say, say_json, table
from obsmem.store.spending import Calls
from obsmem.tasks.store import open_store
from obsmem.tasks.usage import Model, ask_again, models, today, usage

HEAD = ("calls", "failed", "tokens in", "tokens out", "seconds")
FREE = "extractive"  # nobody pays for it: it is left out of the tables for people


def run_usage(arguments: argparse.Namespace) -> int:
    """``usage [--days N] [--ask-again]``: calls, tokens, time and outcome of models, by day, worker and session."""
    if arguments.ask_again:
        with open_store() as store:
            ask_again(store)
    with open_store(readonly=True) as store:
        rows, spent, known = usage(store, arguments.days), today(store), models(store)
    if arguments.json:
        say_json(
            {
                "today": spent._asdict(),
                "models": [{**one._asdict(), "known": one.known._asdict()} for one in known],
                "calls": [one._asdict() for one in rows],
            }
        )
        return 0
    say(spent.words())
    for one in known:
        say(_about(one))
    paid = [row for row in rows if row.worker != FREE]
    if not paid:
        say(f"No model was asked in the last {many(arguments.days, 'day')}.")
        return 0
    for title, key in (("day", _day), ("worker", _worker), ("session", _session), ("outcome", _outcome)):
        say("")
        for line in table(_sums(paid, key), (title, *HEAD)):
            say(line)
    return 0


def _about(model: Model) -> str:
    told = [f"paid {model.billing}"]
    if model.known.window:
        told.append(f"window {model.known.window} (learned)")
    if model.known.ratio != 1:
        told.append(f"counts {model.known.ratio:.2f} of our estimate")
    if model.is_left_alone:
        until = time.strftime("%H:%M", time.localtime(model.known.until / 1000))
        told.append(f"left alone until {until}: {model.known.why}")
    return f"{model.name}: {', '.join(told)}"


def _day(row: Calls) -> str:
    return row.day


def _worker(row: Calls) -> str:
    return row.worker


def _session(row: Calls) -> str:
    return row.session


def _outcome(row: Calls) -> str:
    return f"{row.task}: {row.outcome}"


def _sums(rows: Sequence[Calls], key: Callable[[Calls], str]) -> list[tuple[str, ...]]:
    names = dict.fromkeys(key(row) for row in rows)
    found = []
    for name in names:
        alike = [row for row in rows if key(row) == name]
        failed = sum(row.calls for row in alike if row.outcome.startswith("failed"))
        sums = (sum(row.tokens_in for row in alike), sum(row.tokens_out for row in alike))
        seconds = sum(row.ms for row in alike) / 1000
        found.append((name, str(sum(row.calls for row in alike)), str(failed), *map(str, sums), f"{seconds:.1f}"))
    return found
