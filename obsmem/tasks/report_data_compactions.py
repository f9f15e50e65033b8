"""What a compaction lost and what the block kept: each thing that was known before it, looked for in what came after it.

How it is told, without a model: a thing is *in* a text where its own words stand there, a file by its path or the end of it, a
command by its line, a commit by its hash, what was said by its beginning. A block also *names* a thing where it cites the entry
that shows it, or a note of it: one ``recall`` away. A summary that says a thing in other words is not seen to say it.
Invariant: both texts are asked by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from obsmem.core.clean import one_line
from obsmem.core.clock import Clock
from obsmem.core.fold import Fold, State
from obsmem.core.ids import entry_id
from obsmem.core.model import Card, Fact
from obsmem.memory.sections import note_seqs
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES
from obsmem.store.measures import Measured
from obsmem.tasks.compactions import Compaction, compactions
from obsmem.tasks.deliver import make_block
from obsmem.tasks.entries import read_entries
from obsmem.tasks.explain import block_text
from obsmem.tasks.report_data_notes import Kept
from obsmem.tasks.report_data_words import clean_text
from obsmem.tasks.store import Store

MOST_RENDERED = 8  # compactions without a delivery, the newest, for which the block is rendered again
MOST_LISTED = 600  # things of one compaction that are listed; the others are counted
MOST_ROWS = 6_000  # of all compactions together
BEGINNING = 60  # characters by which words are known again
COMMAND = 80  # and of a command's line
SHOWN = 200  # characters of a thing that are listed
DELIVERED, RENDERED, NOTHING = "delivered", "rendered", "none"
IN, NAMED, NOT, UNASKED = "in", "named", "not", "unasked"
NOTES = "notes"
_LOST_FIRST = {NOT: 0, NAMED: 1, IN: 2}
_SUMMARY = f"kind={KIND_CODES['summary']} AND active=1 AND replaced_by IS NULL"


class Thing(NamedTuple):
    """Something that was known before a compaction. ``key`` is what is looked for; ``summary`` and ``block`` say whether it
    was found there: in | named | not (unasked: a note's words are our own, and no summary has
    them; or there is no summary that can be read). ``note`` is the id of the note that it is, '' for a fact."""

    kind: str
    text: str
    key: str
    seq: int
    note: str = ""
    summary: str = NOT
    block: str = NOT


class Tally(NamedTuple):
    """Of one kind of things: how many were known, how many the summary holds, how many the block holds, how many it only
    names, and how many neither holds nor names."""

    kind: str
    known: int
    summary: int
    block: int
    named: int
    lost: int


class Crossing(NamedTuple):
    """One compaction. ``source`` says what ``block`` is: delivered (its ``parts`` of ``of`` that the transcript shows), rendered
    (nothing was delivered: what would have been, of what is known now of the record up to there), or none."""

    number: int
    at: int
    found: Compaction
    summaries: tuple[int, ...]
    summary_tokens: int
    source: str
    delivery: str
    parts: tuple[int, ...]
    of: int
    block: str
    tallies: tuple[Tally, ...]
    things: tuple[Thing, ...]
    more: int


class _Block(NamedTuple):
    source: str = NOTHING
    delivery: str = ""
    parts: tuple[int, ...] = ()
    of: int = 0
    text: str = ""
    seqs: frozenset[int] = frozenset()


def crossings(
    store: Store,
    stored: StoredSession,
    cards: Sequence[Card],
    measures: Sequence[Measured],
    notes: Sequence[Kept],
    clock: Clock,
) -> Iterator[Crossing]:
    """The compactions of a session, in order, each with what was known before it and where that is now."""
    found = compactions(store, stored, measures)
    facts = sorted(((max(fact.seqs), fact) for card in cards for fact in card.facts), key=lambda one: one[0])
    folding, place = Fold(stored.session.cwd), 0
    most = min(MOST_LISTED, MOST_ROWS // max(1, len(found)))
    for number, one in enumerate(found, 1):
        while place < len(facts) and facts[place][0] < one.seq:
            folding.take(facts[place][1])
            place += 1
        end = found[number].seq if number < len(found) else stored.last_seq + 1
        summaries = list(store.archive.entries(stored.no, one.seq, end - 1, _SUMMARY))
        near = [row for row in summaries if row.seq <= summaries[0].seq + 3]
        summary = "\n".join(entry.text for entry in read_entries(store, stored, near, lost=True))
        block = _block(store, stored, one.seq, end, clock, render=number > len(found) - MOST_RENDERED)
        known = [*_facts(folding.state()), *_notes(notes, one.seq)]
        things = _look(known, clean_text(store, summary), block, {note.note.id: note for note in notes}, stored)
        row = store.archive.entry(stored.no, one.seq)
        listed = sorted(things, key=lambda thing: (_LOST_FIRST[thing.block], thing.summary == IN))[:most]
        yield Crossing(
            number, row.at if row else 0, one, tuple(row.seq for row in near), sum(row.tokens for row in near),
            block.source, block.delivery, block.parts, block.of, block.text, tuple(_tallies(things)),
            tuple(listed), len(things) - len(listed),
        )  # fmt: skip


def _block(store: Store, stored: StoredSession, seq: int, end: int, clock: Clock, *, render: bool) -> _Block:
    """The block that the transcript shows behind a boundary, else what would have been given."""
    handle = stored.session.handle
    behind = [one for one in store.memory.receipts(handle) if seq < one[2] < end]
    if behind:
        delivery = behind[0][0]
        texts = {
            int(part.partition("/")[0]): block_text(store, stored, delivery, part, at)
            for name, part, at, _ in behind
            if name == delivery
        }
        text = clean_text(store, "\n".join(texts[number] for number in sorted(texts)))
        of = int(behind[0][1].partition("/")[2] or 1)
        return _Block(DELIVERED, delivery, tuple(sorted(texts)), of, text)
    if not render:
        return _Block()
    made = make_block(store, stored, clock, up_to=seq)
    if not made.parts:
        return _Block()
    seqs = frozenset(seq for one in made.reasons if one.why == "shown" for seq in one.seqs)
    count = len(made.parts)
    return _Block(RENDERED, "", tuple(range(1, count + 1)), count, clean_text(store, "\n".join(made.parts)), seqs)


def _facts(state: State) -> Iterator[Thing]:
    """What the cards knew, as far as it may matter later: looking around, and what was done with, is left out."""
    for said in state.instructions:
        yield Thing("what the user said", said.words, _beginning(said.words), said.seq)
    for answer in state.answers:
        yield Thing(
            "what the user answered", f"{answer.text} (to: {answer.subject})", _beginning(answer.text), answer.seqs[-1]
        )
    for path, file in state.files.items():
        if file.read_only:
            yield Thing("files read", path, _end_of(path), file.last_read_seq)
        else:
            yield Thing("files changed", path, _end_of(path), file.last_edit_seq)
    for command in state.commands.values():
        if not command.noise:
            last = command.failure if command.broken and command.failure else command.last
            kind = "commands that fail" if command.broken or command.last.ok is False else "commands that ended well"
            yield Thing(kind, f"{command.command} → {_outcome(last)}", _line(command.command), last.seqs[-1])
    for commit in state.commits:
        yield Thing("commits", f"{commit.subject} {commit.text}", commit.subject[:7], commit.seqs[-1])
    for _, status, text, seq in state.todos:
        if status != "done":
            yield Thing("open to-dos", text, _beginning(text), seq)
    for decision in state.decisions:
        yield Thing("decisions", decision.text, _beginning(decision.text), decision.seqs[-1])


def _outcome(fact: Fact) -> str:
    code = fact.detail.get("exit")
    how = {True: "ok", False: "failed", None: "ended"}[fact.ok] if not code else f"exit {code}"
    return f"{how}: {fact.text}" if fact.text else how


def _notes(notes: Sequence[Kept], seq: int) -> Iterator[Thing]:
    for one in notes:
        if one.seq < seq and one.state == "visible":
            yield Thing(NOTES, one.note.text, _beginning(one.note.text), one.seq, one.note.id)


def _beginning(text: str) -> str:
    return one_line(text)[:BEGINNING].rstrip()


def _line(command: str) -> str:
    return one_line(command)[:COMMAND].rstrip()


def _end_of(path: str) -> str:
    """The name of a file with its folder's, where it has one."""
    return "/".join(path.replace("\\", "/").rstrip("/").split("/")[-2:])


def _look(
    known: Sequence[Thing], summary: str, block: _Block, notes: Mapping[str, Kept], stored: StoredSession
) -> list[Thing]:
    """Each thing with where it is found. Of equal ones the last holds."""
    said, given = one_line(summary), one_line(block.text)
    handle = stored.session.handle
    shown = {id_ for id_, one in notes.items() if f"[{one.short}" in given}
    named = {seq for id_ in shown for seq in note_seqs(notes[id_].note, handle)} | block.seqs
    things = {(thing.kind, thing.key): thing for thing in known if thing.key}
    found = []
    for thing in things.values():
        in_block = IN if thing.note in shown or thing.key in given else NOT
        if in_block == NOT and thing.seq >= 0 and (thing.seq in named or _cites(given, entry_id(handle, thing.seq))):
            in_block = NAMED
        text = one_line(thing.text)
        cut = text if len(text) <= SHOWN else text[: SHOWN - 1].rstrip() + "…"
        in_summary = UNASKED if thing.note or not said else IN if thing.key in said else NOT
        found.append(thing._replace(text=cut, summary=in_summary, block=in_block))
    return found


def _cites(text: str, name: str) -> bool:
    """True if a text holds an entry's id, and not only as the beginning of a longer one."""
    at = text.find(name)
    while at >= 0:
        if not text[at + len(name) : at + len(name) + 1].isdigit():
            return True
        at = text.find(name, at + 1)
    return False


def _tallies(things: Sequence[Thing]) -> Iterator[Tally]:
    """Counts for each kind, in the order in which the kinds come."""
    order = {kind: number for number, kind in enumerate(dict.fromkeys(thing.kind for thing in things))}
    for kind, group in groupby(sorted(things, key=lambda thing: order[thing.kind]), key=lambda thing: thing.kind):
        of_kind = list(group)
        yield Tally(
            kind,
            len(of_kind),
            sum(thing.summary == IN for thing in of_kind),
            sum(thing.block == IN for thing in of_kind),
            sum(thing.block == NAMED for thing in of_kind),
            sum(thing.summary != IN and thing.block == NOT for thing in of_kind),
        )
