"""What a rule for shortening is, and the ways of folding that several rules share.

Invariant: a rule only asks; the sheet decides what may be folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from obsmem.core.reduce_sheet import Sheet

Words = tuple[str, ...]


class Rule(NamedTuple):
    """One rule. ``commands`` are beginnings of commands whose output it reads (``git diff``; ``*`` any); it reads that of any
    other program, too, where ``sign`` is found in it, if there is one. ``about`` says for people what is folded. ``harmless``
    are lines that it knows to be no errors, whatever words they hold. ``talk`` is False where the output is other people's
    text (a diff, a listing), in which neither error words nor repetitions mean anything about the command."""

    name: str
    commands: tuple[str, ...]
    about: str
    fold: Callable[[Sheet, Words], None]
    sign: re.Pattern[str] | None = None
    harmless: tuple[re.Pattern[str], ...] = ()
    talk: bool = True

    def reads(self, words: Words) -> bool:
        """True if the output of this command is in the rule's form by the command's name."""
        return any(begins(words, command) for command in self.commands)


def begins(words: Sequence[str], command: str) -> bool:
    """True if a command's words, options left out, begin with those of ``command``."""
    wanted = command.split(" ")
    if words[0] != wanted[0]:
        return False
    return len(wanted) == 1 or [word for word in words[1:] if not word.startswith("-")][: len(wanted) - 1] == wanted[1:]


def folded_by(label: str, pattern: re.Pattern[str]) -> Callable[[Sheet, Words], None]:
    """A rule that folds every line that matches a pattern in whole words of the program's own."""

    def fold(sheet: Sheet, words: Words) -> None:
        for index, line in enumerate(sheet.said):
            if pattern.match(line) or pattern.match(sheet.bare[index]):
                sheet.fold(index, label)

    return fold


def fold_middle(sheet: Sheet, indices: Sequence[int], first: int, last: int, label: Callable[[int], str] | str) -> None:
    """Keep the ``first`` and the ``last`` of some lines and fold those between."""
    for index in indices[first : len(indices) - last if last else None]:
        sheet.fold(index, label if isinstance(label, str) else label(index))


def grouped(keys: Iterable[tuple[int, str]]) -> Mapping[str, list[int]]:
    """Line numbers by key, both in order."""
    groups: dict[str, list[int]] = {}
    for index, key in keys:
        groups.setdefault(key, []).append(index)
    return groups


def arguments_of(words: Sequence[str]) -> list[str]:
    """The words after the program's name that are no options."""
    return [word for word in words[1:] if not word.startswith("-")]
