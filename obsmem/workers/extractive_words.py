"""Notes on what was said: the user's orders, corrections and answers; the agent's reasons, conclusions, questions.

Invariant: a user's words are quoted, never retold, and an acknowledgement is no note.
"""

from __future__ import annotations

import re

from obsmem.core.model import Fact, Relevance
from obsmem.workers.extractive_draft import Draft, Sight
from obsmem.workers.extractive_lines import CUT, NOTE_LIMIT, clip, code, one_line, plain, quote

SHORT_WORDS = 300
SHORT_ANSWER = 120
DECISIONS_A_TURN = 3
SHORTEST_CONCLUSION = 40  # characters; "Done." helps nobody later
FINDINGS_A_TURN = 6
FINDING_LENGTH = 160  # characters; shorter words in the middle of a turn announce more than they find

# Cue -> how the note begins, how much it weighs; the first cue that the words carry decides.
_LABELS: tuple[tuple[str, str, Relevance], ...] = (
    ("forbid", "User forbade", "critical"),
    ("correct", "User corrected", "critical"),
    ("prefer", "User prefers", "critical"),
    ("decide", "User decided", "high"),
    ("do", "User asked", "high"),
    ("ask", "User asked", "medium"),
)
_ACKNOWLEDGEMENT = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah|yep|sure|thanks?(?: you)?|thx|great|nice|cool|perfect|good|awesome|done|continue|go on|go ahead|please|hi"
    r"|hello|hey|proceed|got it|danke|merci|gracias|谢谢|好的?|继续)\W*)+\Z",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(?:yes|yeah|yep|no|nope|ok(?:ay)?|sure|both|neither|all|option|\(?[a-d1-9][).:]?|the (?:first|second|third|last)|let['’]?s"
    r"|just|ja|nein|oui|non|sí)\b",
    re.IGNORECASE,
)
_STRONG_REASON = re.compile(
    r"\b(?:decided|chose|i['’]ll|i will|i['’]d go|instead of|rather than|to avoid|went with)\b", re.IGNORECASE
)


class Heard:
    """What of a chunk's words is told together: questions with their answers, refusals with the words that followed."""

    def __init__(self, facts: list[Fact]) -> None:
        self.answered = {fact.seqs[0] for fact in facts if fact.kind == "answer"}
        self.said = {one_line(fact.text) for fact in facts if fact.kind == "instruction"}
        self.refusals = {one_line(fact.text): fact for fact in facts if fact.kind == "interruption" and fact.text}


def word_notes(facts: list[Fact], sight: Sight, heard: Heard) -> list[Draft]:
    """Drafts for the words of one turn."""
    answers = {fact.seqs[-1]: fact for fact in facts if fact.kind == "answer"}
    drafts: list[Draft | None] = []
    for fact in facts:
        if fact.kind == "instruction":
            refusal = heard.refusals.get(one_line(fact.text))
            drafts += _instruction(fact, answers.pop(fact.seqs[-1], None), refusal, sight)
    drafts += [_answer(fact, sight) for fact in answers.values()]
    stopped = [fact for fact in facts if fact.kind == "interruption" and one_line(fact.text) not in heard.said]
    drafts += [_interruption(fact, sight) for fact in stopped]
    drafts += _agent(facts, sight, heard.answered)
    return [draft for draft in drafts if draft is not None]


def _draft(text: str, relevance: Relevance, sight: Sight, *facts: Fact) -> Draft | None:
    seqs = sight.cites(*facts)
    return Draft(text, relevance, seqs, facts[-1].at) if seqs else None


def _instruction(fact: Fact, answer: Fact | None, stopped: Fact | None, sight: Sight) -> list[Draft | None]:
    """The words whole in one note; each lasting order of long words in its own note, too, so that it is not cut off."""
    if stopped is not None:
        what = f"User refused {code(stopped.subject)}" if stopped.subject else "User stopped the agent"
        weight: Relevance = "critical" if {"forbid", "correct", "prefer"} & set(fact.detail.get("cues", ())) else "high"
        return [_draft(f"{what}: {quote(fact.text)}", weight, sight, stopped, fact)]
    short = len(fact.text) <= SHORT_ANSWER
    if answer is not None and _answers(fact.text) and sight.sees(answer, answer.subject):
        text = f"User answered {quote(fact.text)} to {quote(plain(answer.subject), 240)}"
        return [_draft(text, _weight(fact), sight, answer)]
    if answer is None and short and _ACKNOWLEDGEMENT.match(fact.text):
        return []
    label, relevance = _label(fact)
    if len(fact.text) <= SHORT_WORDS:
        return [_draft(f"{label}: {quote(fact.text)}", relevance, sight, fact)]
    drafts = [_draft(f"User asked: {quote(fact.text)}", "high", sight, fact)]
    for words, cues, standing, _, _ in fact.detail.get("orders", ()):
        if standing:
            verb = "forbade" if "forbid" in cues else "prefers"
            drafts.append(_draft(f"User {verb}: {quote(words, NOTE_LIMIT)}", "critical", sight, fact))
    return drafts


def _answers(words: str) -> bool:
    """True if short words answer the question before them rather than turn to something else."""
    if len(words) > SHORT_ANSWER or words.rstrip().endswith("?"):
        return False
    return len(words) <= 40 or _ANSWER.match(words) is not None


def _label(fact: Fact) -> tuple[str, Relevance]:
    """How a note on these words begins. A one-off wish is asked, whatever it forbids by the way."""
    cues = fact.detail.get("cues", ())
    asks_more = len(fact.detail.get("orders", ())) > 1 and "do" in cues
    for cue, label, relevance in _LABELS:
        if cue not in cues or (cue in ("forbid", "prefer") and not fact.detail.get("standing")):
            continue
        return "User asked" if asks_more and cue in ("forbid", "prefer") else label, relevance
    return ("User asked", "high") if {"forbid", "prefer"} & set(cues) else ("User said", "medium")


def _weight(fact: Fact) -> Relevance:
    """The weight of a short answer: at least high, for a question and its answer are a decision."""
    relevance = _label(fact)[1]
    return relevance if relevance == "critical" else "high"


def _answer(fact: Fact, sight: Sight) -> Draft | None:
    if not fact.text.strip():
        return None
    question = quote(plain(fact.subject), 240) if fact.subject and sight.sees(fact, fact.subject) else "a question"
    return _draft(clip(f"User answered {quote(fact.text, 300)} to {question}", 600), "high", sight, fact)


def _interruption(fact: Fact, sight: Sight) -> Draft | None:
    if fact.text and sight.sees(fact, fact.text):
        return _draft(f"User refused {code(fact.subject)}: {quote(fact.text)}", "high", sight, fact)
    if not fact.subject or not sight.sees(fact, fact.subject):
        return _draft("User interrupted the agent", "low", sight, fact)
    return _draft(f"User stopped {code(fact.subject)}", "medium", sight, fact)


def _agent(facts: list[Fact], sight: Sight, answered: set[int]) -> list[Draft | None]:
    """What the agent found and concluded in the turn, its open question, next step, and choices with their reasons."""
    drafts: list[Draft | None] = []
    last = {fact.kind: fact for fact in facts if fact.kind in ("conclusion", "question", "next")}
    conclusion = last.get("conclusion")
    written = ""
    findings = [fact for fact in facts if fact.kind == "conclusion" and len(fact.text) >= FINDING_LENGTH]
    for fact in findings[-FINDINGS_A_TURN:]:
        if fact is not conclusion:
            drafts.append(_draft(clip(f"Agent: {plain(fact.text)}"), "medium", sight, fact))
            written += drafts[-1].text if drafts[-1] else ""
    if conclusion is not None and len(conclusion.text) >= SHORTEST_CONCLUSION:
        lines = _in_two(plain(conclusion.text))
        drafts += [_draft(line, "medium", sight, conclusion) for line in lines]
        written += " ".join(lines)
    choices = [fact for fact in facts if fact.kind == "decision" and plain(fact.text)[:60] not in written]
    for fact in choices[:DECISIONS_A_TURN]:
        relevance: Relevance = "high" if _STRONG_REASON.search(fact.text) else "medium"
        drafts.append(_draft(clip(f"Agent reasoned: {plain(fact.text)}"), relevance, sight, fact))
    step = last.get("next")
    if step is not None and plain(step.text) not in written:
        drafts.append(_draft(clip(f"Agent's next step: {plain(step.text)}"), "medium", sight, step))
    question = last.get("question")
    if question is not None and question.seqs[-1] not in answered:
        asked = plain(question.text)
        if asked not in written:
            drafts.append(_draft(f"Agent asked: {quote(asked, NOTE_LIMIT - 20)}", "medium", sight, question))
    return drafts


def _in_two(words: str) -> list[str]:
    """An agent's words as one note, or as two where one line would cut off what the fact holds."""
    first = clip(f"Agent: {words}")
    if not first.endswith(CUT) or len(words) <= NOTE_LIMIT - 8:
        return [first]
    rest = words[len(first) - len("Agent: ") - len(CUT) - 1 :].strip()
    return [first, clip(f"Agent, further: {rest}")] if len(rest.removesuffix(CUT)) > 60 else [first]
