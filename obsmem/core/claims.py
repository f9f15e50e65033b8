"""Which value a human's sentence gives to what: "the staging port is 8091", "we go with 8100 for the staging port".

Only a sentence that ties a value to a named thing counts, so that a later sentence about the same thing can be told from one that
merely shares a word. Invariant: nothing here retires anything; it says that later words speak of the same, and which these are.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from obsmem.core import late

SENTENCE_LIMIT = 240  # characters: what is longer tells more than one thing
LINES_SEARCHED = 40
CLAIMS_KEPT = 12  # of one instruction

# A value: quoted, a path or an address, a word that has a digit in it, or one that is spelt as no word of a language is.
_VALUE = (
    r"""(?:`[^`\n]{1,80}`|"[^"\n]{1,80}"|'[^'\n]{2,80}'|https?://\S+|[\w.-]*(?:/[\w.-]+)+/?|[\w.:-]*\d[\w.:-]*|\w+_\w+"""
    r"""|(?=\w{6})\w*(?i:[bcdfghjklmnpqrstvwxz]{4})\w*)(?![\w-])"""
)
# What it is given to: one to four words, the last of them a noun by its place.
_THING = r"(?:[A-Za-z][\w-]*\s+){0,3}[A-Za-z][\w-]*"
_DETERMINER = r"(?:the|a|an|our|your|my|its|this|that)\s+"
_GIVES = (
    # the THING (…) is VALUE
    late.pattern(
        rf"(?:{_DETERMINER}|^)(?P<thing>{_THING}?)(?:\s+(?:for|of|in|on)\s+[\w\s-]{{1,30}}?)?"
        rf"\s*(?:\bis\b|\bare\b|\bwas\b|(?:should|must|has to|will|needs to)\s+be(?:come)?|\bbecomes\b|(?:changes?|changed|moves?|set)\s+to)"
        rf"(?:\s+(?:now|again|called|named|set to|to be|at|always))?\s+(?P<value>{_VALUE})",
        re.IGNORECASE,
    ),
    # (use|go with|set|move to …) VALUE (…) THING
    late.pattern(
        rf"\b(?:use|using|take|go(?:ing)? with|went with|switch(?:ed)? to|mov(?:e|ed) (?:us )?(?:over )?to|chang(?:e|ed) to|stick with|pick|keep)\s+"
        rf"(?P<value>{_VALUE})[;,]?\s+(?:[\w']+\s+){{0,4}}?(?:as|for|wherever|whenever|where|when|that is what)?\s*(?:[\w']+\s+){{0,2}}?"
        rf"{_DETERMINER}(?P<thing>{_THING})",
        re.IGNORECASE,
    ),
    # (set|change|move) the THING to VALUE
    late.pattern(
        rf"\b(?:set|change|move|switch|rename|bump|raise|lower|point|put)\s+(?:{_DETERMINER})?(?P<thing>{_THING}?)\s+(?:to|at|on|in)\s+(?P<value>{_VALUE})",
        re.IGNORECASE,
    ),
)
_TAKES_BACK = late.pattern(
    rf"\b(?:forget(?: about)?|drop(?:ped)?|scrap(?:ped)?|cancel(?:l?ed)?|skip|remove the idea of|no longer (?:need|want|use)|do(?:n['’]?t| not) need|"
    rf"never mind|without|gave up(?: on)?|abandon(?:ed)?|dropped the idea of (?:having )?)\s+(?:the idea of (?:having )?)?(?:{_DETERMINER}|any\s+)?(?P<thing>{_THING})",
    re.IGNORECASE,
)
_SENTENCE = late.pattern(r"(?<=[.!?。！？])\s+|\n+")
_WORD = late.pattern(r"[a-z][\w-]+")
# Words that name no thing by themselves.
_BARE_WORDS = """
    the a an our your my its this that these those is are was be to of for in on at as and or it we you i they what which who whom
    work project here now then there thing things one ones new old same other value values name idea plan change case way part lot
    needed anyway anymore more any everything nothing something wherever whenever whatever from has have had will would can should
    must not so if but with without by over please use used using go take set
"""
_BARE = frozenset(_BARE_WORDS.split())


class Claim(NamedTuple):
    """One sentence's value for a thing. ``thing`` are its words that name anything; ``value`` '' where it is taken back."""

    thing: frozenset[str]
    value: str


def claims_in(text: str) -> tuple[Claim, ...]:
    """What a human's text gives values to, or takes back, in order."""
    found: list[Claim] = []
    for sentence in _SENTENCE.split("\n".join(text.split("\n")[:LINES_SEARCHED])):
        if not sentence or len(sentence) > SENTENCE_LIMIT:
            continue
        given = [(match["thing"], match["value"]) for shape in _GIVES for match in shape.finditer(sentence)]
        if not given:
            given = [(match["thing"], "") for match in _TAKES_BACK.finditer(sentence)]
        for thing, value in given:
            words = frozenset(word for word in _WORD.findall(thing.casefold()) if word not in _BARE)
            if words:
                found.append(Claim(words, value.strip("`\"'.,;:").casefold()))
        if len(found) >= CLAIMS_KEPT:
            break
    return tuple(found[:CLAIMS_KEPT])


def replaces(later: Claim, earlier: Claim) -> bool:
    """True if a later claim gives another value to the same thing, or takes it back. The same thing: all words of the shorter
    name stand in the longer one, and of a name of one word, the other has no more."""
    small, large = sorted((later.thing, earlier.thing), key=len)
    if not earlier.value or later.value == earlier.value or not small <= large:
        return False
    return len(small) > 1 or len(large) == 1
