"""Commands that show what is kept: sessions, show, notes, block, status, config. None of them writes."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from obsmem.core.errors import NotFound, SourceMissing, UsageError
from obsmem.core.ids import entry_id, shorten
from obsmem.core.model import RELEVANCES
from obsmem.harnesses import REGISTRY
from obsmem.interfaces.report import age, many, say, say_json, size, table
from obsmem.memory import recall
from obsmem.store.archive import StoredSession
from obsmem.system import config as configuration
from obsmem.system import log
from obsmem.system.local_time import local_clock
from obsmem.system.paths import data_home
from obsmem.tasks import usage
from obsmem.tasks.compactions import recent_trouble, trouble_words
from obsmem.tasks.deliver import make_block
from obsmem.tasks.deliveries import describe, recent_deliveries
from obsmem.tasks.doctor import unlogged_trouble
from obsmem.tasks.doctor_store import RECENT_SECONDS
from obsmem.tasks.install import is_registered
from obsmem.tasks.observe import observe_clock
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find_session, sources_of
from obsmem.tasks.rotation import chains, lineage
from obsmem.tasks.shortening import compile_settings
from obsmem.tasks.store import ARCHIVE, INDEX, MEMORY, Store, open_store

SHOWN = 500  # characters of an entry that ``show`` prints
CHAINS = 5  # of windows that go on from each other, the last grown, that ``status`` prints


def run_sessions(arguments: argparse.Namespace) -> int:
    """``sessions``: every session in the store, the newest first."""
    with open_store(readonly=True) as store:
        stored = [one for one in store.archive.sessions() if arguments.all or one.session.role == "main"]
        values = [_session_value(store, one) for one in stored]
    if arguments.json:
        say_json(values)
        return 0
    rows = [
        [v["handle"], v["harness"], age(v["updated_at"]), str(v["entries"]), str(v["notes"]), size(v["bytes"]),
         "" if v["transcript_exists"] else "only here", (v["name"] or v["cwd"] or v["id"]) + _continues(v["continues"])]
        for v in values
    ]  # fmt: skip
    for line in table(rows, ["handle", "harness", "grown", "entries", "notes", "size", "", "name"]):
        say(line)
    return 0


def _continues(before: list[str]) -> str:
    return f"  (continues {before[0]}, rotation {len(before)})" if before else ""


def _session_value(store: Store, one: StoredSession) -> dict[str, Any]:
    original, kept = store.archive.sizes(one.no)
    value = one.session._asdict()
    value.update(
        name=store.mask(one.session.name), updated_at=one.updated_at, entries=one.last_seq + 1,
        bytes=original, stored_bytes=kept,
        notes=len(store.memory.notes(one.session.handle)), covered_to=store.memory.covered_to(one.session.handle),
        transcript_exists=os.path.exists(one.session.transcript), continues=lineage(store, one.session.handle),
    )  # fmt: skip
    return value


def run_show(arguments: argparse.Namespace) -> int:
    """``show SESSION [RANGE]``: the entries of a session, in order."""
    with open_store(readonly=True) as store:
        stored = find_session(store, arguments.session)
        first, last = _range(arguments.range, stored.last_seq)
        handle = stored.session.handle
        names = [entry_id(handle, row.seq) for row in store.archive.entries(stored.no, first, last)]
        sources = [_without_secrets(store, one) for one in sources_of(store, names)]
    if not sources:
        raise NotFound(f"Session {handle} has no entries {first} to {last}: they go from 0 to {stored.last_seq}.")
    if arguments.json:
        say_json(
            [{"id": one.id, **(one.entry._asdict() if one.entry else {"missing": one.missing})} for one in sources]
        )
    else:
        for source in sources:
            _show_entry(source, whole=arguments.whole)
    return 0 if all(source.entry for source in sources) else SourceMissing.exit_code


def _without_secrets(store: Store, source: recall.Source) -> recall.Source:
    """An entry without secrets, those of the user's own patterns among them, in what its actions hold too."""
    entry = source.entry
    if entry is None:
        return source
    actions = tuple(
        one._replace(
            path=store.mask(one.path),
            command=store.mask(one.command),
            new=store.mask(one.new),
            old=store.mask(one.old),
            items=tuple((id_, status, store.mask(text)) for id_, status, text in one.items),
        )
        for one in entry.actions
    )
    return source._replace(entry=entry._replace(text=store.mask(entry.text), actions=actions))


def _show_entry(source: recall.Source, *, whole: bool) -> None:
    entry = source.entry
    if entry is None:
        say(f"[{source.id}] not available: {source.missing}\n")
        return
    label = f"{entry.kind}/{entry.speaker}" + (f" {entry.tool}" if entry.tool else "")
    mark = "" if entry.active else "  (off the live path)"
    text = entry.text if whole else recall.cut(entry.text, 0, SHOWN)
    more = "" if whole or len(entry.text) <= SHOWN else f" […{len(entry.text) - SHOWN} more characters]"
    say(f"[{source.id}] {local_clock(entry.at)} {label}{mark}\n{text}{more}\n")


def _range(text: str, last: int) -> tuple[int, int]:
    if not text:
        return 0, last
    start, _, end = text.partition(":")
    try:
        first = int(start or 0)
        until = int(end) if end else (last if ":" in text else first)
        if not 0 <= first <= until:
            raise ValueError(text)
        return first, until
    except ValueError:
        raise UsageError(f"RANGE is a number or two (12, 12:40, 12:), not {text!r}.") from None


def run_notes(arguments: argparse.Namespace) -> int:
    """``notes SESSION``: its notes, oldest first; with ``--dropped`` only those that were dropped."""
    with open_store(readonly=True) as store:
        stored = find_session(store, arguments.session)
        memory = remember(store, stored)
        if arguments.dropped:
            notes = [one.note for one in store.memory.notes(stored.session.handle) if one.note.id in memory.dropped]
        else:
            notes = list(memory.notes)
        reflections = [] if arguments.dropped else list(memory.reflections)
    wanted = set(filter(None, arguments.relevance.split(",")))
    if not wanted <= set(RELEVANCES):
        raise UsageError(f"--relevance takes some of {', '.join(RELEVANCES)}, not {arguments.relevance!r}.")
    notes = [note for note in notes if not wanted or note.relevance in wanted]
    if arguments.json:
        say_json({"notes": [n._asdict() for n in notes], "reflections": [r._asdict() for r in reflections]})
        return 0
    short = shorten([*(note.id for note in notes), *(one.id for one in reflections)])
    for one in reflections:
        say(f"[{short[one.id]}] reflection  {one.text}")
    for note in notes:
        doubt = "" if note.grounding == "verified" else f" ({note.grounding}: {', '.join(note.missing[:4])})"
        say(
            f"[{short[note.id]}] {local_clock(note.at)} {note.relevance} {note.evidence}{doubt}  {note.text}  ← {' '.join(note.entry_ids)}"
        )
    if not notes and not reflections:
        say("No notes." if not arguments.dropped else "No notes were dropped.")
    return 0


def run_block(arguments: argparse.Namespace) -> int:
    """``block SESSION``: the block that the model would get now."""
    with open_store() as store:
        stored = find_session(store, arguments.session)
        block = make_block(store, stored, local_clock, budget=arguments.budget)
    if arguments.json:
        say_json(block._asdict())
        return 0
    for part in block.parts:
        say(part)
    if not block.parts:
        say("Nothing is remembered of this session yet.")
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """``status``: how much is kept, how far behind the observer is, when it last worked."""
    if arguments.watch:
        from obsmem.interfaces.commands_watch import watch

        return watch(arguments)
    home = data_home()
    with open_store(readonly=True) as store:
        value = _status_value(store, home)
    if arguments.json:
        say_json(value)
        return 0
    say(f"data folder {home}: " + ", ".join(f"{name} {size(count)}" for name, count in value["files"].items()))
    say(
        f"{many(value['sessions'], 'session')}, {many(value['entries'], 'entry')}, {many(value['notes'], 'note')}; {size(value['bytes'])} of transcript "
        f"kept in {size(value['stored_bytes'])}"
    )
    gone = value["only_here"]
    say(
        f"{many(len(gone), 'session')} only here, the transcript being gone: {', '.join(gone[:12])}"
        if gone
        else "every transcript is still in its place"
    )
    say(
        f"observer: last worked {age(value['last_call'])} ago" if value["last_call"] else "observer: has not worked yet"
    )
    if value["failed_calls"]:
        say(
            f"  {value['failed_calls']} worker calls failed; the stretches were covered by the next worker or are due again"
        )
    _say_models(value["workers"])
    for lag in value["behind"]:
        say(f"  {lag['handle']} is {lag['tokens']} tokens behind (due at {value['observe_after_tokens']})")
    if value["gaps"]:
        say(f"  {value['gaps']} stretches could not be observed (gaps)")
    for block in value["blocks"]:
        say(f"block of {block['handle']}: {block['words']}")
    for one in value["compactions"]:
        say(f"compactions of {one['handle']}: {one['words']}")
    for chain in value["chains"][:CHAINS]:
        say(f"session {chain['words']}")
    say(f"tools for agents: {', '.join(value['tools_registered']) or 'registered nowhere'}")
    if value["trouble"]:
        say(f"trouble: {value['trouble']}")
    for one in value["unlogged_trouble"]:
        say(f"trouble: {one['what']} → {one['remedy']}")
    return 0


def _say_models(value: dict[str, Any]) -> None:
    """What models cost today, and why one is not asked."""
    if value["wrong"]:
        say(f"  models: {value['wrong']}")
    if not value["models"]:
        return
    say(f"models: {usage.Today(**value['today']).words()}")
    for one in value["models"]:
        billing = f", paid {one['billing']}"
        alone = f", left alone for now: {one['why']}" if one["until"] > time.time() * 1000 else ""
        say(f"  {one['name']}{billing}{alone}")


def _status_value(store: Store, home: str) -> dict[str, Any]:
    sessions = store.archive.sessions()
    sizes = [store.archive.sizes(one.no) for one in sessions]
    run = store.memory.connection.execute
    behind = [
        {"handle": one.session.handle, "tokens": tokens}
        for one in sessions
        if one.session.role == "main"
        and (tokens := observe_clock(store, one, store.memory.covered_to(one.session.handle)))
        >= store.config["observe_after_tokens"]
    ]
    return {
        "home": home,
        "files": {
            n: os.path.getsize(os.path.join(home, n))
            for n in (ARCHIVE, MEMORY, INDEX)
            if os.path.exists(os.path.join(home, n))
        },
        "sessions": len(sessions),
        "entries": sum(one.last_seq + 1 for one in sessions),
        "notes": run("SELECT count(*) FROM notes").fetchone()[0],
        "bytes": sum(original for original, _ in sizes),
        "stored_bytes": sum(kept for _, kept in sizes),
        "only_here": [one.session.handle for one in sessions if not os.path.exists(one.session.transcript)],
        "last_call": run("SELECT coalesce(max(at), 0) FROM worker_calls").fetchone()[0],
        "failed_calls": run("SELECT count(*) FROM worker_calls WHERE outcome LIKE 'failed%'").fetchone()[0],
        "gaps": run("SELECT count(*) FROM gaps").fetchone()[0],
        "behind": behind,
        "compactions": [
            {"handle": one.session.handle, "words": trouble_words(wrong), **wrong._asdict()}
            for one, wrong in recent_trouble(store, int((time.time() - RECENT_SECONDS) * 1000))
        ],
        "blocks": [
            {"handle": one.session.handle, "words": describe(found, local_clock), **found._asdict()}
            for one, found in recent_deliveries(store)
        ],
        "chains": [{**one._asdict(), "words": one.words()} for one in chains(store)],
        "workers": usage.status_value(store),
        "tools_registered": [name for name in REGISTRY if is_registered(home, name, os.getcwd())],
        "trouble": log.last_trouble(home, time.time()),
        "unlogged_trouble": [check._asdict() for check in unlogged_trouble(home, os.getcwd())],
        "observe_after_tokens": store.config["observe_after_tokens"],
    }


def run_config(arguments: argparse.Namespace) -> int:
    """``config``: every key with its value; with ``--origin`` where it came from and what it means."""
    config = configuration.load(os.getcwd())
    if os.path.isdir(data_home()):
        compile_settings(data_home(), config)  # hooks read no configuration: from now on they keep to this one
    if arguments.json:
        say_json(
            {
                key: {"value": config[key], "origin": config.origins[key], "meaning": configuration.KEYS[key][2]}
                for key in configuration.KEYS
            }
        )
        return 0
    for key, (_, _, meaning) in configuration.KEYS.items():
        say(f"{key}: {json.dumps(config[key], ensure_ascii=False)}")
        if arguments.origin:
            say(f"    from {config.origins[key]} — {meaning}")
    for key, path in config.ignored:
        say(f"{key!r} in {path} is ignored: only your own file may set it.")
    say(f"The user's file is {configuration.user_file()}; a project's is {configuration.PROJECT_FILE} in its folder.")
    return 0
