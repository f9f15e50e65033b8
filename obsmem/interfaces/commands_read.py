"""Commands that read transcripts: replay, try, ingest, sync."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from obsmem.core.errors import NotFound, UsageError
from obsmem.interfaces.report import Bar, agreed, counts, many, say, say_json, size, warn
from obsmem.system import config as configuration
from obsmem.system.config import Config
from obsmem.system.local_time import local_clock
from obsmem.tasks.ask import cascade
from obsmem.tasks.discover import Found, find_below, find_on_machine, newest_on_machine
from obsmem.tasks.ingest import Progress, ingest
from obsmem.tasks.maintain import write_hook_state
from obsmem.tasks.observe import run_passes
from obsmem.tasks.replay import Counts, Cut, Replayed, count, replay
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import Store, open_store


def run_replay(arguments: argparse.Namespace) -> int:
    """``replay PATH…``: parse saved transcripts, or run them through the whole pipeline; with ``--policy``, sessions of the
    store under other settings."""
    if arguments.policy is not None:
        from obsmem.interfaces.commands_replay import run_policy

        return run_policy(arguments)
    if arguments.workers:
        raise UsageError("--workers goes with --policy: any other replay asks no model.")
    if not arguments.paths:
        raise UsageError(
            "Give the path of a transcript or of a folder of them, or --policy and a session of the store."
        )
    with _standard_input(arguments.paths) as paths:
        found = [one for path in paths for one in _below(path, arguments.harness)]
        if arguments.parse_only:
            return _report_counts(found, arguments.json)
        with _store_for(arguments) as store:
            return _report_replays(store, found, arguments)


def _below(path: str, harness: str) -> list[Found]:
    try:
        found = list(find_below(path, harness))
    except FileNotFoundError:
        raise NotFound(
            f"There is no file or folder {path!r}. Give the path of a transcript or of a folder of them."
        ) from None
    if not found:
        raise NotFound(f"{path!r} holds no files. Give the path of a transcript or of a folder of them.")
    return found


@contextmanager
def _standard_input(paths: list[str]) -> Iterator[list[str]]:
    """Put what comes on standard input (path ``-``) into a temporary file."""
    if "-" not in paths:
        yield paths
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "standard-input.jsonl")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [path if one == "-" else one for one in paths]


@contextmanager
def _store_for(arguments: argparse.Namespace) -> Iterator[Store]:
    """The user's own store with ``--keep``, else one that is thrown away. Either reads in live-sized stretches."""
    if arguments.keep:
        with open_store() as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="obsmem-replay-") as home, open_store(home, _replay_config()) as store:
        yield store


def _replay_config() -> Config:
    """The user's configuration, with stretches as long as a running session would have given them."""
    config = configuration.load()
    changes: dict[str, Any] = {"workers": ["extractive"]}
    if config["chunk_max_tokens"] is None:
        changes["chunk_max_tokens"] = config["observe_after_tokens"]
    return configuration.override(config, changes, "replay")


def _report_counts(found: list[Found], as_json: bool) -> int:
    results: list[tuple[Found, Counts]] = []
    unknown = []
    bar = Bar("parsing", on=not as_json)
    for one in found:
        if not one.harness:
            unknown.append(one.source.path)
            continue

        def show(progress: Progress) -> None:
            bar.show(progress.done, progress.total)

        results.append((one, count(one, show)))
    bar.end()
    if as_json:
        say_json(
            {
                "sources": [
                    {"harness": one.harness, "path": one.source.path, **counted._asdict()} for one, counted in results
                ],
                "not_recognised": unknown,
            }
        )
        return 0
    for one, counted in results:
        _say_counts(one, counted)
    _say_sums(results)
    for path in unknown:
        _warn_unknown(path)
    return 0 if results or not found else NotFound.exit_code


def _warn_unknown(path: str) -> None:
    warn(f"not recognised: {path} (if it is a transcript, name its harness with --harness)")


def _say_counts(one: Found, counted: Counts) -> None:
    name = one.source.path + (f" [{one.source.session_id}]" if one.source.session_id else "")
    say(f"{name}")
    say(
        f"  {one.harness} {counted.role} · {size(counted.bytes)} · {counted.lines} lines · {counted.records} records · "
        f"~{counted.tokens} tokens · {many(counted.compactions, 'compaction')}"
    )
    say(f"  entries {sum(counted.entries.values())}: {counts(counted.entries)}")
    if counted.skipped:
        say(f"  without entries {sum(counted.skipped.values())}: {counts(counted.skipped)}")
    if counted.unaccounted:
        say(f"  UNACCOUNTED LINES: {counted.unaccounted}")


def _say_sums(results: list[tuple[Found, Counts]]) -> None:
    if len(results) < 2:
        return
    say("")
    for harness in dict.fromkeys(one.harness for one, _ in results):
        own = [counted for one, counted in results if one.harness == harness]
        entries: Counter[str] = Counter()
        skipped: Counter[str] = Counter()
        for counted in own:
            entries.update(counted.entries)
            skipped.update(counted.skipped)
        subs = sum(counted.role != "main" for counted in own)
        say(
            f"{harness}: {len(own)} sources ({subs} sub-sessions) · {size(sum(c.bytes for c in own))} · "
            f"{sum(c.lines for c in own)} lines · {sum(entries.values())} entries · ~{sum(c.tokens for c in own)} tokens · "
            f"{sum(c.compactions for c in own)} compactions · {sum(c.unaccounted for c in own)} unaccounted"
        )
        say(f"  entries: {counts(entries)}")
        say(f"  without entries: {counts(skipped)}")


def _report_replays(store: Store, found: list[Found], arguments: argparse.Namespace) -> int:
    try:
        cut = Cut.parse(arguments.at) if arguments.at else Cut()
    except ValueError:
        raise UsageError(
            f"--at takes a compaction's number (2) or a count of tokens (150000t), not {arguments.at!r}."
        ) from None
    values = []
    done = 0
    for one in found:
        if not one.harness:
            _warn_unknown(one.source.path)
            continue
        bar = Bar(os.path.basename(one.source.path), on=not arguments.json)
        result = replay(
            store, one, local_clock, cut=cut, budget=arguments.budget,
            progress=lambda progress, bar=bar: bar.show(progress.done, progress.total),  # type: ignore[misc]
        )  # fmt: skip
        bar.end()
        if result is None:
            warn(f"not read: {one.source.path} (excluded, forgotten, or a worker's own session)")
            continue
        done += 1
        if arguments.json:
            values.append(_replay_value(one, result))
        else:
            _say_replay(result)
    if arguments.json:
        say_json(values)
    return 0 if done else NotFound.exit_code


def _replay_value(one: Found, result: Replayed) -> dict[str, Any]:
    return {
        "harness": one.harness, "path": one.source.path, "session": result.stored.session._asdict(),
        "read": {"records": result.read.records, "entries": result.read.entries, "bytes": result.read.bytes,
                 "skipped": dict(result.read.skipped)},
        "passes": result.done._asdict(), "compactions": result.compactions, "block": result.block._asdict(),
    }  # fmt: skip


def _say_replay(result: Replayed) -> None:
    session, read, done, block = result.stored.session, result.read, result.done, result.block
    say(f"session {session.handle} ({session.harness}, {session.id}){': ' + session.name if session.name else ''}")
    say(
        f"  read {size(read.bytes)} · {many(read.records, 'record')} · {many(read.entries, 'entry')} · {many(result.compactions, 'compaction')}"
        + (f" · without entries: {counts(read.skipped)}" if read.skipped else "")
    )
    say(
        f"  observed {many(done.stretches, 'stretch')} → {many(done.notes, 'note')} "
        f"({done.rejected} rejected, {many(done.gaps, 'gap')}) · {many(done.reflections, 'reflection')} · "
        f"{many(done.drops, 'note')} dropped"
    )
    say(
        f"  block: {block.tokens} tokens in {many(len(block.parts), 'part')}; {many(len(block.shown), 'note')} shown, "
        f"{len(block.left_out)} left out"
    )
    say("")
    for part in block.parts:
        say(part)


def run_try(arguments: argparse.Namespace) -> int:
    """``try [SESSION]``: the block that the user's own newest session would get now. Nothing is kept."""
    home = os.path.expanduser("~")
    if not arguments.session:
        found = newest_on_machine(home)
        if found is None:
            raise NotFound("No harness has kept a session on this machine yet. Give the path of a transcript.")
        wanted = [found]
    elif os.path.exists(arguments.session):
        wanted = _below(arguments.session, "")
    else:
        wanted = [
            one for one in find_on_machine(home) if arguments.session in (one.source.session_id or one.source.path)
        ]
        wanted = sorted(wanted, key=lambda one: -one.changed)
    if not wanted:
        raise NotFound(
            f"No session on this machine matches {arguments.session!r}. 'observational-memory sync --list' lists them."
        )
    arguments.keep, arguments.at = False, ""
    with _store_for(arguments) as store:
        return _report_replays(store, wanted[:1], arguments)


def run_ingest(arguments: argparse.Namespace) -> int:
    """``ingest PATH…``: archive and observe transcripts, each from where it was left."""
    found = [one for path in arguments.paths for one in _below(path, arguments.harness)]
    with open_store() as store:
        cascade(store, strict=True)  # a worker that is set up wrongly is said here, where somebody reads it
        return _take_in(store, found, as_json=arguments.json, final=True)


def run_sync(arguments: argparse.Namespace) -> int:
    """``sync``: take in every session of every harness on this machine, after listing them and asking once."""
    found = sorted(find_on_machine(os.path.expanduser("~"), arguments.harness), key=lambda one: one.changed)
    with open_store() as store:
        cascade(store, strict=True)
        due = [one for one in found if _is_due(store, one)]
        if not arguments.json:
            for one in due:
                say(f"{one.harness:12} {size(one.size):>9}  {one.source.path} {one.source.session_id}".rstrip())
            total = size(sum({one.source.path: one.size for one in due}.values()))
            say(f"{len(due)} of {len(found)} sessions are new or have grown ({total}).")
        if arguments.list or not due:
            if arguments.json:
                say_json(
                    [
                        {"harness": o.harness, "path": o.source.path, "session": o.source.session_id, "bytes": o.size}
                        for o in due
                    ]
                )
            return 0
        if not arguments.yes and not agreed("Take them in?"):
            warn("Nothing was read. Run it again with --yes to skip the question.")
            return 1
        return _take_in(store, due, as_json=arguments.json)


def _is_due(store: Store, one: Found) -> bool:
    row = store.archive.connection.execute(
        "SELECT max(offset), max(read_at), kind FROM sources WHERE path=?", (one.source.path,)
    ).fetchone()
    if row is None or row[0] is None:
        return True
    return bool(one.size > row[0]) if row[2] == "file" else bool(one.changed * 1000 > row[1])


def _take_in(store: Store, found: list[Found], *, as_json: bool, final: bool = False) -> int:
    values: list[dict[str, Any]] = []
    known = [one for one in found if one.harness]
    for one in found:
        if not one.harness:
            _warn_unknown(one.source.path)
            continue
        bar = Bar(os.path.basename(one.source.path), on=not as_json)
        read = ingest(
            store, one.harness, one.source, final=final,
            progress=lambda progress, bar=bar: bar.show(progress.done, progress.total),  # type: ignore[misc]
        )  # fmt: skip
        bar.end()
        if read.stored is None:
            if not as_json:
                warn(f"not read: {one.source.path} ({read.reason})")
            values.append({"path": one.source.path, "reason": read.reason})
            continue
        done = run_passes(store, read.stored, local_clock, drain=True)
        write_hook_state(store, read.stored, one.source.path)
        session = find_session(store, read.stored.session.handle).session
        if not as_json:
            what = (
                f"{many(read.records, 'record')} · {many(read.entries, 'entry')} · {size(read.bytes)} · "
                f"{many(done.notes, 'note')} · {many(done.reflections, 'reflection')}"
                if read.records or done.stretches
                else "nothing new"
            )
            say(f"{session.handle}  {what}  {one.source.path}")
        values.append({"path": one.source.path, "session": session.handle, "records": read.records, "entries": read.entries,
                       "bytes": read.bytes, "skipped": dict(read.skipped), **done._asdict()})  # fmt: skip
    if as_json:
        say_json(values)
    return 0 if known or not found else NotFound.exit_code
