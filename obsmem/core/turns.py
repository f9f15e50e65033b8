"""A conversation in words that no harness owns, and what is given to a harness to go on with it elsewhere.

Invariant: every word names the entry that it comes from, so that whoever writes it down elsewhere can say so; what has no
entry (``id`` '') is this program's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from obsmem.core.model import Action
from obsmem.core.tuples import NamedTuple

FORK_OPENING = '<observational-memory fork="'


class Words(NamedTuple):
    """What the human or the agent said. ``id`` is the entry's id, ``mark`` its name by content (``forks.mark_of``), ``at``
    in milliseconds."""

    text: str
    id: str = ""
    mark: str = ""
    at: int = 0


class ToolUse(NamedTuple):
    """A tool call with its result. ``input`` is the call's text without the tool's name; ``ok`` None where nobody said how
    it went; the second of each pair is the result's (``result_id`` '' where none was recorded)."""

    name: str
    actions: tuple[Action, ...]
    input: str
    output: str
    ok: bool | None
    call_id: str
    id: str = ""
    mark: str = ""
    result_id: str = ""
    result_mark: str = ""
    at: int = 0
    ended_at: int = 0
    exit_code: int | None = None


Step = Words | ToolUse


class Turn(NamedTuple):
    """What the human said, and what the agent said and did until the human spoke again. ``prompt`` may be empty."""

    prompt: tuple[Words, ...]
    steps: tuple[Step, ...]


class Parentage(NamedTuple):
    """Where a fork comes from: a session by its harness's name and id, its handle here, the last seq that the fork knows,
    and its transcript."""

    harness: str
    session: str
    handle: str
    seq: int
    transcript: str = ""


class Draft(NamedTuple):
    """What a harness is to write as a session of its own. ``preface`` opens it, ``closing`` ends it where the last word is
    not the agent's; both are this program's words. ``folder`` is where the session goes on; ``handoff`` is the text for a
    harness that takes no foreign session; ``now`` in milliseconds; ``keep`` the folder for files that no harness keeps."""

    turns: tuple[Turn, ...]
    preface: str
    closing: str
    title: str
    folder: str
    of: Parentage
    now: int
    handoff: str = ""
    keep: str = ""


class Command(NamedTuple):
    """A program to run in the fork's folder. ``wrong`` says of its standard output what is off, '' for nothing. ``lines`` go
    to its standard input, which stays open until ``enough`` of its output has come. ``name`` is what people call it,
    ``environment`` is for it alone."""

    name: str
    arguments: tuple[str, ...]
    wrong: Callable[[str], str]
    lines: tuple[str, ...] = ()
    enough: Callable[[str], bool] | None = None
    environment: Mapping[str, str] = {}


class Written(NamedTuple):
    """What was written. ``session`` is the harness's id of it ('' where the file is no session); ``source`` the (path,
    session id) that it is read from; ``bring`` what makes the harness take it over, if it must; ``checks`` are what shows
    that its program has it, without asking a model; ``offers`` are the shell lines that go on with it."""

    path: str
    session: str
    source: tuple[str, str]
    offers: tuple[str, ...]
    bring: Command | None = None
    checks: tuple[Command, ...] = ()


def all_words(turn: Turn) -> list[Words]:
    """What was said in a turn, by whomever."""
    return [*turn.prompt, *(step for step in turn.steps if isinstance(step, Words))]


def unsaid(turns: Sequence[Turn], said: str) -> str:
    """The id of the first words of these turns that are not all in a text, line by line; '' where it holds every one."""
    for turn in turns:
        for words in all_words(turn):
            if not all(line.strip() in said for line in words.text.split("\n")):
                return words.id
    return ""


def tool_uses(turn: Turn) -> list[ToolUse]:
    """The tool calls of a turn."""
    return [step for step in turn.steps if isinstance(step, ToolUse)]


def characters(turn: Turn) -> int:
    """How many characters a turn holds."""
    said = sum(len(words.text) for words in all_words(turn))
    return said + sum(len(use.input) + len(use.output) for use in tool_uses(turn))
