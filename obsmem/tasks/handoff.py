"""Making the handoff of a session, for whoever asks: a person, a rotation, a start in another harness.

Invariant: it is made from the record and the notes as they are now, and read by nobody before it is whole.
"""

from __future__ import annotations

from obsmem.core.clock import Clock
from obsmem.core.errors import NotFound, UsageError
from obsmem.core.fold import fold
from obsmem.core.model import Block
from obsmem.memory.handoff import STYLES, commands_pointer, render_handoff
from obsmem.store.archive import StoredSession
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.cards import cards_of
from obsmem.tasks.deliver import disk_state
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store


def handoff_block(
    store: Store, stored: StoredSession, style: str, clock: Clock, *, budget: int | None = None, pointer: str = ""
) -> Block:
    """The handoff as a block in parts. Raises UsageError for a style that there is not, NotFound where the session holds
    nothing to go on with."""
    if style not in STYLES:
        raise UsageError(f"There is no style {style!r} of handoff. Known are: {', '.join(STYLES)}.")
    cards = cards_of(store, stored)
    state = fold(cards, stored.session.cwd)
    block = render_handoff(
        stored.session,
        state,
        remember(store, stored),
        cards,
        style=style,
        budget=store.config["budget_tokens"] if budget is None else budget,
        key=store.key(),
        clock=clock,
        recall=recall_command(),
        program=command(),
        pointer=pointer or commands_pointer(stored.session, command()),
        disk=disk_state(state, stored.session.cwd),
    )
    if not block.parts:
        raise NotFound(f"Session {stored.session.handle} holds nothing to go on with: nobody has said anything in it.")
    return block


def make_handoff(
    store: Store, stored: StoredSession, style: str, clock: Clock, *, budget: int | None = None, pointer: str = ""
) -> str:
    """The handoff as one text. Raises as ``handoff_block`` does."""
    return "\n".join(handoff_block(store, stored, style, clock, budget=budget, pointer=pointer).parts)
