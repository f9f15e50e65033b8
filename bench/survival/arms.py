"""The texts that are compared, each within one budget that the evaluator checks.

Invariant: an arm that costs more than the budget is cut by the evaluator, never counted whole; the ceiling alone has none.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from bench.survival.entries import RECORD
from bench.survival.facts import Fact
from bench.survival.judge import SEED, cut_to, error_shown, flat, tokens
from bench.survival.record import Case, Event, strings

BLOCK_SHARE = 0.98  # of the budget is asked of the memory: its counting and the evaluator's may differ
CUT_RESULT = 400  # characters of a result in a hand-made card

_NAME = re.compile(r"\b[A-Za-z_]\w{5,}\b")

Arm = Callable[[Case, float], str]


def said(event: Event) -> str:
    """An event as a reader would see it, a record of its own; a call's first line tells the file or the command."""
    if event.kind != "call":
        return RECORD + {"prompt": "User: ", "said": "Assistant: ", "result": ""}[event.kind] + event.text
    words = "\n".join(strings(event.given))
    words = flat(words) if event.tool == "Bash" else words
    path = str(event.given.get("file_path", ""))
    return f"{RECORD}{event.tool}: {path}\n{words}" if path else f"{RECORD}{event.tool}: {words}"


def records(events: Sequence[Event]) -> list[str]:
    """What was said and done, a record for each message and for each call with its result."""
    results = {event.call: event for event in events if event.kind == "result"}
    calls = {event.call for event in events if event.kind == "call"}
    found = []
    for event in events:
        if event.kind == "call" and event.call in results:
            found.append(said(event) + "\n" + results[event.call].text)
        elif event.kind != "result" or event.call not in calls:
            found.append(said(event))
    return found


def nothing(case: Case, budget: float) -> str:
    """B0."""
    return ""


def tail(case: Case, budget: float) -> str:
    """B1: the last messages."""
    return cut_to("\n".join(records(case.known)), budget, end=True)


def head_and_tail(case: Case, budget: float) -> str:
    """B2: a quarter of the first messages, the rest of the last."""
    whole = "\n".join(records(case.known))
    return cut_to(whole, budget / 4) + "\n" + cut_to(whole, budget * 3 / 4, end=True)


def prompts(case: Case, budget: float) -> str:
    """B3: what the user said, the newest kept."""
    return cut_to("\n".join(said(event) for event in case.known if event.kind == "prompt"), budget, end=True)


def native(case: Case, budget: float) -> str:
    """B4: the summary that was really written (it is not cut: it is what it is)."""
    return case.native


def card(case: Case, budget: float) -> str:
    """B5: prompts, files, the last commands, and a dump of every identifier."""
    names = list(dict.fromkeys(name for event in case.known for name in _NAME.findall(event.text)))
    return cut_to(bare_card(case, budget) + "\n" + " ".join(reversed(names)), budget)


def bare_card(case: Case, budget: float) -> str:
    """B5': the same without the dump."""
    lines = ["User: " + event.text for event in case.known if event.kind == "prompt"]
    lines += dict.fromkeys(str(event.given["file_path"]) for event in case.known if "file_path" in event.given)
    commands = [event for event in case.known if event.kind == "call" and event.tool == "Bash"]
    lines += ["$ " + str(event.given.get("command", "")) for event in commands[-10:]]
    lines += [event.text[:CUT_RESULT] for event in case.known if event.kind == "result" and event.failed]
    return cut_to("\n".join(lines), budget)


def next_prompt(case: Case, budget: float) -> str:
    """B6: the messages that share most rare words with the next prompt (Okapi BM25, k1 1.2, b 0.75), as many as fit."""
    prompt = next((event.text for event in case.later if event.kind == "prompt"), "")
    return cut_to("\n".join(best_matching(prompt, records(case.known))), budget)


def best_matching(query: str, texts: Sequence[str]) -> list[str]:
    """Texts by BM25, the best first."""
    import math
    from collections import Counter

    split = [re.findall(r"\w{3,}", text.casefold()) for text in texts]
    counts = [Counter(words) for words in split]
    held = Counter(word for one in counts for word in one)
    average = sum(map(len, split)) / len(split) if split else 1.0

    def score(number: int) -> float:
        total = 0.0
        for word in set(re.findall(r"\w{3,}", query.casefold())):
            count = counts[number][word]
            if count:
                weight = math.log(1 + (len(texts) - held[word] + 0.5) / (held[word] + 0.5))
                length = len(split[number]) / average
                total += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length))
        return total

    order = sorted(range(len(texts)), key=score, reverse=True)
    return [texts[number] for number in order if score(number) > 0]


def everything(case: Case, budget: float) -> str:
    """B10: the ceiling."""
    return "\n".join(records(case.known))


def shuffled(text: str, facts: Sequence[Fact]) -> str:
    """B11: a text whose bound objects (files, errors) were exchanged, each for another of its kind; a lone one is made unknown."""
    chance = random.Random(SEED)
    for kind, shown in (("identifier in file", _file_name), ("command and error", error_shown)):
        others = sorted({shown(fact) for fact in facts if fact.kind == kind}, key=len, reverse=True)
        chance.shuffle(others)
        # Each goes to the next of a ring in random order: none keeps its own.
        turned = (
            dict(zip(others, others[1:] + others[:1], strict=True)) if len(others) > 1 else dict.fromkeys(others, "?")
        )
        if turned:
            text = _turn(text, turned)
    return text


def _turn(text: str, turned: Mapping[str, str]) -> str:
    """A text with each of these names in the place of another, the longest looked for first."""
    names = sorted(turned, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, names)), lambda match: turned[match.group(0)], text)


def _file_name(fact: Fact) -> str:
    return fact.answer.rpartition("/")[2]


HAND_MADE: Mapping[str, Arm] = {
    "B0 nothing": nothing,
    "B1 tail": tail,
    "B2 head and tail": head_and_tail,
    "B3 prompts": prompts,
    "B4 native": native,
    "B5 card": card,
    "B5' card, no dump": bare_card,
    "B6 next prompt": next_prompt,
    "B10 everything": everything,
}


def fits(text: str, budget: float) -> str:
    """A text within the budget, cut by the evaluator where it is not."""
    return text if tokens(text) <= budget else cut_to(text, budget)
