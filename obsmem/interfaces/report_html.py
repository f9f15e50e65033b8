"""A report as one page of HTML: the template filled, the entries streamed into it, the rules under which a browser runs it.

Invariants: whatever a template prints goes through one door (``finalize``), which masks it and leaves out what nobody sees, and is
escaped behind it; only our own style and scripts are named by their hashes in the page's Content-Security-Policy, so that nothing
that was stored can ever run, and nothing is asked of a network. The page is never held whole: it is written as it comes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from obsmem import __version__
from obsmem.core.clock import Clock
from obsmem.core.model import RELEVANCES
from obsmem.interfaces.report import many, short, size
from obsmem.interfaces.report_chart import draw
from obsmem.memory.recall import VOICES
from obsmem.store.memory import WorkerCall
from obsmem.tasks.report_data import Report, Turn
from obsmem.tasks.report_data_compactions import BEGINNING, MOST_RENDERED, NOTES, Crossing
from obsmem.tasks.report_data_entries import Columns, pack, pieces
from obsmem.tasks.report_data_words import clean_text
from obsmem.tasks.store import Store

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "report_page")
GENERATOR = "observational-memory report"
EARLY = "early.js"
SCRIPTS = ("data.js", "list.js", "page.js")  # at the end of the page, when all it carries is there
ENTRY_FILTERS = (
    ("user", "the user"), ("assistant", "the agent"), ("thinking", "thinking"), ("tool_call", "tool calls"),
    ("tool_result", "results"), ("harness", "harness"),
)  # fmt: skip
GROUNDINGS = {"verified": "verified", "partial": "partly verified", "none": "not verified"}
BLOCK_SOURCES = {
    "transcript": "as it stands in the transcript",
    "file": "as a hook gave it; the transcript does not show it",
    "waiting": "not delivered yet: it waits",
}
TRIGGERS = {
    "auto": "the harness did it on its own",
    "manual": "somebody asked for it",
    "": "nobody said how it came about",
}
_FIXED: Mapping[str, Any] = {
    "generator": GENERATOR, "version": __version__, "voices": VOICES, "entry_filters": ENTRY_FILTERS,
    "groundings": GROUNDINGS, "block_sources": BLOCK_SOURCES, "triggers": TRIGGERS, "beginning": BEGINNING,
    "most_rendered": MOST_RENDERED, "notes_kind": NOTES,
}  # fmt: skip
TITLE = 90  # characters of the first words, where a session has no name
_ASIDE = ("routine", "first_at", "first_seq")


class CallSum(NamedTuple):
    """The calls of one worker for one task, added up."""

    worker: str
    task: str
    calls: int
    ok: int
    items: int
    rejected: int
    tokens_in: int
    tokens_out: int
    seconds: float


class Arrival(NamedTuple):
    """What one entry brought of a block: the numbers of the parts, of how many."""

    delivery: str
    parts: str
    seq: int
    at: int


class Step(NamedTuple):
    """A turn, or what came between two: a compaction, a block."""

    turn: Turn | None = None
    crossing: Crossing | None = None
    arrival: Arrival | None = None


def page(store: Store, report: Report, clock: Clock) -> Iterator[str]:
    """The page, piece by piece."""
    columns = Columns()
    cited = [id_ for one in report.notes for id_ in one.note.entry_ids]
    values = {
        **_FIXED,
        **_look(),
        **_told(report),
        "chart": draw(report, clock),
        "pieces": pieces(store, report.stored, cited, columns),
        "columns": lambda: pack(columns.value()),  # called behind the last piece
        "now": int(time.time() * 1000),
    }
    yield from _environment(store, clock).get_template("page.html").generate(values)


def _look() -> dict[str, Any]:
    """Style and scripts, and the rules that let these alone work."""
    from markupsafe import Markup

    style, early, scripts = _own("style.css"), _own(EARLY), [_own(name) for name in SCRIPTS]
    return {
        "style": Markup(style),
        "early": Markup(early),
        "scripts": [Markup(one) for one in scripts],
        "policy": Markup(policy(style, [early, *scripts])),
    }


def _told(report: Report) -> dict[str, Any]:
    """What the templates tell of a report."""
    session, moments, arrivals = report.stored.session, report.moments, _arrivals(report)
    first = next((turn.words for turn in report.turns if turn.words), "")
    return {
        "report": report,
        "session": session,
        "title": report.name
        or (first if len(first) <= TITLE else f"{first[:TITLE].rstrip()}…")
        or f"Session {session.handle}",
        "began": session.started_at or (moments[0][1] if moments else 0),
        "ended": moments[-1][1] if moments else report.stored.updated_at,
        "entries": report.stored.last_seq + 1,
        "occupancy": report.occupancy,
        "tabs": _tabs(report),
        "tiles": _tiles(report),
        "story": _story(report),
        "note_filters": _note_filters(report),
        "block_tables": _block_tables(report),
        "call_sums": _call_sums(report.calls),
        "arrivals": arrivals,
        "marks": pack({f"{session.handle}.{one.seq}": f"{one.parts} of block {one.delivery}" for one in arrivals}),
    }


def policy(style: str, scripts: list[str]) -> str:
    """The rules of the page: our own style and scripts by their hashes, and nothing else."""
    own = " ".join(_hash(one) for one in scripts)
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {own}; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _own(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def _environment(store: Store, clock: Clock) -> Any:
    """Jinja2's environment: everything escaped, nothing undefined passed over, every string through the door."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def through_the_door(value: Any) -> Any:
        return clean_text(store, value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=through_the_door,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["clock"] = clock
    environment.filters |= {
        "count": lambda number: f"{number:,}",
        "short_count": short_count,
        "many": many,
        "numbers": numbers_text,
        "packed": lambda data: Markup(base64.b64encode(data).decode("ascii")),
    }
    return environment


def short_count(number: int) -> str:
    """``812``, ``12k``, ``1.2M``."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            return f"{number / limit:.1f}".removesuffix(".0") + unit
    return str(number)


def numbers_text(numbers: Mapping[str, Any]) -> str:
    """The numbers of a decision by their names."""
    return " · ".join(f"{name} {short(value)}" for name, value in numbers.items() if name not in _ASIDE)


def _tabs(report: Report) -> list[tuple[str, str, int | None]]:
    return [
        ("timeline", "Timeline", None),
        ("entries", "Entries", report.stored.last_seq + 1),
        ("notes", "Notes", len(report.notes) + len(report.reflections)),
        ("compactions", "Compactions", len(report.crossings)),
        ("block", "Last block", None),
        ("work", "Workers and decisions", None),
    ]


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    now, window, spent = report.occupancy, report.occupancy.window, report.spent
    states = Counter(one.state for one in report.notes)
    held = f"tokens, {now.share:.0%} of {short_count(window.usable)}" if window.usable else "tokens, window unknown"
    kept = f"{states['dropped'] + states['hidden']:,} no longer shown" if states["dropped"] + states["hidden"] else ""
    asked = sum(call.tokens_in + call.tokens_out for call in report.calls)
    notes = [f"{len(report.reflections):,} reflections" if report.reflections else "", kept]
    return [
        ("turns", f"{len(report.turns):,}", f"{sum(turn.calls for turn in report.turns):,} tool calls"),
        ("in the window", short_count(now.tokens), held),
        ("spent", short_count(spent.tokens) if spent.requests else "?", f"tokens, {spent.requests:,} requests" if spent.requests else "nobody counted"),
        ("compactions", f"{len(report.crossings):,}", f"{len({one[0] for one in report.receipts}):,} blocks arrived"),
        ("notes", f"{states['visible']:,}", " · ".join(filter(None, notes))),
        ("worker calls", f"{len(report.calls):,}", f"{short_count(asked)} tokens" if asked else "none cost tokens"),
        ("record", size(report.sizes[0]), f"kept in {size(report.sizes[1])}"),
    ]  # fmt: skip


def _story(report: Report) -> list[Step]:
    steps = [(turn.seq, 2, Step(turn)) for turn in report.turns]
    steps += [(one.found.seq, 0, Step(crossing=one)) for one in report.crossings]
    steps += [(one.seq, 1, Step(arrival=one)) for one in _arrivals(report)]
    return [step for _, _, step in sorted(steps, key=lambda one: one[:2])]


def _arrivals(report: Report) -> list[Arrival]:
    found: dict[tuple[str, int], Arrival] = {}
    for delivery, part, seq, at in report.receipts:
        known = found.get((delivery, seq))
        parts = f"{known.parts.partition('/')[0]}, {part}" if known else part
        found[delivery, seq] = Arrival(delivery, parts, seq, at)
    return list(found.values())


def _note_filters(report: Report) -> list[tuple[str, list[tuple[str, int]]]]:
    """The values by which notes are filtered, each with how many notes have it."""
    relevance = Counter(one.note.relevance for one in report.notes)
    evidence = Counter(one.note.evidence for one in report.notes)
    grounding = Counter(one.note.grounding for one in report.notes)
    state = Counter([one.state for one in report.notes] + [one.state for one in report.reflections])
    return [
        ("relevance", [(name, relevance[name]) for name in reversed(RELEVANCES)]),
        ("evidence", [(name, evidence[name]) for name in ("user", "tool", "agent")]),
        ("grounding", [(name, grounding[name]) for name in ("verified", "partial", "none")]),
        ("state", [(name, state[name]) for name in ("visible", "dropped", "hidden")]),
    ]  # fmt: skip


def _block_tables(report: Report) -> list[tuple[str, Any]]:
    if report.given is None or report.given.reasons is None:
        return []
    reasons = report.given.reasons
    return [
        ("Why each line stands in it", reasons.shown),
        ("What could have stood there, and was left out", reasons.left_out),
    ]


def _call_sums(calls: tuple[WorkerCall, ...]) -> list[CallSum]:
    groups: dict[tuple[str, str], list[WorkerCall]] = {}
    for call in calls:
        groups.setdefault((call.worker, call.task), []).append(call)
    return [
        CallSum(
            worker, task, len(own), sum(call.outcome in ("ok", "empty") for call in own), sum(call.items for call in own),
            sum(call.rejected for call in own), sum(call.tokens_in for call in own), sum(call.tokens_out for call in own),
            round(sum(call.ms for call in own) / 1000, 1),
        )
        for (worker, task), own in groups.items()
    ]  # fmt: skip
