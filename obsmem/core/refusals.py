"""Read what a model's server says when a prompt does not fit: that it is too long, the window, and what it counted.

Only the wording is known here, neither programs nor protocols. Invariant: a text in which no phrase says "too long" is
no refusal, however many numbers it holds: a rate limit that time heals is never taken for a prompt that must shrink.
"""

from __future__ import annotations

import re
from re import Pattern

READ_CHARACTERS = 20_000  # a refusal is a sentence or a small JSON object; what follows is somebody's page or log

_NUMBER = r"(\d[\d,_]{0,14})"
_LIMIT = r"(?:of |is |to |limit |length |: ?|\(|= ?|only )*"


def _patterns(*sources: str) -> tuple[Pattern[str], ...]:
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


# Each of these alone says that the prompt is longer than what the model takes.
_TOO_LONG = _patterns(
    r"prompt (?:is )?too long",
    r"(?:input|message|request|prompt|messages) (?:is|are) too (?:long|large)",
    r"request(?: entity|_)? ?too[_ ]large",
    r"request exceeds the maximum size",
    r"context_length_exceeded|exceed_context_size|model_context_window_exceeded|context_window_exceeded",
    r"maximum (?:context|prompt|model) length",
    r"exceed(?:s|ed)? (?:the |its |this |max |maximum |model(?:'s)? |available |configured |input )*"
    r"(?:context|window|token limit|prompt length|limit of \d[\d,]* tokens)",
    r"(?:tokens?|length)[^.\n]{0,80}\bexceeds? (?:the )?(?:context|maximum number of|limit of|configured)",
    r"longer than the model'?s? context",
    r"greater than the context length",
    r"context (?:the )?overflows|context window exceeds",
    r"tokens in the prompt cannot exceed",
    r"too large for model with \d",
    r"input token count[^.\n]{0,40}(?:exceeds|only supports)",
    r"`?inputs`? tokens \+ `?max_new_tokens`? must be",
)

# Where the limit stands, the surest wording first.
_WINDOWS = _patterns(
    rf"\bn_ctx\W{{1,6}}{_NUMBER}",
    rf"tokens > {_NUMBER} maximum",
    rf"exceeds? context limit: \d[\d,]* \+ \d[\d,]* > {_NUMBER}",
    rf"maximum (?:context|prompt|model) length {_LIMIT}{_NUMBER}",
    rf"configured limit {_LIMIT}{_NUMBER}",
    rf"maximum number of tokens allowed {_LIMIT}{_NUMBER}",
    rf"only supports up to {_NUMBER}",
    rf"available context size {_LIMIT}{_NUMBER}",
    rf"context (?:window|length|size) {_LIMIT}{_NUMBER}",
    rf"with {_NUMBER} maximum context",
    rf"token limit:? {_LIMIT}{_NUMBER}",
    rf"exceeds the limit of {_NUMBER}",
    rf"cannot exceed {_NUMBER}",
    rf"must be <= {_NUMBER}",
    rf"\blimit {_NUMBER}, requested",
)

# Where the prompt's own tokens stand; where an answer's share is counted too, the prompt's part comes first.
_COUNTS = _patterns(
    rf"\bn_prompt_tokens\W{{1,6}}{_NUMBER}",
    rf"{_NUMBER} (?:tokens )?(?:in|from) (?:the|your) (?:messages|prompt|input)",
    rf"{_NUMBER} `?input(?:s)?`? tokens",
    rf"prompt (?:is )?too long: {_NUMBER} tokens",
    rf"exceeds? context limit: {_NUMBER} \+",
    rf"messages resulted in {_NUMBER}",
    rf"requested(?: a total of)? {_NUMBER} tokens",
    rf"input token count (?:is |\()?{_NUMBER}",
    rf"token count of {_NUMBER}",
    rf"requested tokens \({_NUMBER}\)",
    rf"(?:request|input|prompt) \({_NUMBER} tokens\)",
    rf"(?:request|prompt) contains (?:at least )?{_NUMBER}",
    rf"keep the first {_NUMBER} tokens",
    rf"\bn_keep\W{{1,6}}{_NUMBER}",
    rf"requested:? {_NUMBER}",
    rf"received {_NUMBER}",
)


def read_refusal(text: str) -> tuple[int, int] | None:
    """The window and the prompt's tokens that a refusal of a too long prompt names, 0 for each that it does not name;
    None for a text that is no such refusal.

    ``text`` is what a failed call said, as JSON or plain. Both numbers are the other side's: the first is what prompt and
    answer together may have (or the prompt alone, the wordings do not tell), the second counts the prompt only, where
    the wording tells prompt and answer apart.
    """
    said = text[:READ_CHARACTERS]
    if not any(pattern.search(said) for pattern in _TOO_LONG):
        return None
    return _first(_WINDOWS, said), _first(_COUNTS, said)


def _first(patterns: tuple[Pattern[str], ...], text: str) -> int:
    for pattern in patterns:
        found = pattern.search(text)
        if found:
            return int(re.sub(r"[,_]", "", found[1]))
    return 0
