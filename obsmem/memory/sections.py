"""The lines of each section of the block, before any of them is chosen: what could be said, and what matters first.

Invariants: *Now*, *Files* and *Commands* come from cards, so they are complete whatever an observer did; a line binds
things that belong together (a name to its file, an error to its command, words to their time and entry); nothing is
taken from a harness's own summary. Every line is one line, masked, and without control characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from obsmem.core.claims import claims_in, topics_in
from obsmem.core.fold import CommandState, FileState, Instruction, State
from obsmem.core.ids import entry_id
from obsmem.core.model import Fact, Memory, Note, Pin
from obsmem.core.tokens import estimate
from obsmem.memory.outdated import SUPERSEDED, outdated
from obsmem.memory.sections_carried import carried_lines
from obsmem.memory.wording import Line, View, clean, clip, clip_names

WORDS_LIMIT = 2_000  # characters of the last instruction; head and tail beyond
EARLIER_LIMIT = 600  # characters of an earlier instruction
STANDING_LIMIT = 400
QUESTION_LIMIT = 200
LINE_LIMIT = 400  # characters of any other line's text
REPORT_LIMIT = 800  # characters of what the agent last reported
PIN_LIMIT = 4_000
NAMES_ROW = 200  # characters of names after which their file is named again
RECENT_COMMANDS = 8  # of the newest commands, also those are listed that just ended well
BARE_TOKENS = (
    4  # an earlier "yes" or "3" of at most this, that asks for nothing and answers no known question, tells nothing
)
SHORT_ANSWER = 40  # characters: a last instruction this short leans on the one before it
SHORTEST_WORDS = 40  # characters of the last instruction that are shown however small the room is


def now_lines(state: State, view: View, room: int = 1 << 30, earlier_limit: int = EARLIER_LIMIT) -> list[Line]:
    """The last instruction, what stands, what is open, failing and done, and where the agent was.

    The last instruction is shortened until its line costs at most ``room`` tokens: it is never the one left out.
    Earlier ones are clipped to ``earlier_limit`` characters.
    """
    asked = {answer.seqs[-1]: answer.subject for answer in state.answers}
    lines = _last_words(state, view, asked, room)
    shown = {seq for line in lines for seq in line.seqs}
    lines += _standing(state, view, shown)
    shown |= {seq for line in lines for seq in line.seqs}
    lines += _answers(state, view)
    lines += carried_lines(state, view)
    lines += _work(state, view)
    lines += _agent(state, view)
    lines += _earlier_words(state, view, shown, asked, earlier_limit)
    return lines


def _last_words(state: State, view: View, asked: Mapping[int, str], room: int) -> list[Line]:
    if not state.instructions:
        return []
    last = state.instructions[-1]
    limit = WORDS_LIMIT
    lines = [_words("Last instruction", last, view, limit, (0,), 0, asked)]
    while lines[0].cost > room and limit > SHORTEST_WORDS:
        limit = max(limit * 3 // 4, SHORTEST_WORDS)
        lines = [_words("Last instruction", last, view, limit, (0,), 0, asked)]
    if len(last.words.strip()) < SHORT_ANSWER and len(state.instructions) > 1:
        earlier = [one for one in state.instructions[:-1] if len(one.words.strip()) >= SHORT_ANSWER]
        if earlier:
            lines.append(_words("Before it", earlier[-1], view, WORDS_LIMIT // 2, (0.5,), 0.5, asked))
    return lines


def _words(
    label: str,
    said: Instruction,
    view: View,
    limit: int,
    rank: tuple[float, ...],
    order: float,
    asked: Mapping[int, str],
) -> Line:
    """A human's words whole or clipped, bound to the question that they answer, if they answer one."""
    more = f"; whole: {view.recall} {entry_id(view.handle, said.seq)}"
    text = clip(clean(said.words), limit, more)
    mark = outdated(said, view.handle)
    question = f' to "{clip(clean(asked[said.seq]), min(limit, QUESTION_LIMIT))}"' if asked.get(said.seq) else ""
    return Line(
        f'{label} {view.source(said.at, said.seq)}{question}: "{text}" {mark}'.rstrip(),
        rank,
        order,
        seqs=(said.seq,),
    )


def _standing(state: State, view: View, shown: set[int]) -> list[Line]:
    """Lasting orders, newest first. One that is superseded is not listed here; its words stay among the earlier ones.

    A sentence out of an entry does not tell the whole entry: a note of the rest must still find its place.
    """
    lines = []
    for number, said in enumerate(reversed(state.instructions)):
        for order in said.orders:
            if not order.standing or order.superseded_by is not None or said.seq in shown:
                continue
            words = clean(order.words)
            text = clip(words, STANDING_LIMIT)
            told = (said.seq,) if words == clean(said.words) else ()
            mark = outdated(said, view.handle) if claims_in(order.words) or topics_in(order.words) else ""
            lines.append(
                Line(
                    f'Still standing {view.source(said.at, said.seq)}: "{text}" {mark}'.rstrip(),
                    (1, number),
                    10 + number * 0.01,
                    seqs=told,
                )
            )
    return lines


def _work(state: State, view: View) -> list[Line]:
    lines = []
    for number, (_, status, text, seq) in enumerate(state.todos):
        if status == "done":
            continue
        label = "In progress" if status == "doing" else "Open"
        lines.append(
            Line(
                f"{label}: {clip(clean(text), LINE_LIMIT)} {view.source(0, seq)}",
                (2, status != "doing", number),
                20 + number * 0.01,
                seqs=(seq,),
            )
        )
    for number, command in enumerate(reversed([one for one in state.failing if is_check(one)])):
        failure = command.failure or command.last
        lines.append(
            Line("Failing: " + _command_text(command, view), (3, number), 30 + number * 0.01, seqs=failure.seqs)
        )
    done = [clean(text) for _, status, text, _ in state.todos if status == "done"]
    if done:
        lines.append(Line("Done, by the agent's list: " + clip(" · ".join(done), LINE_LIMIT * 2), (6,), 41))
    proofs = [c for c in state.commands.values() if c.last.ok and c.last.detail.get("summary") and not c.noise]
    for number, command in enumerate(reversed(proofs[-3:])):
        lines.append(
            Line(
                "Done, shown by: " + _command_text(command, view),
                (5, number),
                40 + number * 0.01,
                seqs=command.last.seqs,
            )
        )
    for number, commit in enumerate(reversed(state.commits[-6:])):
        text = f"Committed {clean(commit.subject)} {clip(clean(commit.text), 160)} {view.source(commit.at, commit.seqs[-1])}"
        lines.append(Line(text, (5.5, number), 42 + number * 0.01, seqs=commit.seqs))
    return lines


def is_check(command: CommandState) -> bool:
    """True for a command that judges the work (tests, builds, linters): its failure stays open until it passes.
    Any other failing command is only something that went wrong once; *Commands* tells of it."""
    detail = command.failure.detail if command.failure is not None else command.last.detail
    return bool(detail.get("failing") or detail.get("summary")) or _CHECK.search(command.command) is not None


def _agent(state: State, view: View) -> list[Line]:
    """What the agent said last: a claim, marked as one."""
    lines = []
    if state.question is not None:
        lines.append(_said("The agent asked, unanswered", state.question, view, (2.5,), 25))
    if state.next_step is not None:
        lines.append(_said("The agent meant to go on with", state.next_step, view, (4,), 50))
    if state.conclusion is not None:
        lines.append(_said("The agent last reported", state.conclusion, view, (4.5,), 51, REPORT_LIMIT))
    return lines


def _said(label: str, fact: Fact, view: View, rank: tuple[float, ...], order: float, limit: int = LINE_LIMIT) -> Line:
    return Line(
        f'{label} {view.source(fact.at, fact.seqs[-1])}: "{clip(clean(fact.text), limit)}"',
        rank,
        order,
        seqs=fact.seqs,
    )


def _earlier_words(state: State, view: View, shown: set[int], asked: Mapping[int, str], limit: int) -> list[Line]:
    """Everything else that the human said, newest first; an answer that only repeats a newer one is passed over, and
    short answers are the first to go."""
    lines: list[Line] = []
    told: set[tuple[str, str]] = set()
    for number, said in enumerate(reversed([one for one in state.instructions if one.seq not in shown])):
        question = asked.get(said.seq, "")
        bare = estimate(said.words) <= BARE_TOKENS and set(said.cues) <= {"decide"}
        if bare and (not question or (question, said.words) in told):
            continue
        told.add((question, said.words))
        lines.append(_words("Earlier", said, view, limit, (8 if bare else 7, number), 60 + number * 0.001, asked))
    return lines


def _answers(state: State, view: View) -> list[Line]:
    """What the human chose when the agent asked through a tool, newest first."""
    typed = {said.seq for said in state.instructions}
    lines = []
    for number, fact in enumerate(reversed([one for one in state.answers if one.seqs[-1] not in typed])):
        question = clip(clean(fact.subject), QUESTION_LIMIT)
        text = f'Answered {view.source(fact.at, fact.seqs[-1])} to "{question}": "{clip(clean(fact.text), 300)}"'
        lines.append(Line(text, (2.2, number), 15 + number * 0.001, seqs=fact.seqs))
    return lines


def _command_text(command: CommandState, view: View) -> str:
    """The command bound to its outcome: the failure that still stands, or the last run and what it mended."""
    last = command.failure if command.broken and command.failure is not None else command.last
    typed = str(last.detail.get("typed") or last.subject)
    text = f"`{clip(clean(typed), 200)}` → {_outcome(last)} {view.source(last.at, last.seqs[-1])}"
    if last.ok and command.failure is not None:
        text += (
            f"; was failing: {_outcome(command.failure)} {view.source(command.failure.at, command.failure.seqs[-1])}"
        )
    return text


def _outcome(fact: Fact) -> str:
    """How a run ended, bound to the words that decided it."""
    exit_code = fact.detail.get("exit")
    parts = []
    if fact.ok is False or exit_code:
        parts.append(f"exit {exit_code}" if exit_code else "failed")
    summary = clean(str(fact.detail.get("summary") or ""))
    if summary:
        parts.append(clip(summary, 160))
    failing = [clean(str(name)) for name in fact.detail.get("failing", ())]
    if failing:
        parts.append(
            "failing: " + ", ".join(failing[:6]) + (f" and {len(failing) - 6} more" if len(failing) > 6 else "")
        )
    errors = [clean(str(line)) for line in fact.detail.get("errors", ())]
    parts += [
        f'"{clip(line, 240)}"' for line in errors[:2] if line not in summary and not line.endswith(tuple(failing))
    ]
    for place in ("first", "last"):
        line = clean(str(fact.detail.get(place) or ""))
        if line and line not in summary:
            parts.append(f'"{clip(line, 120)}"')
    return "; ".join(parts) or ("ok" if fact.ok else "ended")


def pin_lines(pins: Sequence[Pin], recall: str = "recall", limit: int = PIN_LIMIT) -> list[Line]:
    """What the user pinned, oldest first; one longer than ``limit`` characters loses its middle, with a way to the rest.

    Words that were not typed for it say where they stand and who spoke them (u, t or a, as notes do)."""
    lines = []
    for number, pin in enumerate(pins):
        text = clip(clean(pin.text), limit, f"; whole: {recall} {pin.source or pin.id}")
        origin = f" ({pin.evidence[0]}, {pin.source})" if pin.source else " (a)" if pin.evidence == "agent" else ""
        lines.append(Line(f"- {text}{origin}", (number,), number, ids=(pin.id,)))
    return lines


def pin_cost(pins: Sequence[Pin], recall: str = "recall") -> int:
    """Tokens that pins take in a block that has the room for them."""
    return sum(line.cost for line in pin_lines(pins, recall)) + estimate("## Pins\n") if pins else 0


def file_lines(state: State, view: View, disk: Mapping[str, str], names_limit: int = 240) -> list[Line]:
    """One line a file: how often edited, when, which names live in it; then files that were only read.

    ``disk`` says of a path what is true now: 'changed' since, or 'gone'. ``names_limit`` is in characters a file.
    """
    files = sorted(state.files.values(), key=lambda file: -max(file.last_edit_at, file.last_edit_seq))
    lines = []
    changed = [file for file in files if not file.read_only]
    read = sorted((f for f in files if f.read_only), key=lambda file: -max(file.last_read_at, file.last_read_seq))
    for number, file in enumerate(changed):
        lines.append(Line(_file_text(file, view, disk, names_limit), (0, number), number, seqs=(file.last_edit_seq,)))
    for number, file in enumerate(read):
        text = f"{clean(file.path)}  read {view.source(file.last_read_at, file.last_read_seq)}"
        text += _names(file, names_limit // 2) + _disk(file, disk)
        lines.append(Line(text, (1, number), 10_000 + number, seqs=(file.last_read_seq,)))
    return lines


def _file_text(file: FileState, view: View, disk: Mapping[str, str], names_limit: int) -> str:
    if file.deleted:
        deed = "deleted"
    elif file.created:
        deed = "created" if file.edits == 1 else f"created, edited ×{file.edits - 1}"
    else:
        deed = f"edited ×{file.edits}"
    source = view.source(file.last_edit_at, file.last_edit_seq)
    return f"{clean(file.path)}  {deed} {source}{_names(file, names_limit)}{_disk(file, disk)}"


def _names(file: FileState, limit: int) -> str:
    """The names that live in a file, defined before used, newest first, after a colon; '' where none is known.

    A long list says the file's name again and again, so that each name stands beside the file that it lives in.
    """
    names = [clean(name) for name, _ in (*file.identifiers, *file.mentions)]
    if not names or not limit:
        return ""
    rows: list[list[str]] = [[]]
    size = 0
    for name in clip_names(names, limit).split(", "):
        if size > NAMES_ROW:
            rows.append([])
            size = 0
        rows[-1].append(name)
        size += len(name) + 2
    again = f"; {clean(file.path).rpartition('/')[2]} also: "
    return ": " + again.join(", ".join(row) for row in rows)


def _disk(file: FileState, disk: Mapping[str, str]) -> str:
    mark = disk.get(file.path, "")
    if mark == "gone" and file.deleted:
        return ""
    return {"changed": " [changed since]", "gone": " [gone now]"}.get(mark, "")


def command_lines(state: State, view: View) -> list[Line]:
    """One line a command with how it ended last, its error beside it; failures first, then the newest."""
    lines = []
    for number, command in enumerate(reversed(list(state.commands.values()))):
        failed = command.broken or command.last.ok is False
        if command.noise:
            if failed:  # it only looked around: told where there is room
                lines.append(Line("- " + _command_text(command, view), (3, number), -number, seqs=command.last.seqs))
            continue
        told = bool(command.failure or command.last.detail.get("summary") or command.last.detail.get("refs"))
        if not (failed or told) and number >= RECENT_COMMANDS:
            continue  # that it ran and was fine helps nobody later
        rank = (0 if failed else 1 if told else 2, number)
        lines.append(Line("- " + _command_text(command, view), rank, -number, seqs=command.last.seqs))
    return lines


def reflection_lines(memory: Memory, short: Mapping[str, str]) -> list[Line]:
    """One line a reflection, oldest first; the newest are chosen first."""
    return [
        Line(f"[{short[one.id]}] {clean(one.text)}", (-number,), number, ids=(one.id,))
        for number, one in enumerate(memory.reflections)
    ]


_CHECK = re.compile(
    r"\b(?:tests?|pytest|unittest|jest|vitest|mocha|rspec|tox|nox|lint|eslint|ruff|mypy|pyright|flake8|tsc|clippy|vet|build|"
    r"compile|make|cargo check|gradle|mvn|check|typecheck|fmt|format|validate|verify)\b"
)

_RELEVANCE = {"critical": 0, "high": 1, "medium": 2, "low": 3}
_EVIDENCE = {"user": 0, "tool": 1, "agent": 2}


def note_lines(memory: Memory, short: Mapping[str, str], view: View, marks: Mapping[int, str]) -> list[Line]:
    """One line a note, oldest first. Chosen first: unsuperseded, the user's words, by relevance, the newest. ``marks`` are what
    stands behind a note, by the seq of an entry that it cites."""
    lines = []
    for number, note in enumerate(memory.notes):
        seqs = note_seqs(note, view.handle)
        mark = next((marks[seq] for seq in seqs if seq in marks), "")
        rank = (mark == SUPERSEDED, _RELEVANCE[note.relevance] + _EVIDENCE[note.evidence], -number)
        lines.append(Line(_note_text(note, short, view, mark), rank, number, ids=(note.id,), seqs=seqs))
    return lines


def note_seqs(note: Note, handle: str) -> tuple[int, ...]:
    """The seqs of the entries of this session that a note cites."""
    return tuple(int(name.rpartition(".")[2]) for name in note.entry_ids if name.startswith(handle + "."))


def _note_text(note: Note, short: Mapping[str, str], view: View, mark: str) -> str:
    doubt = "" if note.grounding == "verified" else "?"
    when = view.when(note.at)
    head = f"[{short[note.id]}]" + (f" {when}" if when else "")
    return f"{head} {note.relevance} {note.evidence[0]}{doubt} {clean(note.text)} {mark}".rstrip()
