"""``replay --policy``: sessions of the store run again under other settings, both columns side by side. The store is only read."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from obsmem.core.decisions import BLOCK, DROP, OBSERVE, REFLECT, WAIT, Decision
from obsmem.core.errors import UsageError
from obsmem.interfaces.report import many, say, say_json, table
from obsmem.system import config as configuration
from obsmem.system.local_time import local_clock
from obsmem.tasks.replay_stored import POLICY, Compared, Pair, replay_stored
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store

# Kind of decision -> the numbers that its line in the comparison shows.
_TOLD: Mapping[str, tuple[str, ...]] = {
    OBSERVE: ("clock", "threshold", "first", "last", "cap", "notes", "worker", "outcome"),
    WAIT: ("clock", "threshold", "covered"),
    REFLECT: ("observed", "threshold", "reflections"),
    DROP: ("pool", "target", "most", "dropped"),
    BLOCK: ("budget", "tokens", "notes_shown", "left_out"),
}


def run_policy(arguments: argparse.Namespace) -> int:
    """``replay --policy KEY=VALUE… SESSION…``."""
    words = [*arguments.policy, *arguments.paths]
    names = [word for word in words if "=" not in word or os.path.exists(word)]
    policy = _read_policy([word for word in words if word not in names])
    if arguments.keep or arguments.parse_only or arguments.at or arguments.harness or arguments.budget:
        raise UsageError(
            "--policy runs whole sessions of the store again and keeps nothing: leave --keep, --parse-only, --at, --harness and "
            "--budget out (the block's size is --policy budget_tokens=N)."
        )
    if not names:
        raise UsageError("Name a session after --policy. 'observational-memory sessions' lists them.")
    if "workers" in policy and not arguments.workers:
        raise UsageError("--policy workers=… asks models, which may cost: add --workers to allow it.")
    values = []
    with open_store(readonly=True) as store:
        for name in names:
            stored = find_session(store, name)
            folder = stored.session.cwd if os.path.isdir(stored.session.cwd) else ""
            config = configuration.load(folder)
            compared = replay_stored(store, stored, config, policy, local_clock, workers=arguments.workers)
            if arguments.json:
                values.append(_value(compared))
            else:
                _say(compared, workers=arguments.workers)
    if arguments.json:
        say_json(values)
    return 0


def _read_policy(words: list[str]) -> dict[str, Any]:
    """The settings that ``KEY=VALUE`` words name. Raises UsageError for one that a replay does not turn on."""
    policy: dict[str, Any] = {}
    for word in words:
        key, _, text = word.partition("=")
        if key not in POLICY:
            raise UsageError(f"{key!r} has no part in what a replay decides. What has: {', '.join(POLICY)}.")
        policy[key] = configuration.read_value(text, f"--policy {key}")
    return policy


def _value(compared: Compared) -> dict[str, Any]:
    return {
        "session": compared.stored.session.handle, "policy": compared.policy, "decisions_recorded": compared.was_recorded,
        "equal": len(compared.pairs) - compared.different, "different": compared.different, "not_replayed": compared.apart,
        "answers_reused": compared.reused,
        "recorded": compared.recorded._asdict(), "replayed": compared.replayed._asdict(),
        "pairs": [
            {"equal": pair.equal, "recorded": _decision(pair.recorded), "replayed": _decision(pair.replayed)}
            for pair in compared.pairs
        ],
    }  # fmt: skip


def _decision(one: Decision | None) -> dict[str, Any] | None:
    return None if one is None else {"what": one.what, "why": one.why, **one.numbers}


def _say(compared: Compared, *, workers: bool) -> None:
    session = compared.stored.session
    under = ", ".join(f"{key} {value}" for key, value in compared.policy.items()) or "the same settings"
    say(f"session {session.handle} ({session.name or session.cwd or session.id}) under {under}")
    if not compared.was_recorded:
        say("  nothing was written down about it: the policy's column takes a look where hooks would have")
    if not workers:
        reused = f"{many(compared.reused, 'recorded answer')} of models used again; the rest by rule"
        say(f"  no model was asked: {reused}" if compared.reused else "  no model was asked: everything by rule")
    rows = [
        [name.replace("_", " "), f"{old:,}", f"{new:,}", "" if old == new else f"{new - old:+,}"]
        for name, old, new in zip(compared.recorded._fields, compared.recorded, compared.replayed, strict=True)
    ]
    for line in table(rows, ["", "recorded", "policy", ""]):
        say("  " + line)
    say(
        f"  decisions: {len(compared.pairs) - compared.different} equal, {compared.different} different"
        + (f"; not replayed: {_counts(compared.apart)}" if compared.apart else "")
    )
    lines = [
        [_seq(pair), _what(pair), "" if pair.equal else "≠", _told(pair.recorded), _told(pair.replayed)]
        for pair in compared.pairs
    ]
    for line in table(lines, ["entry", "decision", "", "recorded", "policy"]) if lines else []:
        say("  " + line)
    say("")


def _seq(pair: Pair) -> str:
    one = pair.recorded or pair.replayed
    return str(one.numbers.get("seq", "")) if one is not None else ""


def _what(pair: Pair) -> str:
    one = pair.recorded or pair.replayed
    return one.what if one is not None else ""


def _told(one: Decision | None) -> str:
    if one is None:
        return "–"
    pairs = [f"{name} {_short(one.numbers[name])}" for name in _TOLD.get(one.what, ()) if name in one.numbers]
    return " ".join([*pairs]) if pairs else one.why


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(sum(number for number in value.values() if isinstance(number, int)))
    return str(value)


def _counts(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in values.items())
