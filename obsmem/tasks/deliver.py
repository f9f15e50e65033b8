"""Leaving the block where hooks find it, and making it for whoever asks.

Invariant: what is delivered was rendered before, whole, by somebody who had the database; a hook only copies it out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import BLOCK, DELIVER
from obsmem.core.fold import State, fold
from obsmem.core.model import Block, Fact, Memory
from obsmem.memory.render import render
from obsmem.store.archive import StoredSession
from obsmem.store.schema import transaction
from obsmem.system.blockfile import make_due, write_next
from obsmem.system.focus import read_focus
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.cards import cards_of
from obsmem.tasks.compactions import in_progress_words
from obsmem.tasks.decide import decide
from obsmem.tasks.reasons import count_left_out, keep_reasons
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store

BEFORE_COMPACTION, AFTER_TURN = "a compaction comes", "kept ready after a turn"  # why a block is made


def make_block(
    store: Store, stored: StoredSession, clock: Clock, *, budget: int | None = None, up_to: int | None = None
) -> Block:
    """Render what is remembered of a session, up to seq ``up_to`` where given; ``budget`` in tokens (config's else)."""
    return _rendering(store, stored, clock, store.config["budget_tokens"] if budget is None else budget, up_to).block


class _Rendering(NamedTuple):
    """A block with what it was made of."""

    block: Block
    memory: Memory
    disk: Mapping[str, str]
    budget: int


def _rendering(store: Store, stored: StoredSession, clock: Clock, budget: int, up_to: int | None = None) -> _Rendering:
    state = _with_focus(store, stored, fold(cards_of(store, stored, up_to), stored.session.cwd))
    memory, disk = remember(store, stored, up_to), disk_state(state, stored.session.cwd)
    block = render(
        stored.session,
        state,
        memory,
        budget=budget,
        key=store.key(),
        clock=clock,
        recall=recall_command(),
        show=command() + " notes",
        program=command(),
        disk=disk,
        urgent=in_progress_words(store, stored),
    )
    return _Rendering(block, memory, disk, budget)


def _with_focus(store: Store, stored: StoredSession, state: State) -> State:
    """The state with what a hook was told of the newest compaction's focus, where the transcript does not say it (yet)."""
    words = read_focus(store.folder_of(stored))
    if not words or (state.focus is not None and state.focus.text[:200] == words[:200]):
        return state
    return state._replace(focus=Fact("focus", (), 0, text=words))


def leave_block(store: Store, stored: StoredSession, clock: Clock, *, fresh: bool = False) -> Block:
    """Render and leave the block for the next delivery. ``fresh`` makes it due: a compaction comes."""
    made = _rendering(store, stored, clock, store.config["budget_tokens"])
    block, folder = made.block, store.folder_of(stored)
    if block.parts:
        write_next(folder, block.nonce, block.parts)
        keep_reasons(folder, block, made.memory)
        with transaction(store.memory.connection):
            source = "compact" if fresh else "turn"
            store.memory.record_block(
                stored.session.handle, block.nonce, block.nonce, len(block.parts), block.tokens, source
            )
            _record(store, stored, made, BEFORE_COMPACTION if fresh else AFTER_TURN)
            if fresh:
                decide(store, stored, DELIVER, "left for the compaction", delivery=block.nonce, parts=len(block.parts))
        if fresh:
            make_due(folder)
    return block


def decide_block(store: Store, stored: StoredSession, clock: Clock, why: str) -> Block:
    """Render the block and write down what entered it, as ``leave_block`` does, but leave nothing for hooks."""
    made = _rendering(store, stored, clock, store.config["budget_tokens"])
    if made.block.parts:
        _record(store, stored, made, why)
    return made.block


def _record(store: Store, stored: StoredSession, made: _Rendering, why: str) -> None:
    """Write down what entered a block, what did not, and how large it is."""
    block, memory = made.block, made.memory
    decide(
        store, stored, BLOCK, why, routine=why == AFTER_TURN, delivery=block.nonce, budget=made.budget, tokens=block.tokens,
        sections=dict(block.sections), part_bytes=[len(part.encode("utf-8", "replace")) for part in block.parts],
        notes=len(memory.notes), notes_shown=len(block.shown), reflections=len(memory.reflections), pins=len(memory.pins),
        left_out=count_left_out(block, memory), files_changed=len(made.disk),
    )  # fmt: skip


def disk_state(state: State, cwd: str) -> dict[str, str]:
    """Which of the files that a session touched have changed since, or are gone. Nothing where its folder is not here
    (a transcript from another machine): then nothing can be said."""
    if not cwd or not os.path.isdir(cwd):
        return {}
    marks = {}
    for path, file in state.files.items():
        whole = os.path.join(cwd, path)
        seen = max(file.last_edit_at, file.last_read_at)
        try:
            if seen and os.stat(whole).st_mtime * 1000 > seen + 2000:
                marks[path] = "changed"
        except OSError:
            marks[path] = "gone"
    return marks
