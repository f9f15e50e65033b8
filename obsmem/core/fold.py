"""The facts of all cards, folded into the state of things now: orders, files, commands, to-dos, commits.

A pure function of the cards in order; the renderer and the extractive worker both read it. Invariant: an order is
superseded only by a later human sentence that plainly takes back an object which the order names; when in doubt both
stand. Nothing is forgotten for being old.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from obsmem.core import late
from obsmem.core.claims import Claim, Later, Topic, claims_in, on_the_same, replaces, topics_in
from obsmem.core.model import Card, Fact

IDENTIFIERS_KEPT = 150
MOST_NAMED = 3  # earlier texts that two words may stand in and still name one thing
NAMING_KEPT = 1_500  # entries, the newest, of which is known what they name


class Order(NamedTuple):
    """One sentence of a human that carries a cue. ``revokes`` are the objects of earlier orders that it takes back.

    ``superseded_by`` is the seq of the instruction that took it back, None while it stands.
    """

    words: str
    cues: tuple[str, ...]
    standing: bool
    objects: tuple[str, ...]
    revokes: tuple[str, ...] = ()
    superseded_by: int | None = None

    def as_json(self) -> list[Any]:
        """The form that a fact's detail keeps."""
        return [self.words, list(self.cues), self.standing, list(self.objects), list(self.revokes)]


class Instruction(NamedTuple):
    """What a human said in one entry. Superseded only when each of its orders is. ``later`` is the seq of words that give a
    thing another value than these do, or take it back: these still stand beside it, since nobody can be sure. ``later_words`` are the
    sentence there, ``later_is`` what it seems to be to these.
    """

    seq: int
    at: int
    words: str
    cues: tuple[str, ...]
    standing: bool
    orders: tuple[Order, ...]
    superseded_by: int | None = None
    later: int | None = None
    later_words: str = ""
    later_is: Later = ""


class FileState(NamedTuple):
    """What happened to one path. Times in milliseconds, seq -1 where it never happened.

    ``identifiers`` are (name, seq) of what changes defined in this file, or a look at it showed; ``mentions`` of what
    changes call and use. The newest change comes first.
    """

    path: str
    edits: int = 0
    last_edit_at: int = 0
    last_edit_seq: int = -1
    last_read_at: int = 0
    last_read_seq: int = -1
    created: bool = False
    deleted: bool = False
    identifiers: tuple[tuple[str, int], ...] = ()
    mentions: tuple[tuple[str, int], ...] = ()

    @property
    def read_only(self) -> bool:
        """True if the file was read and never changed."""
        return self.edits == 0 and not self.deleted


class CommandState(NamedTuple):
    """How a command ended: the last run, the newest failing run, and the first good run after that one."""

    command: str
    last: Fact
    runs: int = 1
    failure: Fact | None = None
    fixed_by: Fact | None = None

    @property
    def broken(self) -> bool:
        """True if it failed and no later run is known to have succeeded."""
        return self.failure is not None and self.fixed_by is None

    @property
    def noise(self) -> bool:
        """True if the command only looked around."""
        return bool(self.last.detail.get("noise"))


class State(NamedTuple):
    """Where things stand after the folded cards. All tuples are in order of time, newest last."""

    instructions: tuple[Instruction, ...] = ()
    files: Mapping[str, FileState] = {}
    commands: Mapping[str, CommandState] = {}
    failing: tuple[CommandState, ...] = ()
    todos: tuple[tuple[str, str, str, int], ...] = ()
    commits: tuple[Fact, ...] = ()
    conclusion: Fact | None = None
    question: Fact | None = None
    next_step: Fact | None = None
    decisions: tuple[Fact, ...] = ()
    answers: tuple[Fact, ...] = ()
    plan: Fact | None = None
    focus: Fact | None = None
    skills: tuple[Fact, ...] = ()
    tasks: tuple[Fact, ...] = ()
    naming: tuple[Fact, ...] = ()


_SETTING = late.pattern(
    r"(port|version|timeout|limit|budget|threads?|workers?|retries|depth|width|python|node)"
    r"(?: number)?(?: to| of| is|=|:)? ?v?(\d[\w.]*)",
    re.IGNORECASE,
)
_VIEW_OF_OUTPUT = late.pattern(
    r"(?:\s*2>&1|\s*\|\s*(?:tail|head|cat|tee|grep)\b(?:\"[^\"]*\"|'[^']*'|[^|;&\"'])*|\s*[;&]+\s*echo\b[^;|&]*)+\s*$"
)


def setting_of(value: str) -> str:
    """The noun of a setting with its number: "port 8080" -> "port"; '' where the text is none."""
    match = _SETTING.fullmatch(value.strip())
    return match.group(1).casefold().rstrip("s") if match else ""


def same_object(one: str, other: str) -> bool:
    """True if two named objects are the same thing: equal but for case and quotes, or two values of one setting."""
    left, right = one.casefold().strip("`\"' "), other.casefold().strip("`\"' ")
    return left == right or (setting_of(left) != "" and setting_of(left) == setting_of(right))


def command_key(command: str) -> str:
    """A command without what only changes how its output is seen (``2>&1 | tail -20``)."""
    return _VIEW_OF_OUTPUT.sub("", command) or command


def relative_path(path: str, cwd: str) -> str:
    """The path below ``cwd`` where it is below it, else the path as it is. Both separators count."""
    if cwd and path.startswith(cwd):
        rest = path[len(cwd) :]
        if cwd.endswith(("/", "\\")):
            return rest or path
        if rest.startswith(("/", "\\")):
            return rest[1:] or path
    return path


def fold(cards: Iterable[Card], cwd: str = "") -> State:
    """Fold cards, oldest first, into the state after them. Paths below ``cwd`` come out relative to it."""
    return Fold(cwd).add(cards).state()


class Fold:
    """A fold that can go on: add cards in order, ask for the state at any time."""

    def __init__(self, cwd: str = "") -> None:
        self.cwd = cwd
        self.files: dict[str, FileState] = {}
        self.commands: dict[str, CommandState] = {}
        self._instructions: list[Instruction] = []
        self._claims: list[tuple[int, Claim]] = []  # place among the instructions
        self._topics: dict[tuple[str, str], list[tuple[int, Topic]]] = {}  # by what they name
        self._todos: tuple[tuple[str, str, str, int], ...] = ()
        self._commits: dict[str, Fact] = {}
        self._decisions: list[Fact] = []
        self._answers: list[Fact] = []
        self._newest: dict[str, Fact] = {}
        self._skills: dict[str, Fact] = {}
        self._tasks: dict[str, Fact] = {}  # what runs in the background
        self._naming: deque[Fact] = deque(maxlen=NAMING_KEPT)

    def add(self, cards: Iterable[Card]) -> Fold:
        """Take in the next cards."""
        for card in cards:
            for fact in card.facts:
                self.take(fact)
        return self

    def take(self, fact: Fact) -> None:
        """Take in the next fact. Kinds that carry no lasting state are passed over."""
        if fact.kind == "instruction":
            self._instruct(fact)
        elif fact.kind in ("read", "edit", "write", "delete"):
            path = relative_path(fact.subject, self.cwd)
            self.files[path] = _changed(self.files.get(path, FileState(path)), fact)
        elif fact.kind == "command":
            self._run(fact)
        elif fact.kind == "names":
            self._naming.append(fact)
        elif fact.kind == "todo":
            self._list(fact)
        elif fact.kind == "commit":
            self._commits[fact.subject] = fact
        elif fact.kind == "decision":
            self._decisions.append(fact)
        elif fact.kind == "answer":
            self._answers.append(fact)
            self._newest.pop("question", None)
        elif fact.kind in ("conclusion", "question", "next", "plan", "focus"):
            self._newest[fact.kind] = fact
        elif fact.kind == "skill":
            name = fact.subject.lstrip("/")  # as a human writes it, and as an agent does
            self._skills.pop(name, None)  # the newest stands last
            self._skills[name] = fact
        elif fact.kind == "task":
            name = str(fact.detail.get("id"))
            self._tasks.pop(name, None)
            if fact.detail.get("state") == "running":
                self._tasks[name] = fact

    def _instruct(self, fact: Fact) -> None:
        self._newest.pop("question", None)
        orders = tuple(read_order(value) for value in fact.detail.get("orders", ()))
        revoked = [value for order in orders for value in order.revokes]
        seq = fact.seqs[-1]
        if revoked:
            self._instructions = [_revoke(earlier, revoked, seq) for earlier in self._instructions]
        self._compare(fact.text, seq)
        cues = tuple(fact.detail.get("cues", ()))
        standing = bool(fact.detail.get("standing"))
        self._instructions.append(Instruction(seq, fact.at, fact.text, cues, standing, orders))

    def _compare(self, text: str, seq: int) -> None:
        """Note of which earlier words these are on the same, and what they say of it; keep what they name for later ones."""
        claims, topics = claims_in(text), topics_in(text)
        for place, old in self._claims:
            for claim in claims:
                if replaces(claim, old):
                    self._note_later(place, seq, claim.words, "superseded")
        for topic in topics:
            # Sorted, since a set comes in another order in each process.
            for place, earlier in dict.fromkeys(one for name in sorted(topic.names) for one in self._named(name)):
                how = on_the_same(topic, earlier)
                if how and self._instructions[place].later_is != "superseded":
                    self._note_later(place, seq, topic.words, how)
        self._claims += [(len(self._instructions), claim) for claim in claims]
        for topic in topics:
            for name in topic.names if topic.values else ():
                self._topics.setdefault(name, []).append((len(self._instructions), topic))

    def _named(self, name: tuple[str, str]) -> list[tuple[int, Topic]]:
        """Earlier topics that name this; none where so many do that it is a way of speaking."""
        topics = self._topics.get(name, [])
        return topics if len(topics) <= MOST_NAMED else []

    def _note_later(self, place: int, seq: int, words: str, how: Later) -> None:
        self._instructions[place] = self._instructions[place]._replace(later=seq, later_words=words, later_is=how)

    def _run(self, fact: Fact) -> None:
        key = command_key(fact.subject)
        known = self.commands.pop(key, None)  # the newest run stands last
        failure, fixed_by = (known.failure, known.fixed_by) if known else (None, None)
        if fact.ok is False:
            failure, fixed_by = fact, None
        elif failure and fixed_by is None and fact.ok:
            fixed_by = fact
        self.commands[key] = CommandState(key, fact, known.runs + 1 if known else 1, failure, fixed_by)
        if fact.ok:
            self._mend_parts(key, fact)

    def _mend_parts(self, key: str, fact: Fact) -> None:
        """``a && b`` ended well, so ``a`` and ``b`` did; and where tests failed in ``a some/tests``, a good run of ``a``
        had them too."""
        mended = [part for part in key.split(" && ") if part != key]
        mended += [
            name
            for name, known in self.commands.items()
            if name.startswith(key + " ") and known.failure is not None and known.failure.detail.get("failing")
        ]
        for name in mended:
            known = self.commands.get(name)
            if known is not None and known.broken:
                self.commands[name] = known._replace(fixed_by=fact)

    def _list(self, fact: Fact) -> None:
        since = {(item[0], item[1], item[2]): item[3] for item in self._todos}
        self._todos = tuple(
            (str(key), str(status), str(text), since.get((str(key), str(status), str(text)), fact.seqs[0]))
            for key, status, text in fact.detail.get("items", ())
        )

    def state(self) -> State:
        """The state after everything that was added."""
        failing = tuple(command for command in self.commands.values() if command.broken and not command.noise)
        return State(
            instructions=tuple(self._instructions),
            files=dict(self.files),
            commands=dict(self.commands),
            failing=failing,
            todos=self._todos,
            commits=tuple(self._commits.values()),
            conclusion=self._newest.get("conclusion"),
            question=self._newest.get("question"),
            next_step=self._newest.get("next"),
            decisions=tuple(self._decisions),
            answers=tuple(self._answers),
            plan=self._newest.get("plan"),
            focus=self._newest.get("focus"),
            skills=tuple(self._skills.values()),
            tasks=tuple(self._tasks.values()),
            naming=tuple(self._naming),
        )


def read_order(value: list[Any]) -> Order:
    """An order from the form that a fact's detail keeps."""
    words, cues, standing, objects, revokes = value
    return Order(str(words), tuple(cues), bool(standing), tuple(objects), tuple(revokes))


def _revoke(instruction: Instruction, revoked: list[str], seq: int) -> Instruction:
    """Mark the orders that name a revoked object, and the instruction when none of its orders is left."""
    if instruction.superseded_by is not None or not instruction.orders:
        return instruction
    orders = tuple(
        order._replace(superseded_by=seq)
        if order.superseded_by is None and any(same_object(one, other) for one in order.objects for other in revoked)
        else order
        for order in instruction.orders
    )
    done = all(order.superseded_by is not None for order in orders)
    standing = any(order.standing and order.superseded_by is None for order in orders)
    return instruction._replace(orders=orders, standing=standing, superseded_by=seq if done else None)


def _changed(file: FileState, fact: Fact) -> FileState:
    names = _newest(file.identifiers, fact, "identifiers")
    if fact.kind == "read":
        return file._replace(last_read_at=fact.at, last_read_seq=fact.seqs[-1], identifiers=names)
    changed = file._replace(edits=file.edits + 1, last_edit_at=fact.at, last_edit_seq=fact.seqs[-1])
    if fact.kind == "delete":
        return changed._replace(deleted=True)
    created = file.created or (fact.kind == "write" and file.edits == 0 and file.last_read_seq < 0)
    mentions = _newest(file.mentions, fact, "mentions")
    return changed._replace(deleted=False, created=created, identifiers=names, mentions=mentions)


def _newest(known: tuple[tuple[str, int], ...], fact: Fact, key: str) -> tuple[tuple[str, int], ...]:
    """Names with their seq, the newest change first and within it as the fact lists them; what is known moves up."""
    fresh = {str(name): fact.seqs[0] for name in fact.detail.get(key, ())}
    if not fresh:
        return known
    return (*fresh.items(), *(pair for pair in known if pair[0] not in fresh))[:IDENTIFIERS_KEPT]
