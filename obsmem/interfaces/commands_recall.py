"""The command that brings back the exact words behind an id: recall. It writes nothing, and loads little: an agent calls it
often, and waits for it."""

from __future__ import annotations

import argparse
import sys

from obsmem.core.errors import NotFound, SourceMissing, StoreError, UsageError
from obsmem.interfaces.report import say_json, warn
from obsmem.memory import recall
from obsmem.system.local_time import local_clock
from obsmem.tasks.entries import find_entry
from obsmem.tasks.resolve import find, neighbours
from obsmem.tasks.store import Store, open_store


def run_recall(arguments: argparse.Namespace) -> int:
    """``recall ID``: a note or reflection, its evidence, and the exact entries behind it."""
    with open_store(readonly=True) as store:
        found = find(store, arguments.id)
        if arguments.raw:
            return _write_raw(store, found)
        found = _without_secrets(store, found)
        if arguments.range:
            return _write_range(found, arguments.range)
        if arguments.context:
            found = _without_secrets(store, _with_context(store, found, arguments.context))
    if arguments.json:
        say_json(recall.as_value(found, local_clock))
    else:
        print(recall.render(found, arguments.budget, local_clock))
    return SourceMissing.exit_code if found.status in ("partial", "source_unavailable", "no_source") else 0


def _without_secrets(store: Store, found: recall.Found) -> recall.Found:
    """What the user's own patterns name is not printed; the built-in kinds are masked as everything is rendered."""
    if not store.secrets:
        return found
    sources = tuple(
        one._replace(entry=one.entry._replace(text=store.mask(one.entry.text))) if one.entry else one
        for one in found.sources
    )
    return found._replace(sources=sources)


def _with_context(store: Store, found: recall.Found, count: int) -> recall.Found:
    for source in found.sources:
        if source.entry is not None and not source.around:
            handle, entries = neighbours(store, source.id, count)
            found = found._replace(sources=recall.with_context(found.sources, handle, entries, count))
    return found


def _write_raw(store: Store, found: recall.Found) -> int:
    """The original bytes of each record, as they stood in the transcript; nothing is masked."""
    written: set[tuple[int, int]] = set()
    status = 0
    for source in found.sources:
        try:
            _, row = find_entry(store, source.id)
            if (row.segment, row.start) not in written:  # one record may hold several of the entries
                sys.stdout.buffer.write(store.archive.record(row))
                written.add((row.segment, row.start))
        except (NotFound, StoreError, SourceMissing) as error:
            warn(f"{source.id}: {error}")
            status = SourceMissing.exit_code
    sys.stdout.buffer.flush()
    return status


def _write_range(found: recall.Found, text: str) -> int:
    start, _, end = text.partition(":")
    if len(found.sources) != 1 or found.sources[0].entry is None:
        raise UsageError("--range needs the id of one entry (7c2e.812). 'recall ID' lists those behind a note.")
    length = len(found.sources[0].entry.text)
    if not (start.isdigit() and end.isdigit() and int(start) < int(end) and int(start) < length):
        raise UsageError(
            f"--range takes two numbers of characters, the smaller first (0:{length} is all of it), not {text!r}."
        )
    print(recall.cut(found.sources[0].entry.text, int(start), int(end)))
    return 0
