"""The mark behind a human's words that later ones took back, or seem to.

Invariant: it says which words these are, so that the reader decides; where nobody can be sure it quotes them.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsmem.core.fold import Instruction
from obsmem.core.ids import entry_id
from obsmem.memory.wording import clean, clip

QUOTED = 240  # characters of the later words: as many as are compared, so that nothing is cut that says whose they are
ONE_THING = 200  # characters: what a human says in so few is about one thing
SUPERSEDED = "[superseded]"


def outdated(said: Instruction, handle: str) -> str:
    """What became of an instruction of a session since; '' where it stands alone."""
    if said.superseded_by is not None:
        return f"[superseded by {entry_id(handle, said.superseded_by)}]"
    if said.later is None:
        return ""
    how = "later on the same:" if said.later_is == "same" else f"{said.later_is}, it seems, by"
    return f'[{how} {entry_id(handle, said.later)}: "{clip(clean(said.later_words), QUOTED)}"]'


def note_marks(instructions: Iterable[Instruction], handle: str) -> dict[int, str]:
    """What stands behind a note, by the seq of the human's words that it cites; SUPERSEDED where these hold no more, it seems."""
    marks: dict[int, str] = {}
    for said in instructions:
        if said.superseded_by is not None or (said.later_is == "superseded" and len(said.words) <= ONE_THING):
            marks[said.seq] = SUPERSEDED
        elif said.later is not None and len(said.words) <= ONE_THING:
            marks[said.seq] = outdated(said, handle)
    return marks
