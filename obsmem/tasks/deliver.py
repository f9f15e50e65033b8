"""Leaving the block where hooks find it, and making it for whoever asks.

Invariant: what is delivered was rendered before, whole, by somebody who had the database; a hook only copies it out.
"""

from __future__ import annotations

import os

from obsmem.core.clock import Clock
from obsmem.core.fold import State, fold
from obsmem.core.model import Block, Fact
from obsmem.memory.render import render
from obsmem.store.archive import StoredSession
from obsmem.system.blockfile import make_due, write_next
from obsmem.system.focus import read_focus
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.cards import cards_of
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store


def make_block(
    store: Store, stored: StoredSession, clock: Clock, *, budget: int | None = None, up_to: int | None = None
) -> Block:
    """Render what is remembered of a session, up to seq ``up_to`` where given; ``budget`` in tokens (config's else)."""
    cards = cards_of(store, stored, up_to)
    state = _with_focus(store, stored, fold(cards, stored.session.cwd))
    return render(
        stored.session,
        state,
        remember(store, stored, up_to),
        budget=budget if budget is not None else store.config["budget_tokens"],
        key=store.key(),
        clock=clock,
        recall=recall_command(),
        show=command() + " notes",
        program=command(),
        disk=disk_state(state, stored.session.cwd),
    )


def _with_focus(store: Store, stored: StoredSession, state: State) -> State:
    """The state with what a hook was told of the newest compaction's focus, where the transcript does not say it (yet)."""
    words = read_focus(store.folder_of(stored))
    if not words or (state.focus is not None and state.focus.text[:200] == words[:200]):
        return state
    return state._replace(focus=Fact("focus", (), 0, text=words))


def leave_block(store: Store, stored: StoredSession, clock: Clock, *, fresh: bool = False) -> Block:
    """Render and leave the block for the next delivery. ``fresh`` makes it due: a compaction comes."""
    block = make_block(store, stored, clock)
    folder = store.folder_of(stored)
    if block.parts:
        write_next(folder, block.nonce, block.parts)
        store.memory.record_block(
            stored.session.handle,
            block.nonce,
            block.nonce,
            len(block.parts),
            block.tokens,
            "compact" if fresh else "turn",
        )
        if fresh:
            make_due(folder)
    return block


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
