"""Cards: the deterministic facts of each turn, read from entries without any model.

Invariant: building in pieces gives the same facts as building in one go. So each fact comes out with the entry that
completes it, and what a later entry needs (calls without their result, the to-do list, the last question) is the whole
state, which stays small whatever was fed. A turn is a human entry and all up to the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from obsmem.core.fold import CommandState, FileState, Instruction, Order, State, fold, relative_path
from obsmem.core.model import Action, Card, Entry, Fact
from obsmem.memory import cards_carried, cards_commands, cards_edits, cards_names, cards_words

__all__ = ["CardBuilder", "CommandState", "FileState", "Instruction", "Order", "State", "fold"]

PENDING_LIMIT = 64
CONCLUSION_LIMIT = 600
ANSWER_LIMIT = 600
TODO_LIMIT = 60
COMMAND_KEPT = 2000

_INTERRUPTED = re.compile(
    r"\s*[\[<]?\s*(?:request |turn |conversation )?(?:was )?(?:interrupted|aborted|cancell?ed) by (?:the )?user",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\buser (?:doesn['’]t|does not|didn['’]t|did not) want\b|\b(?:rejected|declined|denied|refused|cancell?ed) by (?:the )?user\b"
    r"|\buser (?:has )?(?:rejected|declined|denied|refused)\b|\btool use was rejected\b",
    re.IGNORECASE,
)
_REFUSAL_WORDS = re.compile(
    r"(?:the user (?:said|provided the following reason[^:]*)|reason(?: for the rejection)?|feedback)\s*:\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_ANSWER_PAIR = re.compile(r'"([^"\n]{3,400})"\s*=\s*"([^"]{1,600})"')
_ISSUED_ID = re.compile(r"#(\w+)")

# The last, perhaps cut, word of a clipped text.
_SPACED_END = re.compile(r"\s+\S*\Z")

Pending = dict[str, Any]


class CardBuilder:
    """Feeds on the active entries of one session in seq order and gives cards.

    ``state`` continues where another builder's ``state()`` ended. Paths below ``cwd`` come out relative to it. ``mask`` takes
    the secrets out of a tool's output before names are taken from it.
    """

    def __init__(
        self,
        session_handle: str,
        state: Mapping[str, Any] | None = None,
        cwd: str = "",
        mask: Callable[[str], str] = str,
    ) -> None:
        state = state or {}
        self._session = session_handle
        self._cwd = cwd
        self._mask = mask
        self._turn = int(state.get("turn", 0))
        self._pending: dict[str, Pending] = dict(state.get("pending", {}))
        self._todos: list[list[str]] = [list(item) for item in state.get("todos", [])]
        self._question: list[Any] = list(state.get("question", []))
        self._running = str(state.get("running", ""))
        self._refused = bool(state.get("refused", False))
        self._proposed: list[Any] = list(state.get("proposed", []))
        self._tasks: cards_carried.Tasks = {name: list(task) for name, task in state.get("tasks", {}).items()}
        self._cards: list[Card] = []
        self._facts: list[Fact] = []
        self._first = self._last = -1

    def state(self) -> dict[str, Any]:
        """What a later builder needs, as JSON; bounded whatever was fed."""
        return {
            "turn": self._turn,
            "pending": dict(self._pending),
            "todos": [list(item) for item in self._todos],
            "question": list(self._question),
            "running": self._running,
            "refused": self._refused,
            "proposed": list(self._proposed),
            "tasks": {name: list(task) for name, task in self._tasks.items()},
        }

    def take(self) -> list[Card]:
        """The cards of what was fed since the last call; a turn that still runs gives a part of its card."""
        self._close()
        cards, self._cards = self._cards, []
        return cards

    def _close(self) -> None:
        if self._facts:
            self._cards.append(Card(self._session, self._turn, self._first, self._last, tuple(self._facts)))
        self._facts = []
        self._first = -1

    def feed(self, entry: Entry) -> None:
        """Read the next entry. What no human, agent or tool said is passed over and ends no turn."""
        focus = any(action.kind == "focus" for action in entry.actions)  # words for a summariser are no order
        human = entry.kind == "user" and entry.speaker == "human" and not focus
        interrupted = entry.kind in ("user", "notice") and _INTERRUPTED.match(entry.text[:80]) is not None
        if human and not interrupted:
            self._close()
            self._turn += 1
        if self._first < 0:
            self._first = entry.seq
        self._last = entry.seq
        if interrupted:
            if not self._refused:  # a refusal is followed by the same news once more
                self._add("interruption", (entry.seq,), entry.at, subject=self._running)
            self._running, self._refused = "", False
        elif human:
            self._running, self._refused = "", False
            self._hear(entry)
            self._note_beside(entry)
            self._facts += cards_names.naming("user", "", entry, self._cwd)
        elif focus or entry.kind == "notice":
            self._note_beside(entry)
        elif entry.kind == "assistant" and entry.speaker == "agent":
            self._listen(entry)
            self._facts += cards_names.naming("agent", "", entry, self._cwd)
        elif entry.kind == "tool_call" and entry.speaker in ("agent", "human"):
            self._call(entry)
        elif entry.kind == "tool_result" and entry.speaker in ("tool", "human"):
            self._return(entry)

    def _note_beside(self, entry: Entry) -> None:
        """What a harness wrote of a skill, of a focus, or of what ran in the background."""
        self._facts += cards_carried.spoken_facts(entry, self._proposed)
        self._facts += cards_carried.end_tasks(self._tasks, entry.actions, entry.at, (entry.seq,))

    def _add(self, kind: str, seqs: tuple[int, ...], at: int, **fields: Any) -> None:
        self._facts.append(Fact(kind, seqs, at, **fields))

    # -- words -----------------------------------------------------------------------------------------------------

    def _hear(self, entry: Entry) -> None:
        """A human's words: an instruction, and the answer to what the agent asked last."""
        if not entry.text.strip():
            return
        if self._question:
            seq, question = self._question
            self._question = []
            self._add("answer", (seq, entry.seq), entry.at, subject=question, text=entry.text[:ANSWER_LIMIT])
        self._instruct(entry.text, entry)

    def _instruct(self, words: str, entry: Entry) -> None:
        orders = cards_words.orders_in(words)
        detail = {
            "cues": list(dict.fromkeys(cue for order in orders for cue in order.cues)),
            "standing": any(order.standing for order in orders),
            "objects": list(cards_words.objects_in("\n".join(cards_words.own_sentences(words)))),
            "orders": [order.as_json() for order in orders],
        }
        self._add("instruction", (entry.seq,), entry.at, text=words, detail=detail)

    def _listen(self, entry: Entry) -> None:
        """An agent's words: reasons, next steps, a question, and what reads like the end of a turn.

        Whether a text is the last of its turn shows only with the next human entry. A text that announces no tool call
        counts as a conclusion at once; of several in one turn, the last one is the turn's.
        """
        text, seqs = entry.text, (entry.seq,)
        if not text.strip():
            return
        plan = next((action.new for action in entry.actions if action.kind == "plan"), "")
        if plan:
            self._proposed = [entry.seq, plan[: cards_carried.PLAN_KEPT]]
        for sentence in cards_words.decisions_in(text):
            self._add("decision", seqs, entry.at, text=sentence)
        for sentence in cards_words.next_steps_in(text):
            self._add("next", seqs, entry.at, text=sentence)
        question = cards_words.question_in(text)
        self._question = [entry.seq, question] if question else []
        if not cards_words.is_preamble(text):
            body = text.strip()
            if len(body) > CONCLUSION_LIMIT:
                body = _SPACED_END.sub("", body[:CONCLUSION_LIMIT]) + " […]"
            self._add(
                "conclusion",
                seqs,
                entry.at,
                text=body,
                detail={"question": question} if question else {},
            )
        if question:
            self._add("question", seqs, entry.at, text=question)

    # -- deeds -----------------------------------------------------------------------------------------------------

    def _call(self, entry: Entry) -> None:
        self._question = []
        labels = (action.command or relative_path(action.path, self._cwd) for action in entry.actions)
        label = next((label for label in labels if label), "")
        self._running, self._refused = cards_commands.normalise(label or entry.tool)[:200], False
        deeds = [deed for action in entry.actions if (deed := _deed(action, entry, self._cwd))]
        self._facts += cards_names.naming("call", self._running, entry, self._cwd, deeds=deeds)
        if not deeds:
            deeds = [{"kind": "other"}]
        pending: Pending = {"seq": entry.seq, "at": entry.at, "label": self._running, "deeds": deeds}
        if not entry.call_id:
            self._finish(pending, entry, (entry.seq,))  # nothing will ever pair with it
            return
        self._pending[entry.call_id] = pending
        while len(self._pending) > PENDING_LIMIT:
            del self._pending[next(iter(self._pending))]

    def _return(self, entry: Entry) -> None:
        pending = self._pending.pop(entry.call_id, None) if entry.call_id else None
        if pending is None:
            for action in entry.actions:  # what was left running is told of by itself
                if action.kind == "end":
                    self._end_running(action.path, action.new, entry, (entry.seq,))
            return
        seqs = (int(pending["seq"]), entry.seq)
        self._running = ""
        self._facts += cards_names.naming("tool", pending["label"], entry, self._cwd, self._mask)
        head = entry.text[:600]
        if entry.ok is not True and _REFUSED.search(head):
            self._refuse(pending, entry, seqs)
            return
        self._finish(pending, entry, seqs)
        for action in entry.actions:  # a result may tell of the to-do list what its call did not know
            if action.kind == "todo" and action.items:
                self._end_todo({"items": _todo_items(action)}, entry, seqs)
        command = next((deed["command"] for deed in pending["deeds"] if deed["kind"] == "command"), "")
        label = command or pending["label"]
        self._facts += cards_carried.begin_tasks(self._tasks, entry.actions, label, command, entry, seqs)
        self._facts += cards_carried.end_tasks(self._tasks, entry.actions, entry.at, seqs)

    def _refuse(self, pending: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        """The human stopped a call. Words that they said with it come in a human entry of their own, too."""
        match = _REFUSAL_WORDS.search(entry.text)
        words = match.group(1).partition("\n\nNote: ")[0].strip() if match else ""
        self._refused = True
        self._add("interruption", seqs, entry.at, subject=pending["label"], text=words)

    def _finish(self, pending: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        failed = entry.ok is False
        for deed in pending["deeds"]:
            kind = deed["kind"]
            if kind == "command":
                self._end_command(deed, entry, seqs)
            elif kind == "todo" and not failed:
                self._end_todo(deed, entry, seqs)
            elif kind in ("ask", "plan"):
                self._end_question(deed, entry, seqs)
            elif kind == "wait":
                self._end_wait(deed, entry, seqs)
            elif kind == "skill" and not failed:
                skill = Action("skill", command=deed["subject"], new=deed["given"])
                self._facts.append(cards_carried.skill_fact(skill, seqs, entry.at or pending["at"]))
            elif kind != "other" and not failed:
                detail = deed.get("detail", {})
                if kind == "read" and entry.kind == "tool_result":
                    names = cards_edits.names_in_view(entry.text[entry.preface :], deed["subject"])
                    detail = {"identifiers": list(names)} if names else {}
                self._add(kind, seqs, entry.at or pending["at"], subject=deed["subject"], ok=entry.ok, detail=detail)

    def _end_command(self, deed: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        command = deed["command"]
        # A call that carries its own end has its line in its text, too; only a result's text is output.
        output = entry.text[entry.preface :] if entry.kind == "tool_result" else entry.text.replace(command, "", 1)
        outcome = cards_commands.read_piped_outcome(command, output, entry.ok, entry.exit_code)
        subject = cards_commands.normalise(command)
        detail: dict[str, Any] = {}
        if outcome.exit is not None:
            detail["exit"] = outcome.exit
        for name in ("errors", "failing"):
            if getattr(outcome, name):
                detail[name] = list(getattr(outcome, name))
        if outcome.summary:
            detail["summary"] = outcome.summary
        typed = cards_commands.as_typed(command, self._cwd)
        if typed != subject:
            detail["typed"] = typed
        if outcome.ok is False:
            detail.update(cards_commands.further_trouble(output, outcome.errors))
        references = cards_commands.references_in(command, output)
        if references:
            detail["refs"] = references
        if cards_commands.is_noise(command):
            detail["noise"] = True
        text = outcome.errors[0] if outcome.errors else outcome.summary
        self._add("command", seqs, entry.at, subject=subject, text=text, ok=outcome.ok, detail=detail)
        if outcome.ok is not False:
            self._end_shell_edits(command, deed, entry, seqs)
        for name, message, branch in cards_commands.commits_in(command, output):
            more = {"branch": branch} if branch else {}
            self._add("commit", seqs, entry.at, subject=name, text=message, ok=True, detail=more)

    def _end_shell_edits(self, command: str, deed: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        """Files that the command wrote, changed or took away itself."""
        for kind, path, names in deed.get("files", ()):
            detail = {"identifiers": names} if names else {}
            self._add(kind, seqs, entry.at, subject=relative_path(path, self._cwd), ok=True, detail=detail)
        for path in cards_commands.removed_paths(command):
            self._add("delete", seqs, entry.at, subject=relative_path(path, self._cwd), ok=True)

    def _end_todo(self, deed: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        self._todos = _merged_todos(self._todos, deed["items"], entry.text[:200])[:TODO_LIMIT]
        items = [list(item) for item in self._todos]
        self._add("todo", seqs, entry.at, detail={"items": items})

    def _end_wait(self, deed: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        """A look at what runs in the background; with an exit status it has ended, and its command with it."""
        name = deed["subject"]
        if deed["stops"] and entry.ok is not False:
            self._facts += cards_carried.end_tasks(
                self._tasks, (Action("end", path=name, new="stopped"),), entry.at, seqs
            )
        elif entry.exit_code is not None:
            self._end_running(name, f"exit {entry.exit_code}", entry, seqs)

    def _end_running(self, name: str, how: str, entry: Entry, seqs: tuple[int, ...]) -> None:
        """What ran in the background has ended; where the exit status is known, so has its command."""
        command = self._tasks[name][1] if name in self._tasks else ""
        self._facts += cards_carried.end_tasks(self._tasks, (Action("end", path=name, new=how),), entry.at, seqs)
        if command and entry.exit_code is not None:
            self._end_command({"command": command}, entry, seqs)

    def _end_question(self, deed: Pending, entry: Entry, seqs: tuple[int, ...]) -> None:
        accepted = next((action for action in entry.actions if action.kind == "plan"), None)
        if accepted is not None and (accepted.new or deed.get("plan")):
            plan = accepted.new or deed["plan"]
            self._facts.append(cards_carried.plan_fact(plan, accepted.path, seqs, entry.at))
            return
        pairs = _ANSWER_PAIR.findall(entry.text[:8000])
        for question, answer in pairs:
            self._add("answer", seqs, entry.at, subject=question, text=answer)
        if not pairs and entry.text.strip() and entry.ok is not False:
            self._add("answer", seqs, entry.at, subject=deed["subject"], text=entry.text.strip()[:ANSWER_LIMIT])


def _deed(action: Action, entry: Entry, cwd: str) -> Pending | None:
    """What must be kept of an action until its result comes."""
    path = relative_path(action.path, cwd)
    if action.kind == "run" and action.command:
        deed: Pending = {"kind": "command", "command": action.command[:COMMAND_KEPT]}
        files = [
            [kind, name, list(cards_edits.identifiers_brought(body, "", name))]
            for kind, name, body in cards_edits.shell_edits(action.command)
        ]
        return {**deed, "files": files} if files else deed
    if action.kind in ("edit", "write") and action.path:
        added, removed = cards_edits.line_changes(action.new, action.old)
        names = cards_edits.identifiers_brought(action.new, action.old, action.path)
        detail: dict[str, Any] = {"identifiers": list(names), "added": added}
        mentions = cards_edits.mentions_brought(action.new, action.old, names)
        if mentions:
            detail["mentions"] = list(mentions)
        if action.kind == "edit":
            detail["removed"] = removed
        return {"kind": action.kind, "subject": path, "detail": detail}
    if action.kind in ("read", "delete") and action.path:
        return {"kind": action.kind, "subject": path}
    if action.kind == "search" and (action.command or action.path):
        detail = {"path": path} if action.path and action.command else {}
        return {"kind": "search", "subject": (action.command or path)[:300], "detail": detail}
    if action.kind == "fetch" and (action.command or action.path):
        return {"kind": "fetch", "subject": (action.path or action.command)[:500]}
    if action.kind == "todo" and action.items:
        return {"kind": "todo", "items": _todo_items(action)}
    if action.kind in ("ask", "plan"):
        plan = {"plan": action.new[: cards_carried.PLAN_KEPT]} if action.kind == "plan" and action.new else {}
        return {"kind": action.kind, "subject": (action.command or action.new or entry.text).strip()[:400], **plan}
    if action.kind == "skill" and action.command:
        return {"kind": "skill", "subject": action.command, "given": action.new[: cards_carried.WORDS_KEPT]}
    if action.kind in ("wait", "end") and action.path:
        return {"kind": "wait", "subject": action.path, "stops": action.kind == "end"}
    return None


def _todo_items(action: Action) -> list[list[str]]:
    return [[key, status, text[:300]] for key, status, text in action.items[:TODO_LIMIT]]


def _merged_todos(known: list[list[str]], items: list[list[str]], result: str) -> list[list[str]]:
    """The list after a call. A whole list replaces the known one; a single item with an id, or with the id that its
    result names ("#3"), changes or joins it."""
    if len(items) != 1 or items[0][0] == "0":  # "0" is a place in a whole list of one
        return items
    key, status, text = items[0]
    if not key:
        match = _ISSUED_ID.search(result)
        if match is None:
            return items
        key = match.group(1)
    merged = [list(item) for item in known]
    for item in merged:
        if item[0] == key:
            item[1] = status or item[1]
            item[2] = text or item[2]
            return merged
    return [*merged, [key, status, text]]
