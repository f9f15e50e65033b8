"""The command ``explain``: what was decided about a session, why its last block is as it is, why a note exists. It writes nothing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core.dates import read_date
from obsmem.core.errors import UsageError
from obsmem.core.ids import shorten
from obsmem.core.model import Reason
from obsmem.interfaces.report import many, say, say_json, short, table
from obsmem.store.archive import StoredSession
from obsmem.system.local_time import local_clock
from obsmem.tasks.explain import (
    LOGGED,
    Given,
    Story,
    count_reasons,
    find_note,
    history,
    last_block,
    lines_of,
    reason_value,
    story_of,
)
from obsmem.tasks.here import find_here
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import Store, open_store

MINUTE = 60_000  # milliseconds: a date that names no more than this means from then on
_ASIDE = ("routine", "times", "first_at", "first_seq")
_GIVEN = {
    "transcript": "as it stands in the transcript",
    "file": "as a hook gave it; the transcript does not show it",
    "waiting": "not delivered yet: it waits",
}


def run_explain(arguments: argparse.Namespace) -> int:
    """``explain SESSION [WHEN]``: decisions in order, a note's story, or with ``--last-block`` the last block."""
    when = " ".join(arguments.when).strip()
    with open_store(readonly=True) as store:
        stored = _session(store, arguments.session)
        if arguments.last_block or when.lower() == "last block":
            given = last_block(store, stored)
            return _report_json(_block_value(stored, given)) if arguments.json else _say_block(stored, given)
        note = find_note(store, stored, when) if when else None
        if note is not None:
            story = story_of(store, stored, note)
            return _report_json(story._asdict()) if arguments.json else _say_story(story)
        since, until = _bounds(when)
        happened = history(store, stored, since, until)
    if arguments.json:
        return _report_json([one._asdict() for one in happened])
    for one in happened:
        say(f"{local_clock(one.at)}  {one.what:13} {_line(one.what, one.why, one.numbers)}")
    if not happened:
        say(f"Nothing was decided about session {stored.session.handle}{' then' if when else ' yet'}.")
    return 0


def _session(store: Store, name: str) -> StoredSession:
    here = None if name else find_here(store).session
    return here or find_session(store, name)


def _bounds(when: str) -> tuple[int, int]:
    """The span that somebody means: a day or more is meant whole, of a moment everything since. Raises UsageError."""
    if not when:
        return 0, 0
    span = read_date(when, int(time.time() * 1000), local_clock)
    if span is None:
        raise UsageError(
            f"WHEN is a date (2026-03-01, yesterday, '3 hours ago', 14:05), the id of a note of the session, or: last block. "
            f"{when!r} is none of them."
        )
    return span.start, 0 if span.end - span.start <= MINUTE else span.end


def _report_json(value: Any) -> int:
    say_json(value)
    return 0


def _line(what: str, why: str, numbers: Mapping[str, Any]) -> str:
    """A decision in one line: why, and every number by its name."""
    pairs = [
        f"{name} {short(value)}" for name, value in numbers.items()
        if name not in _ASIDE and not (name in ("tokens_in", "tokens_out") and not value)
    ]  # fmt: skip
    if numbers.get("times", 1) > 1:
        pairs.append(f"{numbers['times']} times since {local_clock(numbers['first_at'])}")
    return " · ".join([why, *pairs]) if what != LOGGED else f"{why}: {' · '.join(pairs)}"


def _say_block(stored: StoredSession, given: Given) -> int:
    handle = stored.session.handle
    of_whom = f", the handoff of session {given.handed_by}" if given.handed_by else ""
    say(f"block {given.delivery} of session {handle}{of_whom}, {_GIVEN[given.source]} ({local_clock(given.at)})")
    missing = [str(number) for number in range(1, given.of + 1) if number not in given.parts]
    if missing:
        say(f"part {', '.join(missing)} of {given.of} did not arrive")
    say("")
    for text in given.parts.values():
        say(text)
    say("")
    lines = lines_of(given)
    say(
        f"why each of its {many(len(lines), 'line')} is there"
        + ("" if given.reasons else " (ranks are kept no longer)")
    )
    about = given.handed_by or handle  # whose entries its lines show
    for row in _rows(about, given, lines):
        say(row)
    if given.reasons is not None:
        _say_left_out(about, given)
    return 0


def _say_left_out(handle: str, given: Given) -> None:
    reasons = given.reasons
    assert reasons is not None
    say("")
    left = len(reasons.left_out) + len(reasons.hidden) + reasons.more
    counted = ", ".join(f"{why} {count}" for why, count in count_reasons(reasons).items())
    say(f"left out: {left}" + (f" ({counted})" if counted else ""))
    for row in _rows(handle, given, reasons.left_out, why=True):
        say(row)
    for id_, why in reasons.hidden:
        say(f"  [{id_}] {why}" + (f": {given.dropped[id_]}" if why == "dropped" and given.dropped.get(id_) else ""))
    if reasons.more:
        say(f"  and {reasons.more} more")


def _rows(handle: str, given: Given, lines: Sequence[Reason], *, why: bool = False) -> list[str]:
    """A table of lines: where, why there, what it costs, whose words, which ids recall takes."""
    if not lines:
        return []
    rows = []
    for one in lines:
        value = reason_value(one, handle, given.notes)
        told = " ".join(str(value[name]) for name in ("relevance", "evidence", "grounding") if name in value)
        ids = " ".join([*one.ids, *value["entries"][:3]])
        row = [one.section, " ".join(f"{number:g}" for number in one.rank), str(one.tokens), told, ids, one.text[:60]]
        rows.append([one.why, *row] if why else row)
    head = ["section", "rank", "tokens", "note", "recall", "line"]
    return ["  " + line for line in table(rows, ["why", *head] if why else head)]


def _block_value(stored: StoredSession, given: Given) -> dict[str, Any]:
    handle, reasons = given.handed_by or stored.session.handle, given.reasons
    return {
        "session": stored.session.handle, "delivery": given.delivery, "source": given.source, "at": given.at, "of": given.of,
        "handed_by": given.handed_by, "parts": {str(number): text for number, text in given.parts.items()},
        "reasons_kept": reasons is not None,
        "lines": [reason_value(one, handle, given.notes) for one in lines_of(given)],
        "left_out": [reason_value(one, handle, given.notes) for one in reasons.left_out] if reasons else [],
        "hidden": [{"id": id_, "why": why, "tombstone": given.dropped.get(id_, "") if why == "dropped" else ""}
                   for id_, why in reasons.hidden] if reasons else [],
        "more": reasons.more if reasons else 0,
    }  # fmt: skip


def _say_story(story: Story) -> int:
    note = story.note.note
    say(f"[{shorten([note.id])[note.id]}] {note.relevance} {note.evidence} {note.grounding}  {note.text}")
    say(f"  stands on {' '.join(note.entry_ids)} (recall prints them)")
    by = f" by {story.worker}" if story.worker else ""
    say(
        f"  noted {local_clock(story.note.recorded_at)}{by}, of entries {story.note.first_seq} to {story.note.last_seq} of "
        f"session {story.note.session}"
    )
    if story.observed is not None:
        say(f"  {story.observed.what}: {_line(story.observed.what, story.observed.why, story.observed.numbers)}")
    if note.missing:
        say(f"  the cited entries do not have: {', '.join(note.missing[:6])}")
    if story.dropped:
        say(f"  dropped {local_clock(story.dropped_at)}: {story.dropped}")
    say(f"  not visible: {story.hidden}" if story.hidden else "  visible now")
    if story.in_block:
        say(f"  in the last block ({story.delivery}): {story.in_block}")
    elif story.delivery:
        say(f"  why it does or does not stand in the last block ({story.delivery}) is kept no longer")
    return 0
