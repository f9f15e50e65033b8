"""Asking a model once more: what was wrong with its answer, said so that it can mend it.

Invariant: what the model said before is framed as data like everything else, since it may repeat a transcript's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.model import Request
from obsmem.core.tokens import clip_characters
from obsmem.memory.observe import Accepted
from obsmem.memory.prompt import frame

MOST_PROBLEMS = 12
LONGEST_ANSWER = 20_000  # characters of the old answer that are shown


class Verdict(NamedTuple):
    """What an answer is worth: how many of its proposals hold, and what is wrong with the others."""

    good: int = 0
    problems: tuple[str, ...] = ()

    def better_than(self, other: Verdict) -> bool:
        """True if more holds, or as much with fewer problems."""
        return (self.good, -len(self.problems)) > (other.good, -len(other.problems))


def judge(accepted: Accepted) -> Verdict:
    """What an observer's answer is worth: notes that are verified hold."""
    problems = [f"{reason}: {str(proposal.get('text'))[:200]}" for reason, proposal in accepted.rejected]
    for note in accepted.notes:
        if note.grounding != "verified":
            words = ", ".join(repr(word) for word in note.missing[:5])
            problems.append(f"the cited entries do not have {words}: {note.text[:200]}")
    good = sum(note.grounding == "verified" for note in accepted.notes)
    return Verdict(good, tuple(problems))


def build(request: Request, answer: str, problems: Sequence[str]) -> Request:
    """The same request, with the answer to it and what is wrong with that."""
    told = "\n".join(f"- {problem}" for problem in problems[:MOST_PROBLEMS])
    prompt = (
        f"{request.prompt}\n\nYou answered this before:\n\n{frame('answer', clip_characters(answer, LONGEST_ANSWER))}\n\n"
        f"It could not be used as it stands:\n\n{frame('problems', told)}\n\n"
        "Answer again, whole, in the same form. Keep what was right. Cite the entries that show what a note says, write names "
        "and numbers exactly as they stand there, and leave out what no entry shows."
    )
    return request._replace(prompt=prompt)
