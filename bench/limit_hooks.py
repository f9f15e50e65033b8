"""The hooks that a harness waits for, each at three lengths of transcript, and where it matters at three numbers of notes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bench.compact import SESSION as SESSION_WITH_NOTES
from bench.compact import Place, write_session
from bench.history import History
from bench.hook import (
    HARNESS,
    PROMPT,
    PYTHON,
    SCRIPT,
    SESSION,
    SIZES,
    SMALL,
    START,
    STOP,
    World,
    give_again,
    make_world,
)
from bench.limit_rows import Case, hook_bases
from obsmem.core.ids import content_id, entry_id
from obsmem.core.model import Note
from obsmem.core.tokens import estimate
from obsmem.harnesses.base import Source
from obsmem.store.memory import WorkerCall
from obsmem.system import blockfile, config
from obsmem.system.paths import session_folder
from obsmem.system.seats import wait_until_free
from obsmem.system.shortening import Settings, write_settings
from obsmem.system.state import State, write_state
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import open_store
from obsmem.tasks.words import index_words

STATUS = ["hook", HARNESS, "statusLine"]
RESULT = ["hook", HARNESS, "PostToolUse"]
NOTES = (0, 600, 20_000)
NOTED_TOKENS = 20_000  # of the session that the notes are of


def by_length(folder: str) -> list[Case]:
    """Every hook for transcripts of 10 KB, 10 MB and 1 GB (sparse files: they are looked at, not read)."""
    cases = []
    for number, (length, size) in enumerate(SIZES):
        # Names of one length, since a longer path is no more work but may be one more read.
        world = make_world(os.path.join(folder, f"size-{number}"), size)
        write_settings(world.home, Settings(reduce=True))
        known = json.loads(Path(world.stop).read_text(encoding="utf-8"))
        payloads: dict[str, dict[str, Any]] = {
            "status": {"context_window": {"context_window_size": 200_000, "used_percentage": 40}, "model": {"id": "m"}},
            "result": {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1",
                       "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": "ok\n", "stderr": ""}},
            "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "Go on."},
        }  # fmt: skip
        paths = {"stop": world.stop, "start": world.start}
        for name, more in payloads.items():
            paths[name] = os.path.join(folder, f"size-{number}", f"{name}.json")
            Path(paths[name]).write_text(json.dumps({**known, **more}), encoding="utf-8")
        hooks = (("Stop, nothing to do", STOP, "stop"), ("UserPromptSubmit", PROMPT, "prompt"), ("SessionStart, a part", START, "start"),
                 ("PostToolUse, nothing to do", RESULT, "result"), ("statusLine", STATUS, "status"))  # fmt: skip
        for name, words, payload in hooks:
            cases.append(_case(f"{name}, {length}", words, world, paths[payload], known["transcript_path"]))
        cases.append(_starting(os.path.join(folder, f"from-{number}"), length, size))
    return cases


def _case(name: str, words: list[str], world: World, payload: str, transcript: str) -> Case:
    command = [PYTHON, "-I", "-S", SCRIPT, *words]
    return Case(name, command, world.environment, payload, hook_bases(transcript), lambda: give_again(world))


def _starting(folder: str, length: str, size: int) -> Case:
    """A Stop that starts a maintainer. What the maintainer finds when it has started is the short file again: what it makes of
    a long one is no part of the hook."""
    world = make_world(folder, SMALL)
    transcript = os.path.join(folder, f"{SESSION}.jsonl")
    state_folder = session_folder(world.home, HARNESS, transcript, SESSION)

    def be_due() -> None:
        wait_until_free(world.home, 60)
        os.truncate(transcript, size)
        write_state(state_folder, State(read=0, after=1))

    case = _case(f"Stop, starts a maintainer, {length}", STOP, world, world.stop, transcript)
    return case._replace(before=be_due, after=lambda: os.truncate(transcript, SMALL))


def noted(folder: str, notes: int) -> Place:
    """A session that was read, with so many notes (of one stretch, each about an entry), and its block due where it has any."""
    place = Place(folder)
    write_session(place, NOTED_TOKENS)
    with open_store(place.home, config.defaults()) as store:
        stored = ingest(store, HARNESS, Source(place.transcript), final=True).stored
        assert stored is not None
        handle, last = stored.session.handle, stored.last_seq
        made = []
        for number in range(notes):
            text = f"Part {number} of the shop shows prices in currency {number}; legacy_{number}.py stays as it is."
            names = (entry_id(handle, number % last),)
            made.append(Note(content_id(text, names), text, 1_772_409_600_000 + number, "medium", names, "agent", "verified", estimate(text)))  # fmt: skip
        if made:
            call = WorkerCall(handle, "observe", "bench", 0, 0, last, "ok", notes)
            store.memory.commit_stretch(call, store.memory.covered_to(handle), 0, last, "", made)
    if notes:
        place.hook("PreCompact", trigger="manual")
        wait_until_free(place.home, 120)
    return place


def start_with_notes(place: Place, notes: int) -> Case:
    """A part of the block of a session with so many notes. Raises SystemExit where it has no block."""
    folder = session_folder(place.home, HARNESS, place.transcript, SESSION_WITH_NOTES)
    if not os.path.exists(os.path.join(folder, blockfile.DUE)):
        raise SystemExit(f"no block was made of {notes} notes")
    payload = os.path.join(place.folder, "start.json")
    known = {"session_id": SESSION_WITH_NOTES, "transcript_path": place.transcript, "cwd": place.folder}
    Path(payload).write_text(json.dumps({**known, "hook_event_name": "SessionStart", "source": "compact"}), encoding="utf-8")  # fmt: skip
    return _case(f"SessionStart, a part, {notes:,} notes", START, World(place.home, payload, payload), payload, place.transcript)  # fmt: skip


def history_of(place: Place) -> History:
    """What ``recall`` and ``search`` are asked in a session with notes: its last note where it has any, else an entry."""
    with open_store(place.home) as store:
        (stored,) = store.archive.sessions()
        index_words(store, stored)
        notes = store.memory.notes(stored.session.handle)
        name = notes[-1].note.id if notes else entry_id(stored.session.handle, 0)
    return History(place.home, name, "currency")
