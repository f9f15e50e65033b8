"""A headless loop: one prompt after another in one session, and in a fresh one with the handoff when the window fills.

Invariants: a prompt is given once; a turn in which a tool ran is never given again; a session is left once; each decision
is told and written down with the numbers that it turned on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import ROTATE, RUN
from obsmem.core.errors import NotFound
from obsmem.core.pressure import Occupancy
from obsmem.core.refusals import read_refusal
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES
from obsmem.store.memory_rotations import TAKEN
from obsmem.system.shown import Shown, Streams, run_shown
from obsmem.tasks.decide import decide
from obsmem.tasks.drain import drain
from obsmem.tasks.handoff import handoff_block
from obsmem.tasks.occupancy import occupancy
from obsmem.tasks.rotation import cancel_rotation, link_rotation
from obsmem.tasks.run_session import Begun, bring_up_to_date, find_begun, known_sources, turn_line
from obsmem.tasks.store import Store
from obsmem.tasks.windows import learn_window

DONE, FAILED, TOO_SMALL = 0, 3, 4  # exit statuses
ROTATE_AT, STOP_AT = 0.8, 0.97  # parts of the window
LEAST_TURNS = 5
TURN_SECONDS = 7200.0
DRAIN_SECONDS = 120.0  # for what nobody observed yet, before a handoff
MOST_REFUSALS = 2  # in a row, for one prompt: then the window is too small for it


class Plan(NamedTuple):
    """What a loop runs and when it changes windows. ``arguments`` are the user's own for the program; ``rotate_at`` and
    ``stop_at`` are parts of the window, ``seconds`` the most that one turn may take."""

    harness: str
    program: str
    arguments: tuple[str, ...]
    folder: str
    rotate_at: float = ROTATE_AT
    stop_at: float = STOP_AT
    least_turns: int = LEAST_TURNS
    style: str = "notes"
    seconds: float = TURN_SECONDS


class Told(NamedTuple):
    """One decision of the loop: what, why, the session's handle ('' where none has begun), and the numbers."""

    what: str
    why: str
    session: str
    numbers: Mapping[str, Any]


class Loop:
    """One run. ``stored`` is the session that it goes on with, if any; ``tell`` hears of each decision, and ``streams`` get what
    the program says."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        clock: Clock,
        tell: Callable[[Told], None],
        streams: Streams,
        stored: StoredSession | None = None,
    ) -> None:
        self.store, self.plan, self.clock, self.tell, self.streams, self.stored = (
            store,
            plan,
            clock,
            tell,
            streams,
            stored,
        )
        self.turns = 0  # in this window
        self.windows = 1
        self.number = 0  # of the prompt, from 1
        self.handoff = self.delivery = ""  # what a fresh session begins with
        self.full: tuple[str, Occupancy] | None = None  # why the window is left before the next prompt

    def run(self, prompts: Iterable[str]) -> int:
        """Serve every prompt; returns the exit status. Raises NotFound where no session can be read back."""
        for prompt in prompts:
            self.number += 1
            status = self._serve(prompt)
            if status != DONE:
                return status
        self._say("ended", "no prompt is left", prompts=self.number, windows=self.windows)
        return DONE

    def _serve(self, prompt: str) -> int:
        """One prompt, in as many windows as it takes."""
        if self.full is not None:
            self._rotate(*self.full)
        words = prompt
        for _ in range(MOST_REFUSALS):
            shown, worked = self._turn(words)
            refusal = self._refusal(shown)
            if refusal is None:
                return self._judge(shown, worked)
            window, asked = refusal
            if window and self.stored is not None:
                model = self.stored.session.model
                learn_window(self.store, self.plan.harness, model, window, "learned from a refusal")
            self._say("refused", "the prompt did not fit", window=window, asked=asked, tools_ran=worked)
            if self.stored is None:
                break  # not even the first words fit
            self._rotate("the window is full", occupancy(self.store, self.stored))
            # What tools have done is done: the handoff says what was asked and how far it came.
            words = "" if worked else prompt
        self._say("stopped", "even a fresh window is too small", prompt=self.number)
        return TOO_SMALL

    def _turn(self, words: str) -> tuple[Shown, bool]:
        """Run the program with one prompt, and read what came of it: how it ended, and whether a tool ran."""
        before = known_sources(self.plan.harness) if self.stored is None else frozenset()
        last = -1 if self.stored is None else self.stored.last_seq
        session = "" if self.stored is None else self.stored.session.id
        text = "\n\n".join(part for part in (self.handoff, words) if part)
        line = turn_line(self.plan.harness, self.plan.program, self.plan.arguments, session)
        self._say("turn", "begins", prompt=self.number, fresh=not session, handoff=bool(self.handoff))
        shown = run_shown(line, self.plan.folder, os.environ, self.plan.seconds, text, self.streams)
        if self.stored is None:
            begun = Begun(self.plan.harness, self.plan.folder, words, self.delivery)
            self.stored = find_begun(self.store, begun, before)
        else:
            self.stored = bring_up_to_date(self.store, self.stored)
        if self.stored is None:
            return shown, False
        if self.handoff:
            link_rotation(self.store, self.stored)
            self.handoff = self.delivery = ""
        self.turns += 1
        calls = self.store.archive.entries(
            self.stored.no, last + 1, where=f"kind={KIND_CODES['tool_call']} AND copied=0"
        )
        return shown, next(iter(calls), None) is not None

    def _refusal(self, shown: Shown) -> tuple[int, int] | None:
        """The window and the size that a refusal names; None where the turn was not refused for its length."""
        return read_refusal(shown.tail[-20_000:]) if shown.status not in (0, None) else None

    def _judge(self, shown: Shown, worked: bool) -> int:
        """After a turn that was not refused: stop where it failed, else measure and say what comes next."""
        if shown.status != 0:
            how = "was killed at its deadline" if shown.status is None else f"ended with status {shown.status}"
            self._say("stopped", f"the program {how}", prompt=self.number, tools_ran=worked)
            return FAILED
        if self.stored is None:
            raise NotFound(
                f"The turn went well, but no session of {self.plan.harness} in {self.plan.folder} holds its prompt, so nothing "
                "can be measured. Is memory off here, or the folder excluded? 'observational-memory doctor' says."
            )
        now = occupancy(self.store, self.stored)
        share = now.share
        numbers = {
            "tokens": now.tokens, "counted": now.counted, "estimated": now.estimated, "window": now.window.usable,
            "share": round(share, 3), "turns": self.turns, "rotate_at": self.plan.rotate_at, "stop_at": self.plan.stop_at,
        }  # fmt: skip
        if share >= self.plan.stop_at and self.turns == 1 and self.windows > 1:
            self._say("stopped", "even a fresh window is too small", **numbers)
            return TOO_SMALL
        if share >= self.plan.stop_at:
            self.full = ("the window is nearly full", now)
        elif share >= self.plan.rotate_at and self.turns >= self.plan.least_turns:
            self.full = ("the window fills", now)
        else:
            self._say("stay", self._why_stay(now), **numbers)
            return DONE
        self._say("leave", self.full[0], **numbers)
        return DONE

    def _why_stay(self, now: Occupancy) -> str:
        if not now.window.usable:
            return "the window of this model is not known yet"
        return "too few turns to leave" if now.share >= self.plan.rotate_at else "there is room"

    def _rotate(self, why: str, now: Occupancy) -> None:
        """Leave the session: what was not observed is, and the next prompt begins a fresh one with the handoff."""
        assert self.stored is not None
        store, stored = self.store, self.stored
        drain(store, stored, self.clock, time.monotonic() + DRAIN_SECONDS, workers=True)
        if store.memory.waiting_rotation(stored.session.handle) is not None:
            cancel_rotation(store, stored)  # else a hook would give it, too
        block = handoff_block(store, stored, self.plan.style, self.clock)
        mark = store.memory.begin_rotation(stored.session.handle, self.plan.style)
        store.memory.add_delivery(mark.no, block.nonce)
        store.memory.end_rotation(mark.no, TAKEN)
        numbers: dict[str, Any] = {
            "tokens": now.tokens,
            "window": now.window.usable,
            "turns": self.turns,
            "handoff_tokens": block.tokens,
        }
        decide(store, stored, ROTATE, why, delivery=block.nonce, style=self.plan.style, **numbers)
        self._say("rotate", why, **numbers)
        self.handoff, self.delivery = "\n".join(block.parts), block.nonce
        self.stored, self.full, self.turns = None, None, 0
        self.windows += 1

    def _say(self, what: str, why: str, **numbers: Any) -> None:
        handle = self.stored.session.handle if self.stored is not None else ""
        if self.stored is not None:
            decide(self.store, self.stored, RUN, f"{what}: {why}", **numbers)
        self.tell(Told(what, why, handle, numbers))
