"""What presets and plain programs share: one call's values, an answer's values, and reading what a failure says.

Invariant: no message holds words of the prompt or of an answer, so a program's own words are matched, never repeated.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from obsmem.core.errors import WorkerError
from obsmem.core.refusals import read_refusal
from obsmem.workers.command_process import Folder


class Call(NamedTuple):
    """What is asked for in one call. ``flags`` and ``facts`` tell what the installed version knows; ``environment`` may
    still be changed."""

    folder: Folder
    environment: dict[str, str]
    model: str
    answer_tokens: int
    schema: Mapping[str, Any]
    flags: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = {}


class Output(NamedTuple):
    """What a program that ended by itself left: its status and its words."""

    status: int
    stdout: str
    stderr: str
    folder: Folder


class Answer(NamedTuple):
    """The model's words, and what the program says about them."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    model: str = ""


class Trouble(NamedTuple):
    """One kind of failure: words that give it away, its fault, and our sentence, with {name} for the worker's name."""

    words: str
    fault: str
    sentence: str


LIMITED = (
    "The worker {name} is over its limit. It is left alone until that is over; name another worker after it in "
    "'workers' to bridge the time."
)
BUSY = "The worker {name} cannot reach its model, or the model is overloaded. It will be asked again later."
LOGGED_OUT = "The worker {name} is not logged in, or its key is refused. {remedy}"
NO_MODEL = "The worker {name} knows no model of that name. Correct 'model' in its entry of 'workers'."

# What programs of any kind say, for those that no preset knows.
TROUBLES = (
    Trouble(r"rate.?limit|too many requests|\b429\b|quota|usage limit", "unavailable", LIMITED),
    Trouble(
        r"\b401\b|unauthori[sz]ed|invalid.{0,20}api.?key|api.?key.{0,40}(?:missing|not found|not set|required)|no key found|"
        r"not logged in|please log ?in",
        "settings",
        LOGGED_OUT.replace("{remedy}", "Log in with that program, or name its key's variable in 'environment'."),
    ),
    Trouble(r"(?:unknown|invalid) model|model.{0,80}not found|no such model", "settings", NO_MODEL),
    Trouble(
        r"overloaded|\b50[0234]\b|\b529\b|connection (?:refused|reset|error)|timed? ?out|unreachable|could not connect",
        "unavailable",
        BUSY,
    ),
)


def failure(name: str, text: str, troubles: Iterable[Trouble], otherwise: str) -> WorkerError:
    """The error for a call that failed with these words: a refusal of a prompt that is too long, the first trouble
    whose words occur, or ``otherwise``, after which the worker is left alone for a while."""
    refused = read_refusal(text)
    if refused is not None:
        return WorkerError(
            f"The prompt does not fit into the window of the worker {name}. Less will be sent.",
            retry=True,
            fault="overflow",
            window=refused[0],
            counted=refused[1],
        )
    for trouble in troubles:
        if re.search(trouble.words, text, re.IGNORECASE):
            wait = wait_in(text) if trouble.fault == "unavailable" else 0.0
            message = trouble.sentence.replace("{name}", name)
            return WorkerError(message, retry=trouble.fault != "settings", fault=trouble.fault, wait=wait)
    return WorkerError(otherwise, retry=True, fault="unavailable")


def json_lines(text: str) -> list[dict[str, Any]]:
    """The objects among the lines of a program's output; warnings stand between them."""
    found = []
    for line in text.split("\n"):  # splitlines breaks at more than that, inside an answer too
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def unlocked(name: str, what: str) -> WorkerError:
    """The error for a program that shows that a lock did not hold."""
    return WorkerError(
        f"The worker {name} is not locked down: {what}. Its answer was thrown away. Report this with the program's "
        "version, and name another worker meanwhile.",
        fault="settings",
    )


_EPOCH = re.compile(r"(?:\||reset\w*\D{1,12})(1[6-9]\d{8}|2\d{9})\b", re.IGNORECASE)
_AFTER = re.compile(r"retry.after\W{1,6}(\d+(?:\.\d+)?)\b", re.IGNORECASE)
_IN = re.compile(r"(?:again|resets?|retry(?:ing)?) in ((?:~?\d+(?:\.\d+)? ?[a-z]+,? ?(?:and )?){1,4})", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|d)[a-z]*", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:resets?|again)(?: at)? (\d{1,2})(?::(\d\d))? ?(am|pm)?\b(?: \(([A-Za-z_]+/[A-Za-z_/]+)\))?", re.IGNORECASE
)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def wait_in(text: str, now: float | None = None) -> float:
    """The seconds that a text asks us to wait: until a moment, for a span, or until an hour of the day; 0 where it does not say."""
    now = time.time() if now is None else now
    if found := _EPOCH.search(text):
        return max(0.0, int(found[1]) - now)
    if found := _AFTER.search(text):
        return float(found[1])
    if found := _IN.search(text):
        return sum(float(number) * _SECONDS[unit.lower()] for number, unit in _SPAN.findall(found[1]))
    found = _CLOCK.search(text)
    if found and (found[2] or found[3]):
        return _until(int(found[1]), int(found[2] or 0), (found[3] or "").lower(), found[4] or "", now)
    return 0.0


def _until(hour: int, minute: int, half: str, zone: str, now: float) -> float:
    """Seconds until a time of day comes round, in the zone that is named or the machine's own."""
    place: tzinfo | None = None
    if zone:
        from zoneinfo import ZoneInfo

        try:
            place = ZoneInfo(zone)
        except (OSError, ValueError, KeyError):
            place = None  # no such zone on this machine
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        return 0.0
    here = datetime.fromtimestamp(now, place)
    then = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if then <= here:
        then += timedelta(days=1)
    return (then - here).total_seconds()
