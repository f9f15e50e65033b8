"""The reasons of a block are those of the very lines that are delivered, and nothing that was remembered goes without one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from obsmem.core.model import Block, Drop, Memory, Note
from obsmem.core.tokens import estimate
from obsmem.memory.fold import Recorded, fold
from obsmem.memory.render import CLOSE, render
from tests.memory.state_maker import KEY, SESSION, note
from tests.memory.test_render import random_state

BUDGETS = (700, 1_500, 4_000, 8_000)
REASONS = {"shown", "no room", "superseded, no room", "told elsewhere"}


def delivered(block: Block) -> list[tuple[str, str]]:
    """(section, line) of every line that stands in a block's parts below a heading, but for what was counted."""
    found, section = [], ""
    for part in block.parts:
        below = False
        for line in part.split("\n"):
            if line.startswith("## "):
                section, below = line[3:].removesuffix(" (continued)"), True
            elif below and line != CLOSE and "left out" not in line[-60:].partition(":")[0]:
                found.append((section, line))
    return found


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(12))
def test_every_delivered_line_has_its_reason_in_the_same_order_and_at_its_price(seed: int, budget: int) -> None:
    state, memory = random_state(seed)
    block = render(SESSION, state, memory, budget=budget, key=KEY, program="observational-memory")
    shown = [one for one in block.reasons if one.why == "shown"]
    lines = delivered(block)
    assert [(one.section, one.text) for one in shown] == lines
    assert [one.tokens for one in shown] == [estimate(line + "\n") for _, line in lines]
    assert {one.why for one in block.reasons} <= REASONS


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(12))
def test_every_note_has_exactly_one_reason_and_what_is_counted_has_one_each(seed: int, budget: int) -> None:
    state, memory = random_state(seed)
    block = render(SESSION, state, memory, budget=budget, key=KEY)
    notes = [one for one in block.reasons if one.section == "Notes"]
    assert sorted(id_ for one in notes for id_ in one.ids) == sorted(note.id for note in memory.notes)
    shown = {id_ for one in notes if one.why == "shown" for id_ in one.ids}
    elsewhere = {id_ for one in notes if one.why == "told elsewhere" for id_ in one.ids}
    assert shown <= set(block.shown)
    assert set(block.left_out) == {note.id for note in memory.notes} - set(block.shown)
    assert elsewhere <= set(block.shown)
    reflections = [one for one in block.reasons if one.section == "Reflections"]
    assert sorted(id_ for one in reflections for id_ in one.ids) == sorted(one.id for one in memory.reflections)


@pytest.mark.parametrize("seed", range(6))
def test_within_a_section_nothing_with_a_better_rank_was_passed_over_that_would_have_fitted(seed: int) -> None:
    state, memory = random_state(seed)
    block = render(SESSION, state, memory, budget=1_500, key=KEY)
    for section in {one.section for one in block.reasons}:
        own = [one for one in block.reasons if one.section == section]
        shown = [one for one in own if one.why == "shown"]
        for missed in (one for one in own if "no room" in one.why):
            later = [one for one in shown if one.rank > missed.rank]
            assert not later or max(one.tokens for one in later) < missed.tokens, (section, missed)


def hidden(notes: Sequence[Note], dropped: Sequence[str] = (), off: Sequence[str] = ()) -> Memory:
    """What is folded of notes, of which some were dropped and some stand on entries off the live path."""
    drops = [Drop(tuple(dropped), 1 << 50, "retired")] if dropped else []
    gone = {name for one in notes if one.id in off for name in one.entry_ids}
    return fold([Recorded(one, one.at) for one in notes], [], drops, [], lambda name: name not in gone)


def test_each_note_that_is_not_visible_says_why() -> None:
    old, new = note("The same words.", 1, at=1), note("The same words.", 2, at=2)
    dropped, off, seen = note("Dropped.", 3), note("Rewound.", 4), note("Seen.", 5)
    memory = hidden([old, new, dropped, off, seen], [dropped.id], [off.id])
    assert memory.hidden == {old.id: f"equal to {new.id}", dropped.id: "dropped", off.id: "off the live path"}
    assert {one.id for one in memory.notes} == {new.id, seen.id}
