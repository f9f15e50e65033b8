"""A session as turns in words that no harness owns: everything that was said on its live path, across compactions.

Invariants: nothing is taken from a harness's summary, and nothing that the model only thought; every word names its
entry; no secret is left in it, since it goes to another provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from obsmem.core.ids import entry_id
from obsmem.core.model import Action, Entry
from obsmem.core.turns import Step, ToolUse, Turn, Words
from obsmem.harnesses.forks import mark_of
from obsmem.store.archive import StoredSession
from obsmem.store.archive_rows import EntryRow
from obsmem.store.archive_schema import KIND_CODES
from obsmem.tasks.entries import read_entries
from obsmem.tasks.remember import DEEPEST_LINEAGE
from obsmem.tasks.store import Store

SAID = ", ".join(str(KIND_CODES[kind]) for kind in ("user", "assistant", "tool_call", "tool_result"))
LIVE = f"active=1 AND replaced_by IS NULL AND kind IN ({SAID})"
NO_RESULT = "(No result was recorded.)"
SPEAKERS = ("human", "agent", "tool")

Named = tuple[str, str, Entry]  # an entry with its id and its mark


def conversation(store: Store, stored: StoredSession, up_to: int | None = None) -> list[Turn]:
    """The turns of a session up to and with seq ``up_to``; for a fork that only refers to its parent's history, those
    of the parent before them."""
    return as_turns(_entries(store, stored, up_to), store.mask)


def _entries(store: Store, stored: StoredSession, up_to: int | None, depth: int = 0) -> list[Named]:
    rows = list(store.archive.entries(stored.no, 0, up_to, LIVE))
    named = _named(store, stored, [row for row in rows if row.speaker in SPEAKERS])
    parent = stored.session.parent
    refers = parent is not None and parent[1] >= 0 and not any(row.copied for row in rows)
    if parent is None or not refers or stored.session.role != "main" or depth >= DEEPEST_LINEAGE:
        return named
    return [*_entries(store, store.archive.by_handle(parent[0]), parent[1], depth + 1), *named]


def _named(store: Store, stored: StoredSession, rows: list[EntryRow]) -> list[Named]:
    marks = {row.seq: mark_of(row.sha256, row.block) for row in rows}
    entries = read_entries(store, stored, rows, lost=True)
    from_rows = any(source.kind == "rows" for source in store.archive.sources(stored.no))
    if from_rows and all(entry.at for entry in entries):
        entries.sort(key=lambda entry: entry.at)  # a row that changed was archived again, behind what followed it
    return [(entry_id(stored.session.handle, entry.seq), marks[entry.seq], entry) for entry in entries]


def as_turns(named: Iterable[Named], mask: Callable[[str], str]) -> list[Turn]:
    """Entries, in order, as turns: a result joins its call, and every call gets one."""
    turns: list[tuple[list[Words], list[Step]]] = []
    waiting: dict[str, tuple[list[Step], int]] = {}
    for id_, mark, entry in named:
        if not entry.text.strip():
            continue
        if not turns:
            turns.append(([], []))
        prompt, steps = turns[-1]
        if entry.kind == "user" and entry.speaker == "human":
            if steps:
                prompt, steps = [], []
                turns.append((prompt, steps))
            prompt.append(Words(mask(entry.text), id_, mark, entry.at))
        elif entry.kind == "assistant":
            steps.append(Words(mask(entry.text), id_, mark, entry.at))
        elif entry.kind == "tool_call":
            waiting[entry.call_id] = steps, len(steps)
            steps.append(_call(id_, mark, entry, mask))
        elif entry.kind == "tool_result":
            _add_result(steps, waiting, (id_, mark, entry), mask)
    return [Turn(tuple(prompt), tuple(steps)) for prompt, steps in turns if prompt or steps]


def _call(id_: str, mark: str, entry: Entry, mask: Callable[[str], str]) -> ToolUse:
    _, _, given = entry.text.partition("\n")
    actions = tuple(
        Action(
            one.kind,
            one.path,
            mask(one.command),
            mask(one.new),
            mask(one.old),
            tuple((key, state, mask(text)) for key, state, text in one.items),
        )
        for one in entry.actions
    )
    return ToolUse(
        entry.tool or "tool", actions, mask(given), NO_RESULT, None, entry.call_id, id_, mark, at=entry.at, ended_at=entry.at
    )  # fmt: skip


def _add_result(
    steps: list[Step], waiting: dict[str, tuple[list[Step], int]], named: Named, mask: Callable[[str], str]
) -> None:
    id_, mark, entry = named
    place = waiting.pop(entry.call_id, None)
    if place is None:  # its call is not on the live path, or was never recorded
        use = ToolUse(
            entry.tool or "tool", entry.actions, "(The call was not recorded.)", "", None, entry.call_id, at=entry.at
        )
        place = steps, len(steps)
        steps.append(use)
    owner, index = place
    call = owner[index]
    assert isinstance(call, ToolUse)
    owner[index] = call._replace(
        output=mask(entry.text), ok=entry.ok, result_id=id_, result_mark=mark, ended_at=entry.at, exit_code=entry.exit_code
    )  # fmt: skip
