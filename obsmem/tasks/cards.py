"""Keeping the cards of a session up to date, from entries just archived or from the archive itself.

Invariants: cards are a function of the archive. When the live path changes they are made anew; when the index was
lost or damaged they are rebuilt on first use. No secret stands in a card, nor in what the builder keeps for later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from obsmem.core.mask import mask_all
from obsmem.core.model import Action, Card, Entry, Fact
from obsmem.memory.cards import CardBuilder
from obsmem.store.archive import StoredSession
from obsmem.store.index import LATER
from obsmem.tasks.entries import read_entries
from obsmem.tasks.outdated import note_outdated
from obsmem.tasks.store import Store

Mask = Callable[[str], str]
BATCH = 2000  # entries read from the archive at a time


def update_cards(store: Store, stored: StoredSession, entries: Sequence[Entry] = ()) -> None:
    """Bring a session's cards up to its last entry. ``entries`` saves reading those just archived again."""
    store.with_index(lambda: _update(store, stored, entries))


def _update(store: Store, stored: StoredSession, entries: Sequence[Entry]) -> None:
    if store.index.reach(stored.no, "rewinds")[0] not in (-1, stored.rewinds):
        store.index.reset(stored.no, "cards")
    reach, state = store.index.reach(stored.no, "cards")
    if entries and entries[0].seq == reach + 1:
        _build(store, stored, entries, reach, state)
        reach, state = store.index.reach(stored.no, "cards")
    while reach < stored.last_seq:
        rows = list(store.archive.entries(stored.no, reach + 1, reach + BATCH, "replaced_by IS NULL"))
        last = min(reach + BATCH, stored.last_seq)
        if not _build(store, stored, read_entries(store, stored, rows, lost=True), reach, state, last):
            break
        reach, state = store.index.reach(stored.no, "cards")
    if not entries and reach > store.index.reach(stored.no, LATER)[0]:  # once, when everything is read
        note_outdated(store, stored, reach)


def _build(
    store: Store, stored: StoredSession, entries: Sequence[Entry], reach: int, state: dict[str, object], last: int = -1
) -> bool:
    builder = CardBuilder(stored.session.handle, state or None, cwd=stored.session.cwd, mask=store.mask)
    for entry in entries:
        if entry.active:
            builder.feed(_without_secrets(entry, store.mask))
    up_to = max(last, entries[-1].seq if entries else -1)
    cards = [
        card._replace(facts=tuple(_masked_fact(fact, store.mask) for fact in card.facts)) for card in builder.take()
    ]
    return store.index.add_cards(stored.no, cards, up_to, mask_all(builder.state(), store.mask), reach, stored.rewinds)


def _without_secrets(entry: Entry, mask: Mask) -> Entry:
    """An entry with its secrets masked before it is taken apart: a piece alone no longer shows what it is. Results are
    long, and come into cards as whole lines, which are masked there, and by their names, which the builder masks; of what
    nobody observes no word does."""
    if entry.kind == "tool_result" or not (entry.observable or entry.actions):
        return entry
    text, actions = mask(entry.text), tuple(_masked_action(one, mask) for one in entry.actions)
    return entry if text == entry.text and actions == entry.actions else entry._replace(text=text, actions=actions)


def _masked_action(action: Action, mask: Mask) -> Action:
    path, command, new, old = (
        mask(one) if one else "" for one in (action.path, action.command, action.new, action.old)
    )
    return Action(action.kind, path, command, new, old, mask_all(action.items, mask))


def _masked_fact(fact: Fact, mask: Mask) -> Fact:
    return fact._replace(subject=mask(fact.subject), text=mask(fact.text), detail=mask_all(fact.detail, mask))


def cards_of(store: Store, stored: StoredSession, up_to: int | None = None) -> list[Card]:
    """The cards of a session, brought up to date where the store may be written."""
    return store.with_index(lambda: _read(store, stored, up_to))


def _read(store: Store, stored: StoredSession, up_to: int | None) -> list[Card]:
    if not store.readonly:
        _update(store, stored, ())
    cards = store.index.cards(stored.no, stored.session.handle, up_to)
    if not store.secrets:
        return cards
    # The user may have named a pattern since they were made.
    return [card._replace(facts=tuple(_masked_fact(fact, store.mask) for fact in card.facts)) for card in cards]


def count_behind(store: Store, sessions: Iterable[StoredSession]) -> int:
    """How many of these sessions have entries that no card tells of yet (their index was lost)."""
    return sum(store.index.reach(one.no, "cards")[0] < one.last_seq for one in sessions)


def split_cards(cards: Sequence[Card], first: int, last: int) -> tuple[list[Card], list[Card]]:
    """Part the facts by the last entry that shows them: those before ``first``, and those in ``first``..``last``."""
    before: list[Card] = []
    within: list[Card] = []
    for card in cards:
        if card.first_seq > last:
            break
        if card.last_seq < first:
            before.append(card)
            continue
        early = tuple(fact for fact in card.facts if max(fact.seqs) < first)
        inside = tuple(fact for fact in card.facts if first <= max(fact.seqs) <= last)
        if early:
            before.append(card._replace(facts=early))
        if inside:
            within.append(card._replace(facts=inside))
    return before, within
