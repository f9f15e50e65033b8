"""The command that brings back the exact words behind an id: recall. It writes nothing, and loads little: an agent calls it
often, and waits for it."""

from __future__ import annotations

import argparse
import sys

from obsmem.core import late
from obsmem.core.errors import NotFound, SourceMissing, StoreError, UsageError
from obsmem.core.ids import is_raw_id
from obsmem.interfaces.report import say_json, warn
from obsmem.memory import recall
from obsmem.system.local_time import local_clock
from obsmem.tasks.entries import find_entry
from obsmem.tasks.remember import masked
from obsmem.tasks.resolve import find, neighbours
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.whole_outputs import find_whole

WHOLE_BUDGET = 8_000  # tokens of a whole output that are printed unless somebody says how many
DEFAULT_BUDGET = recall.DEFAULT_BUDGET


def run_recall(arguments: argparse.Namespace) -> int:
    """``recall ID``: a note or reflection, its evidence, and the exact entries behind it."""
    if arguments.raw and (arguments.range or arguments.context):
        raise UsageError("--raw gives whole records and nothing else: leave --range and --context out, or --raw.")
    with open_store(readonly=True) as store:
        name = arguments.id.strip().strip("[]").lower()
        if arguments.raw and is_raw_id(name):
            sys.stdout.buffer.write(find_whole(store, name).data)
            sys.stdout.buffer.flush()
            return 0
        if is_raw_id(name) and arguments.budget == DEFAULT_BUDGET:
            arguments.budget = WHOLE_BUDGET  # whoever asks for the rest of an output wants all of it
        found = find(store, name)
        if arguments.raw:
            return _write_raw(store, found, as_json=arguments.json)
        found = _without_secrets(store, found)
        if arguments.range:
            return _write_range(found, arguments.range, as_json=arguments.json)
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
    return found._replace(
        sources=sources,
        notes=tuple(masked(store, one) for one in found.notes),
        reflections=tuple(masked(store, one) for one in found.reflections),
    )


def _with_context(store: Store, found: recall.Found, count: int) -> recall.Found:
    for source in found.sources:
        if source.entry is not None and not source.around:
            handle, entries = neighbours(store, source.id, count)
            found = found._replace(sources=recall.with_context(found.sources, handle, entries, count))
    return found


def _write_raw(store: Store, found: recall.Found, *, as_json: bool) -> int:
    """The original bytes of each record, as they stood in the transcript; nothing is masked."""
    records: dict[tuple[int, int], tuple[str, bytes]] = {}
    missing: dict[str, str] = {}
    for source in found.sources:
        try:
            _, row = find_entry(store, source.id)
            if (row.segment, row.start) not in records:  # one record may hold several of the entries
                records[row.segment, row.start] = (source.id, store.archive.record(row))
        except (NotFound, StoreError, SourceMissing) as error:
            missing[source.id] = str(error)
    if as_json:
        say_json({"records": [raw_value(*one) for one in records.values()], "missing": missing}, raw=True)
        return SourceMissing.exit_code if missing else 0
    for _, data in records.values():
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    for name, why in missing.items():
        warn(f"{name}: {why}")
    return SourceMissing.exit_code if missing else 0


def raw_value(name: str, data: bytes) -> dict[str, str | int]:
    """A record's bytes for a program: JSON holds no bytes, so they stand in base64, with their number and SHA-256."""
    import base64

    encoded = base64.b64encode(data).decode("ascii")
    return {"id": name, "bytes": len(data), "sha256": late.sha256(data).hex(), "base64": encoded}


def _write_range(found: recall.Found, text: str, *, as_json: bool) -> int:
    start, _, end = text.partition(":")
    if len(found.sources) != 1 or found.sources[0].entry is None:
        raise UsageError("--range needs the id of one entry (7c2e.812). 'recall ID' lists those behind a note.")
    length = len(found.sources[0].entry.text)
    if not (start.isdigit() and end.isdigit() and int(start) < int(end) and int(start) < length):
        raise UsageError(
            f"--range takes two numbers of characters, the smaller first (0:{length} is all of it), not {text!r}."
        )
    words = recall.cut(found.sources[0].entry.text, int(start), int(end))
    if as_json:
        say_json({"id": found.sources[0].id, "start": int(start), "end": min(int(end), length), "text": words})
    else:
        print(words)
    return 0
