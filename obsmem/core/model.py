"""The values that travel between layers. Owns no behaviour beyond construction.

Invariant: every value is immutable and knows nothing of storage; ids, places and times are given to it. The words
are those of SPEC.md section "Words", and each means one thing everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from obsmem.core.hooks import HookAnswer as HookAnswer
from obsmem.core.hooks import HookEvent as HookEvent
from obsmem.core.tuples import NamedTuple

EntryKind = Literal["user", "assistant", "thinking", "tool_call", "tool_result", "summary", "boundary", "notice"]
Speaker = Literal["human", "agent", "tool", "harness", "subagent"]
Relevance = Literal["low", "medium", "high", "critical"]
Evidence = Literal["user", "tool", "agent"]
Grounding = Literal["verified", "partial", "none"]
ActionKind = Literal[
    "run",
    "edit",
    "write",
    "delete",
    "read",
    "search",
    "todo",
    "ask",
    "plan",
    "fetch",
    "spawn",
    "skill",
    "focus",
    "start",
    "wait",
    "end",
    "other",
]

RELEVANCES: tuple[Relevance, ...] = ("low", "medium", "high", "critical")
OBSERVABLE_KINDS = frozenset({"user", "assistant", "tool_call", "tool_result"})
OBSERVABLE_SPEAKERS = frozenset({"human", "agent", "tool"})


class Place(NamedTuple):
    """Where a record's bytes stand, so that they can be read back without scanning.

    ``source`` is the path of a file or database. A file record has ``line`` (physical, from 1), ``offset`` and
    ``length`` in bytes, its newline included. A database row has ``table`` and ``key`` instead, and ``line`` 0.
    ``sha256`` is the hex digest of the record's bytes.
    """

    source: str
    line: int = 0
    offset: int = 0
    length: int = 0
    sha256: str = ""
    table: str = ""
    key: str = ""


class Action(NamedTuple):
    """What a tool call does, in words that no harness owns. A patch over three files is three actions.

    ``path`` as the harness gave it; ``command`` the shell line; ``new`` and ``old`` the text that an edit brings and
    replaces; ``items`` the to-do list as (id, status, text), status being open | doing | done. A ``skill`` has its name in
    ``command`` and what it was given in ``new``; a ``focus`` what a summary is to attend to in ``new``. ``start``, ``wait`` and
    ``end`` are about what runs in the background: its id in ``path``, how it ended in ``new``. In a result, ``plan`` means that
    the human accepted it.
    """

    kind: ActionKind
    path: str = ""
    command: str = ""
    new: str = ""
    old: str = ""
    items: tuple[tuple[str, str, str], ...] = ()


class Entry(NamedTuple):
    """One block of one transcript record.

    ``seq`` is given once, at archiving (-1 before). ``source_id`` is the harness's own id of the record. ``block`` is
    the index of this entry among the blocks that its record's bytes yield. ``at`` is milliseconds since the epoch, 0
    where the record names no time. ``ok`` is None unless a tool said how it went. ``exit_code`` is None where unknown. ``preface``
    counts the characters at the beginning of a tool's result that the harness wrote around the tool's own words.
    """

    seq: int
    source_id: str
    kind: EntryKind
    speaker: Speaker
    text: str
    tool: str = ""
    call_id: str = ""
    ok: bool | None = None
    at: int = 0
    active: bool = True
    place: Place | None = None
    block: int = 0
    actions: tuple[Action, ...] = ()
    exit_code: int | None = None
    tokens: int = 0
    preface: int = 0

    @property
    def observable(self) -> bool:
        """True for what an observer may read: words of humans and agents, tool calls and their results."""
        return self.kind in OBSERVABLE_KINDS and self.speaker in OBSERVABLE_SPEAKERS

    # Every entry goes through these, and ``_replace`` takes thrice as long.

    def with_tool(self, tool: str) -> Entry:
        """The entry with the name of its tool."""
        return _entry((*self[:_TOOL], tool, *self[_TOOL + 1 :]))

    def archived(self, seq: int, place: Place, tokens: int) -> Entry:
        """The entry with what archiving gave it."""
        return _entry((seq, *self[1:_PLACE], place, *self[_PLACE + 1 : _TOKENS], tokens, *self[_TOKENS + 1 :]))


_entry = Entry._make
_TOOL, _PLACE, _TOKENS = map(Entry._fields.index, ("tool", "place", "tokens"))


class Session(NamedTuple):
    """One conversation in one harness. ``handle`` is unique in the store and never reused.

    ``parent`` is (handle, seq) of the point where a fork or sub-agent began, seq -1 where unknown.
    ``role`` is main | subagent | worker; sessions of workers are never observed. ``started_at`` in milliseconds.
    """

    harness: str
    id: str
    handle: str = ""
    workspace: str = ""
    cwd: str = ""
    transcript: str = ""
    parent: tuple[str, int] | None = None
    started_at: int = 0
    name: str = ""
    role: str = "main"
    model: str = ""
    window: int = 0


class Note(NamedTuple):
    """An observation: one line of text and the entries that bear it. ``at`` in milliseconds, ``tokens`` of its line."""

    id: str
    text: str
    at: int
    relevance: Relevance
    entry_ids: tuple[str, ...]
    evidence: Evidence
    grounding: Grounding
    tokens: int
    missing: tuple[str, ...] = ()


class Reflection(NamedTuple):
    """A lasting statement distilled from notes. ``tokens`` counts its content only (as upstream does)."""

    id: str
    text: str
    note_ids: tuple[str, ...]
    tokens: int


class Drop(NamedTuple):
    """A tombstone: these notes or reflections are no longer shown from ``at`` (milliseconds) on. They stay recallable.
    ``why`` names what refuted or replaced them, if anything did."""

    note_ids: tuple[str, ...]
    at: int
    why: str


class Pin(NamedTuple):
    """Text that the user fixed in every block. ``scope`` is session | workspace | everywhere. ``source`` is the entry, note
    or reflection whose words they are ('' where they were typed), and ``evidence`` says who spoke them."""

    id: str
    text: str
    scope: str
    at: int
    source: str = ""
    evidence: Evidence = "user"


# Kind of fact -> what its fields hold. ``detail`` keys in braces; all facts carry the entries that show them in ``seqs``.
FACT_KINDS: Mapping[str, str] = {
    "instruction": "human words: text = the words whole; {cues: forbid|prefer|correct|decide|ask|do..., standing: bool, objects: quoted values, paths, flags, identifiers named}",
    "answer": "a human's answer to the agent's question: subject = the question, text = the answer",
    "interruption": "the human stopped or refused something: subject = what (tool, command), text = their words, if any",
    "read": "a file was read: subject = path",
    "edit": "a file was changed: subject = path; {identifiers: names that the change defined, mentions: names that it uses, added: lines, removed: lines}",
    "write": "a file was created or overwritten whole: subject = path; {identifiers, added}",
    "delete": "a file was deleted or moved away: subject = path",
    "command": "a command ended: subject = the command line, text = its deciding line, ok; {exit, errors: lines, failing: test names, summary: e.g. '214 passed in 3s', typed: the line as it was typed, first, last: the first and the last line that name trouble, where errors have them not}",
    "commit": "a commit was made: subject = hash, text = message",
    "todo": "the harness's to-do list as it is now: {items: [[id, open|doing|done, text], ...]}",
    "plan": "a plan that the human accepted: subject = its title, text = the plan; {path: the file that it lies in}",
    "skill": "a skill, or a command of the user's own, was taken up: subject = its name, text = what it was given",
    "focus": "what the human asked a compaction's summary to attend to: text",
    "task": "something runs in the background, or ended: subject = what it is; {id, state: running, or how it ended}",
    "conclusion": "what the agent says at the end of a turn: text = its words, clipped",
    "decision": "a choice with its reason, in the agent's words: text",
    "next": "what the agent says it will do next: text",
    "question": "what the agent asked the human and was not yet answered: text",
    "fetch": "a page was fetched: subject = URL",
    "search": "something was searched: subject = query or pattern; {path}",
    "names": "what one entry names: text = paths, identifiers, references, hashes, addresses, parted by blanks; subject = the path, command or tool that it is about; {by: user|agent|call|tool}",
}


class Fact(NamedTuple):
    """One deterministic fact of a turn, and the entries (seq) that show it.

    ``kind`` and the meaning of the other fields are those of FACT_KINDS. ``at`` is in milliseconds. ``detail`` holds
    only strings, numbers, booleans and lists of them, so that it can be kept as JSON. ``ok`` as for entries.
    """

    kind: str
    seqs: tuple[int, ...]
    at: int
    subject: str = ""
    text: str = ""
    ok: bool | None = None
    detail: Mapping[str, Any] = {}


class Card(NamedTuple):
    """The facts of one turn, or of the part of it that was read in one go. No model takes part."""

    session: str
    turn: int
    first_seq: int
    last_seq: int
    facts: tuple[Fact, ...]


class Chunk(NamedTuple):
    """What one observer call sees: consecutive observable entries of one session, as text under a budget.

    ``text`` is what a model reads; ``shown`` maps each entry id to exactly the words that stand in ``text`` for it,
    which is also what citations and grounding are checked against. ``entries`` are exactly the stretch that the call covers.
    ``cap`` is the most tokens that it was allowed.
    """

    session: str
    first_seq: int
    last_seq: int
    entries: tuple[Entry, ...]
    text: str
    shown: Mapping[str, str]
    tokens: int
    cap: int = 0


class Memory(NamedTuple):
    """What is visible now: the fold of notes, reflections, drops and pins along the live path. ``hidden`` says of every note
    that is not visible why: dropped | off the live path | equal to <id of the newer note with the same words>."""

    notes: tuple[Note, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    dropped: frozenset[str] = frozenset()
    pins: tuple[Pin, ...] = ()
    hidden: Mapping[str, str] = {}


class Reason(NamedTuple):
    """Why a line stands in a block, or what could have stood there does not. ``why``: shown | no room | superseded, no room |
    told elsewhere. ``rank`` orders the lines of a section, the lowest is chosen first; ``tokens`` is what the line costs; ``ids``
    are the notes, reflections or pins and ``seqs`` the entries that it shows."""

    section: str
    why: str
    text: str
    rank: tuple[float, ...] = ()
    tokens: int = 0
    ids: tuple[str, ...] = ()
    seqs: tuple[int, ...] = ()


class Block(NamedTuple):
    """The rendered memory. ``parts`` are ready for one hook each; ``shown`` and ``left_out`` are note ids; ``sections`` tokens by
    name; ``reasons`` every line that stands in it, in order, then what was left out."""

    parts: tuple[str, ...]
    tokens: int
    shown: tuple[str, ...]
    left_out: tuple[str, ...]
    nonce: str
    sections: Mapping[str, int] = {}
    reasons: tuple[Reason, ...] = ()


class Request(NamedTuple):
    """What a worker is asked. ``task`` is observe | reflect | drop; values for code, ``prompt`` for a model.

    ``chunk`` and ``cards`` (the facts of exactly that stretch) come with observe, ``state`` (the facts known before
    it) too; ``memory`` with all three; ``limit`` is the most notes that a drop may retire. ``schema`` is the JSON schema
    of the answer, for workers that can hold a model to one; ``version`` is that of the instructions in the prompt.
    """

    task: str
    session: str
    memory: Memory
    chunk: Chunk | None = None
    cards: tuple[Card, ...] = ()
    state: tuple[Card, ...] = ()
    prompt: str = ""
    limit: int = 0
    schema: Mapping[str, Any] = {}
    version: int = 0


class Reply(NamedTuple):
    """A worker's answer. ``items`` are proposals (observe: text, relevance, entry_ids, at; reflect: text, note_ids;
    drop: note_id). An empty list is a deliberate answer; failures are raised, never returned. ``text`` is the answer as
    a model gave it; ``model`` what the other side says that it is."""

    items: tuple[Mapping[str, Any], ...]
    worker: str
    tokens_in: int = 0
    tokens_out: int = 0
    ms: int = 0
    text: str = ""
    model: str = ""
