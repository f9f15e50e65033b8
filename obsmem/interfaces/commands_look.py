"""Commands that look at the record itself: get, around, tool, timeline, file. None of them writes."""

from __future__ import annotations

import argparse
import sys

from obsmem.core.errors import SourceMissing, UsageError
from obsmem.core.ids import is_raw_id
from obsmem.interfaces.commands_recall import raw_value
from obsmem.interfaces.report import age, say, say_json, warn
from obsmem.memory import recall
from obsmem.memory.timeline import Line
from obsmem.system.local_time import local_clock
from obsmem.tasks.called import command
from obsmem.tasks.entries import find_entry
from obsmem.tasks.file_story import FileStory, tell_file
from obsmem.tasks.here import find_here
from obsmem.tasks.look import PIECE, PIECE_TOKENS, Piece, around, find_tool_call, read_range, timeline, timeline_here
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store
from obsmem.tasks.whole_outputs import find_whole

AROUND_TOKENS = 2_000
SAYINGS = 8  # of what was said about a file
TOUCHES = 12

DISK = {
    "equal": "is now exactly what was last written or read",
    "changed": "has changed since",
    "gone": "is gone",
    "untouched": "has not changed since, by its time (the record holds no whole text to compare with)",
    "unknown": "is there; the record cannot say whether it changed",
}
LATER = "has a later time than the last call on it (the record holds no whole text to compare with)"


def run_get(arguments: argparse.Namespace) -> int:
    """``get ENTRY``: its words, or some of their characters; with ``--raw`` the record's own bytes."""
    name = arguments.id.strip().strip("[]").lower()
    if arguments.raw and arguments.range:
        raise UsageError("--raw gives the whole record, whose bytes --range does not count: leave one of them out.")
    start, count = parse_range(arguments.range)
    with open_store(readonly=True) as store:
        if arguments.raw and is_raw_id(name):
            sys.stdout.buffer.write(find_whole(store, name).data)
            sys.stdout.buffer.flush()
            return 0
        if arguments.raw:
            _, row = find_entry(store, name)
            data = store.archive.record(row)
            if arguments.json:
                say_json(raw_value(name, data), raw=True)
                return 0
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return 0
        piece = read_range(store, name, start, count)
    _print_piece(piece, as_json=arguments.json)
    return 0


def parse_range(text: str) -> tuple[int, int | None]:
    """(start, count) of a range ``A:B`` of characters; B may be left out. Raises UsageError."""
    if not text:
        return 0, None
    start, colon, end = text.partition(":")
    if not start.isdigit() or not colon or (end and not end.isdigit()) or (end and int(end) <= int(start)):
        raise UsageError(f"--range takes two numbers of characters, the smaller first (0:{PIECE}), not {text!r}.")
    return int(start), int(end) - int(start) if end else None


def _print_piece(piece: Piece, *, as_json: bool) -> None:
    if as_json:
        say_json(piece._asdict())
        return
    tool = f" {piece.tool}" if piece.tool else ""
    say(f"[{piece.id}] {local_clock(piece.at)} {piece.kind}/{piece.speaker}{tool}")
    print(piece.text)
    if piece.start or piece.end < piece.total:
        rest = f" The rest: {command()} get {piece.id} --range {piece.end}:" if piece.end < piece.total else ""
        warn(f"Characters {piece.start} to {piece.end} of {piece.total}.{rest}")


def run_around(arguments: argparse.Namespace) -> int:
    """``around ENTRY``: what was said and done before and after it."""
    with open_store(readonly=True) as store:
        sources = around(store, arguments.id.strip().strip("[]").lower(), arguments.count)
    found = recall.Found(sources=tuple(sources))
    if arguments.json:
        say_json(recall.as_value(found, local_clock)["sources"])
    else:
        print(recall.render(found, AROUND_TOKENS, local_clock))
    return 0


def run_tool(arguments: argparse.Namespace) -> int:
    """``tool CALL_ID``: a call and what it gave."""
    start, count = parse_range(arguments.range)
    with open_store(readonly=True) as store:
        names = find_tool_call(store, arguments.id, find_here(store).workspace)
        call, *results = names
        if is_raw_id(call):  # what it gave waits to be archived, and its call with it
            call, results = "", names
        share = PIECE_TOKENS // len(names)
        pieces = [read_range(store, call, tokens=share)] if call else []
        pieces += [read_range(store, name, start, count, tokens=share) for name in results]
    if arguments.json:
        say_json([piece._asdict() for piece in pieces])
        return 0
    for piece in pieces:
        _print_piece(piece, as_json=False)
    if not results:
        warn("No result of it is in the record: it was interrupted, or is still running.")
        return SourceMissing.exit_code
    return 0


def run_timeline(arguments: argparse.Namespace) -> int:
    """``timeline [SESSION]``: what happened, in order; without a session that of the workspace, backwards."""
    with open_store(readonly=True) as store:
        if arguments.session:
            page = timeline(store, find_session(store, arguments.session), arguments.after, arguments.count)
        else:
            page = timeline_here(store, find_here(store).workspace, arguments.after, arguments.count)
    if arguments.json:
        say_json({"lines": [line._asdict() for line in page.lines], "more": page.more})
        return 0
    for line in page.lines:
        say(line_text(line))
    if not page.lines:
        warn("Nothing happened here that the record knows of. 'observational-memory sessions' lists what it holds.")
    if page.more:
        session = f"{arguments.session} " if arguments.session else ""
        warn(f"More: {command()} timeline {session}--after {page.more}")
    return 0


def line_text(line: Line) -> str:
    """A line of a timeline as people read it."""
    return f"[{line.id}] {local_clock(line.at)} {line.who} {line.what}" + (f": {line.text}" if line.text else "")


def run_file(arguments: argparse.Namespace) -> int:
    """``file PATH``: who read and changed it, what was said about it, what became of it."""
    with open_store(readonly=True) as store:
        story = tell_file(store, arguments.path, find_here(store))
    if arguments.json:
        say_json(
            {
                **story._asdict(),
                "touches": [one._asdict() for one in story.touches],
                "sayings": [one._asdict() for one in story.sayings],
            }
        )
        return 0
    for text in story_lines(story):
        say(text)
    return 0


def story_lines(story: FileStory) -> list[str]:
    """A file's story as people read it: how it stands, the last touches, what was said."""
    state = LATER if story.disk == "changed" and not story.content_id else DISK[story.disk]
    lines = [f"{story.path} {state}" + (f" ({age(story.modified_at)} ago)" if story.modified_at else "")]
    if story.content_id:
        digest = f", sha256 {story.sha256}" if story.sha256 else ""
        lines.append(f"Its whole text as last written or read: {story.content_id} and what came before it{digest}")
    left = len(story.touches) - TOUCHES
    if left > 0:
        lines.append(f"({left} earlier times not shown)")
    for touch in story.touches[-TOUCHES:]:
        failed = " (failed)" if touch.ok is False else ""
        where = story.harnesses.get(touch.session, "")
        lines.append(
            f"[{' '.join(touch.ids)}] {local_clock(touch.at)} {touch.what}{failed} in {touch.session} ({where})"
        )
    for saying in story.sayings[-SAYINGS:]:
        text = " ".join(saying.text.split())
        cut = text if len(text) <= 300 else text[:298] + " …"
        lines.append(f"[{saying.id}] {local_clock(saying.at)} {saying.who}: {cut}")
    return lines
