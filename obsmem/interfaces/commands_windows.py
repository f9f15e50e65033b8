"""Commands that change windows: handoff, rotate, resume."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from typing import Any

from obsmem.core.errors import NotFound, ObsmemError
from obsmem.harnesses import load
from obsmem.interfaces.report import age, many, say, say_json, size, table, warn
from obsmem.store.archive import StoredSession
from obsmem.system.local_time import local_clock
from obsmem.tasks.called import command
from obsmem.tasks.copies import note_export
from obsmem.tasks.export_folder import export_folder
from obsmem.tasks.handoff import make_handoff
from obsmem.tasks.here import find_here
from obsmem.tasks.look import session_lines
from obsmem.tasks.resolve import find_session
from obsmem.tasks.rotation import cancel_rotation, lineage, rotate
from obsmem.tasks.store import Store, open_store

LISTED = 15  # sessions that ``resume`` offers
PROMPT = 60  # characters of a first prompt


def run_handoff(arguments: argparse.Namespace) -> int:
    """``handoff [SESSION]``: the text with which a fresh window goes on."""
    with open_store() as store:
        stored = meant(store, arguments.session)
        style, pointer = arguments.style, ""
        if arguments.folder:
            done = export_folder(store, stored, arguments.folder, local_clock)
            note_export(store, [stored.session.handle], done.folder)
            style, pointer = "pointer", done.pointer
        text = make_handoff(store, stored, style, local_clock, budget=arguments.budget, pointer=pointer)
    if arguments.json:
        say_json({"session": stored.session.handle, "style": style, "text": text})
    else:
        print(text)
    return 0


def meant(store: Store, name: str) -> StoredSession:
    """The session that a person means; for '' the one that asks, else the newest of this workspace. Raises NotFound."""
    if name:
        return find_session(store, name)
    here = find_here(store)
    if here.session is not None:
        return here.session
    for stored in store.archive.sessions():
        if stored.session.role == "main" and stored.session.workspace == here.workspace:
            return stored
    raise NotFound(
        "The store holds no session of this folder's workspace. Name one: 'observational-memory sessions' lists them."
    )


def run_rotate(arguments: argparse.Namespace) -> int:
    """``rotate [SESSION]``: mark it, or take the mark back."""
    with open_store() as store:
        stored = meant(store, arguments.session)
        handle = stored.session.handle
        if arguments.cancel:
            mark = cancel_rotation(store, stored)
        else:
            was = store.memory.waiting_rotation(handle)
            mark = rotate(store, stored, arguments.style, local_clock, force=arguments.force)
        number = len(lineage(store, handle)) + 1
    if arguments.json:
        say_json({**mark._asdict(), "state": "cancelled" if arguments.cancel else mark.state, "rotation": number})
        return 0
    if arguments.cancel:
        say(f"Session {handle} is no longer marked.")
        return 0
    again = "was marked already, and its handoff is as things are now" if was else "is marked"
    say(
        f"Session {handle} {again} (rotation {number}). The next fresh session of {stored.session.harness} in this workspace "
        f"(/clear, /new, or a new start) goes on with it, within a day. '{command()} rotate --cancel' takes it back."
    )
    return 0


def run_resume(arguments: argparse.Namespace) -> int:
    """``resume [NAME]``: choose an earlier session, and print its handoff or start its harness with it."""
    with open_store() as store:
        if not arguments.session:
            offered = [one for one in store.archive.sessions() if one.session.role == "main"][:LISTED]
            if not offered:
                find_session(store)  # says what to do
            values = [_offer(store, one) for one in offered]
            if arguments.json:
                say_json(values)
                return 0
            _list(values)
            chosen = _choose(len(offered))
            if chosen is None:
                return 0
            stored = offered[chosen]
        else:
            stored = find_session(store, arguments.session)
        if not arguments.start:
            text = make_handoff(store, stored, arguments.style, local_clock)
            print(text) if not arguments.json else say_json({"session": stored.session.handle, "text": text})
            return 0
        line = start_line(store, stored, arguments.style)
    return _start(stored, line)


def _offer(store: Store, one: StoredSession) -> dict[str, Any]:
    said = next((line.text for line in session_lines(store, one) if line.what == "said"), "")
    return {
        "session": one.session.handle,
        "harness": one.session.harness,
        "updated_at": one.updated_at,
        "first_prompt": said,
        "entries": one.last_seq + 1,
        "bytes": store.archive.sizes(one.no)[0],
        "cwd": one.session.cwd,
        "continues": lineage(store, one.session.handle),
    }


def _list(values: list[dict[str, Any]]) -> None:
    rows = [
        [str(number), v["session"], v["harness"], age(v["updated_at"]), size(v["bytes"]), v["first_prompt"][:PROMPT]]
        for number, v in enumerate(values, 1)
    ]
    for line in table(rows, ["", "session", "harness", "grown", "size", "first prompt"]):
        say(line)


def _choose(count: int) -> int | None:
    """The number that a person at a terminal chooses; None where nobody does."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        warn(f"'{command()} resume NAME' prints the handoff of one.")
        return None
    try:
        answer = input(f"Which one (1 to {many(count, 'session')}; Enter for none)? ").strip()
    except EOFError:
        return None
    return int(answer) - 1 if answer.isdigit() and 1 <= int(answer) <= count else None


def start_line(store: Store, stored: StoredSession, style: str) -> list[str]:
    """The words that start a session's harness: with the session itself where it still has it, else with the handoff as
    its first prompt. Raises NotFound where its program is not on this machine."""
    module = load(stored.session.harness)
    program = next((path for name in module.PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        raise NotFound(
            f"None of {', '.join(module.PROGRAMS)} is on this machine, so {stored.session.harness} cannot be started. "
            f"'observational-memory handoff {stored.session.handle}' prints what to give to another one."
        )
    if stored.session.transcript and os.path.exists(stored.session.transcript):
        return [program, *module.RESUME, stored.session.id]
    return [program, *module.PROMPT, make_handoff(store, stored, style, local_clock)]


def _start(stored: StoredSession, line: list[str]) -> int:
    folder = stored.session.cwd if os.path.isdir(stored.session.cwd) else None
    try:
        return subprocess.call(line, cwd=folder)  # the user's own program, for as long as they like
    except OSError as error:
        raise ObsmemError(f"{line[0]} could not be started ({error}). Start it yourself in {folder or '.'}.") from error
