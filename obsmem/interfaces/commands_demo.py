"""The demo: saved sessions run through the whole pipeline, one stage at a time, each saying what it did.

Nothing is kept: the store is thrown away. What it shows is computed from the sessions it is given, not written here.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import textwrap

from obsmem.core.errors import NotFound
from obsmem.core.ids import shorten
from obsmem.core.model import Entry, Note
from obsmem.core.tokens import estimate
from obsmem.interfaces.report import many, say, size
from obsmem.memory import recall
from obsmem.system import config as configuration
from obsmem.system.local_time import local_clock
from obsmem.tasks.called import installed_script
from obsmem.tasks.discover import Found, find_below
from obsmem.tasks.entries import read_entries
from obsmem.tasks.ingest import ingest
from obsmem.tasks.remember import remember
from obsmem.tasks.replay import Cut, Replayed, replay
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store, open_store

# A demo session is a twentieth of a real one, so its clocks and pool are too.
LOWERED = {
    "observe_after_tokens": 1_500,
    "chunk_max_tokens": 1_500,
    "reflect_after_tokens": 3_000,
    "pool_target_tokens": 1_200,
    "budget_tokens": 2_500,
    "workers": ["extractive"],
}
ROW = 176  # characters of a row of exact words; longer lines go on in the next row
_TELLING = re.compile(r"(?<!\w)(?:[A-Za-z_./-]*\d[\w./-]*|[a-z]+_[a-z_]+|[A-Z]?[a-z]+[A-Z]\w+|/?[\w-]+/[\w./-]+)")


def run_demo(arguments: argparse.Namespace) -> int:
    """``demo [PATH]``: one session per harness, from its bytes to a recall of what the harness's summary lost."""
    path = arguments.path or os.path.join(os.path.dirname(installed_script()), "fixtures", "demo")
    found = [one for one in find_below(path) if one.harness] if os.path.exists(path) else []
    if not found:
        raise NotFound(f"{path!r} holds no session. The demo's own sessions lie in fixtures/demo of a checkout.")
    config = configuration.override(configuration.defaults(), LOWERED, "demo")
    say("Saved sessions run through the whole pipeline. No model, no network, and a store that is thrown away.")
    say(
        f"Clocks and pool are lowered for these short sessions: observe every {LOWERED['observe_after_tokens']} tokens (10000 in "
        f"daily use), reflect every {LOWERED['reflect_after_tokens']} (20000), pool {LOWERED['pool_target_tokens']} (10000), "
        f"block {LOWERED['budget_tokens']} (8000)."
    )
    for one in found:
        with tempfile.TemporaryDirectory(prefix="obsmem-demo-") as home, open_store(home, config) as store:
            _show(store, one, whole=arguments.whole)
    return 0


def _show(store: Store, one: Found, *, whole: bool) -> None:
    say(f"\n=== {one.harness} · {os.path.basename(one.source.path)} ({size(one.size)})")
    result = replay(store, one, local_clock, cut=Cut(compaction=1))
    if result is None:
        say("not read")
        return
    read, done = result.read, result.done
    kept = store.archive.sizes(result.stored.no)
    say(
        f"ingest      {read.records} records → {read.entries} entries; {size(kept[0])} kept verbatim in {size(kept[1])}"
    )
    say(
        f"notes       {many(done.stretches, 'stretch')} observed → {many(done.notes, 'note')}, {done.rejected} rejected by "
        "the citation check"
    )
    say(f"reflections {done.reflections}, then {many(done.drops, 'note')} dropped (recallable all the same)")
    summaries, after = _compact(store, one, result)
    words = sum(len(entry.text.split()) for entry in summaries)
    say(
        f"compaction  the harness replaced all that by a summary of {words} words; the session went on for {after} entries"
    )
    block = result.block
    say(
        f"block       {block.tokens} tokens in {many(len(block.parts), 'part')}, what the model would get right after it:"
    )
    lines = "\n".join(block.parts).split("\n")
    for line in lines if whole else _clip(lines):
        say(f"  | {line}")
    _recall(store, result, "\n".join(entry.text for entry in summaries))


def _compact(store: Store, one: Found, result: Replayed) -> tuple[list[Entry], int]:
    """Read the rest of the session: the harness's own summary, and how much came after it."""
    ingest(store, one.harness, one.source, final=True)
    stored = store.archive.by_handle(result.stored.session.handle)
    rows = list(store.archive.entries(stored.no, result.stored.last_seq + 1))
    entries = read_entries(store, stored, rows)
    return [entry for entry in entries if entry.kind == "summary"], sum(entry.observable for entry in entries)


def _clip(lines: list[str]) -> list[str]:
    """The first lines of each section; a long line loses its end."""
    shown: list[str] = []
    in_section = skipped = 0
    for line in [*lines, "## end"]:
        if line.startswith(("## ", "</", "<obs")):
            if skipped:
                shown.append(f"… {skipped} more lines (demo --whole shows all)")
            in_section = skipped = 0
        if line == "## end":
            break
        in_section += 1
        if in_section > 6 and not line.startswith("</"):
            skipped += 1
            continue
        shown.append(line if len(line) <= 180 else line[:177] + "…")
    return shown


def _recall(store: Store, result: Replayed, summary: str) -> None:
    note, lost = _lost_note(store, result, summary)
    if note is None:
        say("recall      the summary kept every telling word of the notes shown; nothing to get back here")
        return
    short = shorten(one.id for one in remember(store, result.stored).notes)
    name = short.get(note.id, note.id)
    say(
        f"recall      the summary lost {', '.join(repr(word) for word in lost[:3])}. The block has note {name}; `recall {name}` gives the exact words:"
    )
    text = recall.render(find(store, note.id), 700, local_clock)
    for line in text.split("\n"):
        for row in textwrap.wrap(line, ROW, drop_whitespace=False) or [""]:
            say(f"  > {row}")
    say(f"            ({estimate(text)} tokens; byte for byte with `recall {name} --raw`)")


def _lost_note(store: Store, result: Replayed, summary: str) -> tuple[Note | None, list[str]]:
    """The shown note with the most telling words (numbers, identifiers, paths) that the summary does not have."""
    shown = set(result.block.shown)
    best: tuple[tuple[int, int], Note | None, list[str]] = ((-1, 0), None, [])
    for note in remember(store, result.stored).notes:
        if note.id not in shown or note.grounding != "verified":
            continue
        words = dict.fromkeys(word.rstrip(".-/") for word in _TELLING.findall(note.text))
        lost = [word for word in words if len(word) > 2 and word not in summary]
        weight = (note.evidence == "user") * 2 + (note.evidence == "tool")
        if lost and (weight, len(lost)) > best[0]:
            best = ((weight, len(lost)), note, lost)
    return best[1], best[2]
