"""The command ``report``: a session as one page of HTML, in a file of its own. The store is only read, but for cards that lack."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from obsmem.core.errors import ObsmemError, UsageError
from obsmem.interfaces.report import Bar, many, say, say_json, size, warn
from obsmem.interfaces.report_html import GENERATOR, page
from obsmem.system.environment import lacks_report
from obsmem.system.files import remove
from obsmem.system.local_time import local_clock
from obsmem.tasks.here import find_here
from obsmem.tasks.report_data import gather
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store

PRIVATE = 0o600  # the page holds what was said
HEAD = 4_000  # bytes of a file by which a report is known


def run_report(arguments: argparse.Namespace) -> int:
    """``report [SESSION]``: 0 the page was written; UsageError where a file that is none stands in its place."""
    if lack := lacks_report():
        raise ObsmemError(f"A report cannot be written: {lack}")
    with open_store() as store:
        here = None if arguments.session else find_here(store).session
        stored = here or find_session(store, arguments.session)
        path = os.path.abspath(arguments.output or f"observational-memory-{stored.session.handle}.html")
        _must_be_ours(path)
        bar = Bar(f"report of {stored.session.handle}")
        report = gather(store, stored, local_clock)
        written = _write(path, page(store, report, local_clock), bar, report.sizes[0])
    shown = _show(path) if arguments.open else False
    if arguments.json:
        say_json({
            "session": stored.session.handle, "path": path, "bytes": written, "entries": stored.last_seq + 1,
            "notes": len(report.notes), "reflections": len(report.reflections), "compactions": len(report.crossings),
            "worker_calls": len(report.calls), "decisions": len(report.happened), "shown": shown,
        })  # fmt: skip
        return 0
    say(
        f"{path}: {many(stored.last_seq + 1, 'entry')}, {many(len(report.notes), 'note')}, "
        f"{many(len(report.crossings), 'compaction')} of session {stored.session.handle}, {size(written)}. "
        "It holds the session's words, secrets masked: look through it before you give it away."
    )
    if arguments.open and not shown:
        warn(f"No browser could be started here: open {Path(path).as_uri()} in one.")
    return 0


def _must_be_ours(path: str) -> None:
    """Refuse to write over a file that is no report."""
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder: name a file in it with -o.")
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except FileNotFoundError:
        return
    if head and f'content="{GENERATOR}"'.encode() not in head:
        raise UsageError(f"{path} is there already and is no report: name another file with -o, or remove it.")


def _write(path: str, pieces: Iterable[str], bar: Bar, expected: int) -> int:
    """Write the page beside its place, then put it there; returns its bytes. A page that was not finished is removed."""
    temporary = f"{path}.{os.getpid()}.tmp"
    written = 0
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with open(descriptor, "wb") as file:
            for text in pieces:
                written += file.write(text.encode("utf-8", "replace"))
                bar.show(written, max(expected // 5, written))
        os.replace(temporary, path)
    finally:
        bar.end()
        remove(temporary)
    return written


def _show(path: str) -> bool:
    """Open the page in the user's browser; False where there is none."""
    import webbrowser

    sys.stdout.flush()
    try:
        return webbrowser.open(Path(path).as_uri())
    except webbrowser.Error:
        return False
