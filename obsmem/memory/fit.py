"""How much of a conversation fits into another window: the newest turns, whole, and what is said of the rest.

Invariant: what is kept is a tail of the conversation, in order, and costs no more than the budget; every clipped text says
how much is missing and which entry has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.model import Action
from obsmem.core.tokens import estimate
from obsmem.core.turns import Step, ToolUse, Turn, Words, all_words, characters, tool_uses

CLIPPED = 12_000  # characters of one text of a tool that are kept
TIGHT = 2_000  # the same, where the newest turn alone is too long
ITEM_TOKENS = 15  # what a provider's own frame around a text or call costs
TAIL = 3  # of a clipped text a third is its end


class Size(NamedTuple):
    """Turns, tool calls and characters of a conversation or of a part of it."""

    turns: int
    calls: int
    characters: int


class Fitted(NamedTuple):
    """The tail that fits, its ``tokens``, how many of its texts were ``clipped``, and how much there was and is."""

    turns: tuple[Turn, ...]
    tokens: int
    clipped: int
    whole: Size
    kept: Size


def size_of(turns: Sequence[Turn]) -> Size:
    """How much a conversation is."""
    return Size(len(turns), sum(len(tool_uses(turn)) for turn in turns), sum(characters(turn) for turn in turns))


def fit(turns: Sequence[Turn], budget: int, recall: str) -> Fitted:
    """Keep the newest turns within ``budget`` tokens. ``recall`` is the command that prints an entry whole."""
    kept: list[Turn] = []
    spent = clipped = 0
    for turn in reversed(turns):
        short, count = clip_turn(turn, CLIPPED, recall)
        cost = cost_of(short)
        if spent + cost > budget:
            break
        kept.insert(0, short)
        spent += cost
        clipped += count
    if not kept and turns:
        short, clipped = _tail_of(turns[-1], budget, recall)
        kept, spent = [short], cost_of(short)
    return Fitted(tuple(kept), spent, clipped, size_of(turns), size_of(kept))


def cost_of(turn: Turn) -> int:
    """Estimated tokens of a turn."""
    said = sum(estimate(words.text) + ITEM_TOKENS for words in all_words(turn))
    return said + sum(_use_cost(use) for use in tool_uses(turn))


def _use_cost(use: ToolUse) -> int:
    given = sum(estimate(one.command) + estimate(one.path) + estimate(one.new) + estimate(one.old) + 4 * ITEM_TOKENS
                + sum(estimate(text) + ITEM_TOKENS for _, _, text in one.items) for one in use.actions)  # fmt: skip
    return max(given, estimate(use.input)) + estimate(use.output) + 2 * ITEM_TOKENS


def clip_turn(turn: Turn, limit: int, recall: str) -> tuple[Turn, int]:
    """A turn whose tools' texts have at most ``limit`` characters each, and how many had more."""
    steps: list[Step] = []
    count = 0
    for step in turn.steps:
        if isinstance(step, ToolUse):
            short = _clip_use(step, limit, recall)
            count += short != step
            step = short
        steps.append(step)
    return Turn(turn.prompt, tuple(steps)), count


def _clip_use(use: ToolUse, limit: int, recall: str) -> ToolUse:
    return use._replace(
        actions=tuple(
            Action(
                one.kind,
                one.path,
                clip(one.command, limit, use.id, recall),
                clip(one.new, limit, use.id, recall),
                clip(one.old, limit, use.id, recall),
                one.items,
            )
            for one in use.actions
        ),
        input=clip(use.input, limit, use.id, recall),
        output=clip(use.output, limit, use.result_id or use.id, recall),
    )


def clip(text: str, limit: int, id_: str, recall: str) -> str:
    """Head and tail of a text that is longer than ``limit`` characters, and between them how to get the rest."""
    if len(text) <= limit:
        return text
    end = limit // TAIL
    missing = len(text) - limit
    return f"{text[: limit - end]}\n[… {missing:,} characters left out here; `{recall} {id_}` prints them …]\n{text[-end:]}"


def _tail_of(turn: Turn, budget: int, recall: str) -> tuple[Turn, int]:
    """What fits of a turn that is too long: its prompt, at most half of the budget, and its newest steps."""
    share = budget // 2
    prompt: list[Words] = []
    clipped = 0
    for words in turn.prompt:
        short = _clip_words(words, share // max(1, len(turn.prompt)), recall)
        clipped += short != words
        prompt.append(short)
    spent = cost_of(Turn(tuple(prompt), ()))
    steps: list[Step] = []
    for step in reversed(turn.steps):
        if isinstance(step, ToolUse):
            short_step: Step = _clip_use(step, TIGHT, recall)
        else:
            short_step = _clip_words(step, share // 2, recall)
        cost = cost_of(Turn((), (short_step,)))
        if spent + cost > budget:
            break
        spent += cost
        clipped += short_step != step
        steps.insert(0, short_step)
    return Turn(tuple(prompt), tuple(steps)), clipped


def _clip_words(words: Words, tokens: int, recall: str) -> Words:
    """Words within so many tokens, halved until they fit."""
    text, limit = words.text, len(words.text)
    while estimate(text) + ITEM_TOKENS > tokens and limit > 60:
        limit = limit * 3 // 4
        text = clip(words.text, limit, words.id, recall)
    return words._replace(text=text)
