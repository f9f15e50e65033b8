"""The command that shows what shortening does: reduce. It changes nothing, and keeps nothing."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable

from obsmem.core.errors import UsageError
from obsmem.core.reduce import ALL_RULES, Rules, is_bypassed, reduce
from obsmem.core.tokens import estimate
from obsmem.interfaces.report import many, say, say_json, warn
from obsmem.system import config as configuration
from obsmem.tasks.reduce_stats import Saved, Stats, reduce_stats
from obsmem.tasks.store import open_store

DAY = 86_400_000  # milliseconds
MOST_INPUT = 64 << 20  # bytes of what is looked at
MOST_LISTED = 15


def run_reduce(arguments: argparse.Namespace) -> int:
    """``reduce [FILE|-] --command LINE``: what becomes of an output; ``--stats``: what was saved; ``--rules``: the rules."""
    if arguments.rules:
        return _list_rules(as_json=arguments.json)
    if arguments.stats:
        with open_store(readonly=True) as store:
            stats = reduce_stats(store, int(time.time() * 1000) - arguments.days * DAY)
        return _show_stats(stats, arguments.days, as_json=arguments.json)
    return _try(arguments)


def _try(arguments: argparse.Namespace) -> int:
    if arguments.file == "-" and sys.stdin.isatty():
        raise UsageError(
            "Nothing to shorten: name a file, or pipe in what a command printed. '--stats' tells what was saved."
        )
    text = _read(arguments.file).decode("utf-8", "replace")
    config = configuration.load(os.getcwd())
    rules = Rules(config["reduce_minimum_bytes"], frozenset(config["reduce_off"]), tuple(config["reduce_exclude"]))
    reduced = reduce(arguments.line, text, arguments.exit, rules)
    shown = reduced.text if reduced is not None else text
    tokens = (estimate(text), estimate(shown))
    if arguments.json:
        figures = reduced._asdict() if reduced is not None else {"text": text, "rule": ""}
        say_json({**figures, "whole_tokens": tokens[0], "kept_tokens": tokens[1], "shortened": reduced is not None})
        return 0
    sys.stdout.write(shown)
    sys.stdout.flush()
    if reduced is None:
        why = "its command asks for all of it" if is_bypassed(arguments.line) else "no rule makes it a fifth shorter"
        warn(f"It stays as it is: {why}.")
    else:
        warn(
            f"{reduced.rule}: {reduced.whole_bytes:,} → {reduced.kept_bytes:,} bytes, about {tokens[0]:,} → {tokens[1]:,} tokens, "
            f"{many(reduced.folded_lines, 'line')} folded."
        )
    return 0


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read(MOST_INPUT)
    with open(path, "rb") as file:
        return file.read(MOST_INPUT)


def _list_rules(*, as_json: bool) -> int:
    repeat = "an output that stands in the conversation already, byte for byte"
    found = [{"name": one.name, "commands": list(one.commands), "about": one.about} for one in ALL_RULES]
    found.append({"name": "repeat", "commands": ["*"], "about": repeat})
    if as_json:
        say_json(found)
        return 0
    for one in found:
        say(f"{one['name']:12} {one['about']}")
    return 0


def _show_stats(stats: Stats, days: int, *, as_json: bool) -> int:
    if as_json:
        say_json(
            {
                "days": days,
                "total": stats.total._asdict(),
                "rules": [one._asdict() for one in stats.rules],
                "commands": [one._asdict() for one in stats.heads],
                "left": dict(stats.left),
            }
        )
        return 0
    if not stats.total.outputs:
        warn(
            f"Nothing was shortened in the last {many(days, 'day')}. The key 'reduce' of the configuration switches it on."
        )
        return 0
    say(f"last {many(days, 'day')}: {_line(stats.total)}")
    _list("by rule", stats.rules)
    _list("by command", stats.heads)
    if stats.left:
        say("left as they are: " + ", ".join(f"{count} ({json.dumps(why)})" for why, count in stats.left))
    return 0


def _list(title: str, found: Iterable[Saved]) -> None:
    say(f"{title}:")
    known = list(found)
    for one in known[:MOST_LISTED]:
        say(f"  {one.name:24} {_line(one)}")
    if len(known) > MOST_LISTED:
        say(f"  and {len(known) - MOST_LISTED} more")


def _line(one: Saved) -> str:
    return (
        f"{many(one.outputs, 'output')}, {one.whole_bytes:,} → {one.kept_bytes:,} bytes, {one.whole_tokens:,} → "
        f"{one.kept_tokens:,} tokens (−{one.share:.0%}), {one.recalled} recalled"
    )
