"""Which value a human's sentence gives to what: "the staging port is 8091", "we go with 8100 for the staging port".

Two rules, the surer first. A claim is a sentence of a known shape that ties a value to a named thing; a topic is any sentence
that names a thing by two words side by side and holds values. Later words are on the same where they give that thing another
value, or take it back. Invariant: nothing here retires anything; it says that later words speak of the same, and which these are.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from obsmem.core import late

SENTENCE_LIMIT = 240  # characters: what is longer tells more than one thing
LINES_SEARCHED = 40
Later = Literal["", "same", "withdrawn", "superseded"]  # what later words seem to be to earlier ones
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
_GIVES_UP = late.pattern(
    r"\b(?:forget|disregard|ignore|drop(?:ped)?|scrap(?:ped)?|scratch|strike|cancel(?:l?ed)?|skip|ditch(?:ed)?|remove[ds]?|retire[ds]?|withdraw[ns]?"
    r"|withdrew|obsolete|deprecated|moot|irrelevant|gone|dead|off the table|rid of|gave up|give up|abandon(?:ed)?|stop(?:ped)?|no longer|any ?more"
    r"|(?:do|does|need|will)(?:n['’]?t| not) (?:need|want|use|exist|be needed))\b",
    re.IGNORECASE,
)
_CODE = late.pattern(r"[|{}<>$]|\S=|=\S|;$|^\s*(?:[+#\[]|-\S)")  # a pasted log, a diff, code: nobody's own sentence
_VALUES = late.pattern(_VALUE)
_TOKEN = late.pattern(r"[A-Za-z]\w*|[^\sA-Za-z-]")
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
# Words that are common where people talk of code: two of these side by side name nothing in particular.
_COMMON_WORDS = """
    about after again all already also am another any back because been before being between both came come could did does doing
    done down each either else even ever every find first get getting give given going good got had he her here how into just kind
    know let like little look lot made make makes many may maybe me might most much need needs never no off often okay old once
    only out own per put rather really right said say see seem seems she since some still such sure than them then think though
    through too try two under until up us very want way well were when where whether why working yes yet add fix run check update
    show test tests file files code line lines function create implement
"""
_COMMON = _BARE | frozenset(_COMMON_WORDS.split())


class Claim(NamedTuple):
    """One sentence's value for a thing. ``thing`` are its words that name anything; ``value`` '' where it is taken back; ``words``
    are the sentence."""

    thing: frozenset[str]
    value: str
    words: str = ""


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
                found.append(Claim(words, value.strip("`\"'.,;:").casefold(), sentence.strip()))
        if len(found) >= CLAIMS_KEPT:
            break
    return tuple(found[:CLAIMS_KEPT])


class Topic(NamedTuple):
    """A sentence that names things by two words each. ``gives_up`` is True where it may take one of them back."""

    words: str
    names: frozenset[tuple[str, str]]
    values: frozenset[str]
    gives_up: bool


def topics_in(text: str) -> tuple[Topic, ...]:
    """What a human's sentences name by two words, with the values in them; questions and pasted lines name nothing."""
    found: list[Topic] = []
    for words in _units(text):
        if words.endswith("?") or _CODE.search(words):
            continue
        names = _names_in(_VALUES.sub(" . ", words))
        if names:
            values = frozenset(match.group().strip("`\"'.,;:").casefold() for match in _VALUES.finditer(words))
            found.append(Topic(words, names, values, _GIVES_UP.search(words) is not None))
        if len(found) >= CLAIMS_KEPT:
            break
    return tuple(found)


def _units(text: str) -> list[str]:
    """Lines, and of a long one its sentences: what is said in few words is about one thing."""
    lines = [line.strip() for line in text.split("\n")[:LINES_SEARCHED]]
    units = [part for line in lines for part in ([line] if len(line) <= SENTENCE_LIMIT else _SENTENCE.split(line))]
    return [unit for unit in units if 0 < len(unit) <= SENTENCE_LIMIT]


def _names_in(sentence: str) -> frozenset[tuple[str, str]]:
    """Pairs of uncommon words side by side: "staging port", of "the ports" nothing."""
    words = [_singular(word.casefold()) for word in _TOKEN.findall(sentence)]
    return frozenset(pair for pair in pairwise(words) if all(map(_names_something, pair)))


def _singular(word: str) -> str:
    return word.rstrip("s") if len(word) > 4 else word


def _names_something(word: str) -> bool:
    return len(word) > 2 and word.isalpha() and word not in _COMMON


def on_the_same(later: Topic, earlier: Topic) -> Later:
    """``same`` if later words name a thing that earlier ones gave a value, and hold a new one; ``withdrawn`` if they hold none
    and give something up; '' otherwise."""
    if not earlier.values or not later.names & earlier.names:
        return ""
    if not later.values <= earlier.values:
        return "same"
    return "withdrawn" if later.gives_up else ""


def replaces(later: Claim, earlier: Claim) -> bool:
    """True if a later claim gives another value to the same thing, or takes it back. The same thing: all words of the shorter
    name stand in the longer one, and of a name of one word, the other has no more."""
    small, large = sorted((later.thing, earlier.thing), key=len)
    if not earlier.value or later.value == earlier.value or not small <= large:
        return False
    return len(small) > 1 or len(large) == 1
