"""What words ask for: cues in a human's sentences, the objects they name, and the reasons an agent gives.

Invariant: a cue marks, it never rewrites. Sentences come out exactly as they were written, and only a human's own
sentences are searched: the first lines outside code fences, never a pasted log.
"""

from __future__ import annotations

import re
from functools import lru_cache

from obsmem.core import late
from obsmem.core.fold import Order, setting_of

OWN_LINES = 40
SENTENCE_LIMIT = 400
SEARCHED = 2000  # characters of one sentence in which a cue is looked for
OBJECT_LIMIT = 12
ORDER_LIMIT = 24

_CUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (cue, late.pattern(pattern, re.IGNORECASE))
    for cue, pattern in (
        (
            "forbid",
            r"(?:^|[,;:(—-] ?|\b(?:please|you|we|should|must|and|but|so|just|can|sure to|want to|remember to|try to) )never\b(?! mind)"
            r"|(?:^|[,;:(—-] ?|\b(?:please|should|must) )avoid\b"
            r"|\b(?:do not (?!know|think|see|have|understand|need)|must not|mustn'?t|should not be|(?:you|we|it) shouldn'?t|stop \w+ing|not allowed|forbidden|hands off)\b"
            r"|(?:^|[,;:(—-] ?|\b(?:please|and|but|so|just|also|then|ok|okay) )don['’]?t (?!know|think|you\b|worry|see|understand|have|need|mind|forget)\w"
            r"|\b(?:i|we) (?:really )?(?:don['’]?t|do not) (?:want|like|use|allow)\b"
            r"|\bwithout (?:touching|changing|editing|modifying|breaking)\b|\bleave \S+(?: \S+)? (?:alone|untouched|as (?:it )?is)\b"
            r"|^no (?:more |new )?(?!worries|problem|need|idea|one|it|that|this|i\b|we\b|you\b|the\b|let|revert|so\b|but\b|just|not\b|still|way)(?!\w*_)[a-z]{3,}"
            r"|\b(?:niemals|nie wieder|auf keinen fall|bitte nicht|nicht (?:anfassen|ändern|löschen))\b"
            r"|\bjamais\b|^(?:s'il te plaît,? )?n(?:e |['’])[^.]{1,20} pas\b|\bévite[rz]?\b|\b(?:nunca|evita|no (?:uses|toques|cambies|hagas))\b"
            r"|不要|禁止|切勿|不许|别(?:再|用|改|动)"
            r"|絶対に[^。]{0,40}(?:な|しない)|(?:し|さ|使わ|触ら|変え|消さ)ないで|ないでください|してはいけ|ないこと|하지 ?(?:마|말)|금지|절대",
        ),
        (
            "prefer",
            r"(?:^|[,;:(—-] ?|\b(?:please|you|we|should|must|and|but|so|sure to|want to|remember to|sure you|sure we) )always\b"
            r"|\b(?:prefer(?:ably)?|from now on|going forward|in (?:the )?future,|whenever|every time|stick (?:to|with))\b"
            r"|\bi(?:'d| would)? like (?!to (?:see|know|do|have|get|add|understand))|\bplease keep\b|\bmake sure (?:to|you|that you) always\b"
            r"|\buse \S+(?: \S+)?,? (?:instead of|rather than|not|over) |\binstead of\b.{1,60}\buse\b"
            r"|\b(?:immer|bevorzug\w*|lieber|ab jetzt|ab sofort)\b|\b(?:toujours|préfère|désormais)\b|\b(?:siempre|prefiero)\b"
            r"|总是|始终|优先|以后|今后|必ず|常に|いつも|今後は|これからは|優先|항상|반드시|앞으로",
        ),
        (
            "correct",
            r"^(?:no|nope|nah|wait|actually|wrong|oops|hm+,? (?:no|actually))\b(?! worries| problem)"
            r"|\bthat(?:['’]s| is) (?:not|wrong|incorrect)\b|\bnot what i\b|\bi (?:actually )?meant\b|\bi (?:already )?said\b"
            r"|\binstead\b|\brevert\b|\bundo\b|\broll(?:ing)? back\b|\bgo back to\b|^back to\b|, back to\b|\bignore (?:this|that|what)\b|\bforget (?:that|about|what|it)\b"
            r"|\byou (?:forgot|missed|broke|misunderstood|should(?:n'?t| not) have)\b|\bstill (?:fails|failing|broken|not|wrong|doesn'?t)\b"
            r"|^(?:nein|falsch)\b|\b(?:stattdessen|rückgängig)\b|^non\b|\bplutôt\b|\bannule\b|\ben lugar de\b|不对|错了|不是这样|改成|撤销|違います|違う|ではなく|戻して|아니(?:요|라)|대신",
        ),
        (
            "decide",
            r"\blet['’]?s (?:go (?:with|for)|use|do (?:option|\d)|keep|drop|stay|stick|leave it)\b|\bwe['’]?ll (?:use|go|keep|take|do)\b"
            r"|\bi['’]?(?:d|ll) (?:go|take|pick) (?:with|for)?|\bgo (?:with|for) (?:option|the|\d|it)\b|^(?:do )?option \w+\b"
            r"|^(?:yes|yeah|yep|ok|okay|sure|right)\b,? *(?:please\b|do\b|go\b|use\b|let|sounds|agreed|option|$)"
            r"|\b(?:approved|agreed|sounds good|i choose|we decided|ship it)\b|\boption \w+ (?:is|sounds|looks|now|please)\b"
            r"|\b(?:wir nehmen|einverstanden|d'accord|de acuerdo)\b|就用|同意|选择方案",
        ),
        (
            "do",
            r"^(?:(?:ok|okay|yes|yeah|and|now|then|also|so|please|first|next|just|hey|hi|great|cool|right)[,:!]* +)*"
            r"(?:add|analy[sz]e|answer|apply|build|bump|change|check|clean|commit|compare|configure|continue|convert|copy|create|debug|delete"
            r"|deploy|describe|design|do|document|draft|drop|enable|explain|extend|extract|figure|find|finish|fix|format|generate|get|give"
            r"|go|handle|implement|improve|include|init|inspect|install|integrate|investigate|let['’]?s|limit|list|look|make|merge|migrate|move"
            r"|open|optimi[sz]e|plan|prepare|print|pull|push|put|read|rebase|refactor|remove|rename|replace|report|reproduce|rerun|research|respond"
            r"|resolve|review|rewrite|run|search|set|setup|show|simplify|split|start|summari[sz]e|support|switch|take|tell|test|translate|try"
            r"|turn|undo|update|upgrade|use|verify|wire|work|wrap|write)\b(?! (?:is|are|was|has|does|fails|should))"
            r"|\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\bi (?:want|need) (?:you|it|this|to|a|the)\b|\bi['’]d (?:like|love|prefer)\b"
            r"|\blet['’]?s \w|\b(?:we|you) (?:need to|should|must|have to)\b|\bhelp me\b"
            r"|\b(?:bitte|mach|füge?|kannst du)\b|\b(?:peux-tu|ajoute|corrige)\b|\b(?:puedes|añade|arregla)\b|请|帮我|ください|下さい|お願い|해 ?(?:주세요|줘)|부탁",
        ),
    )
)
_QUESTION_WORD = late.pattern(
    r"^(?:(?:and|but|so|ok|okay|hm+|question|also)[,:]* +)*(?:why|what|how|where|when|which|who|is|are|does|do you|did|should|would|was|were|has|have|isn'?t|doesn'?t|warum|wie|pourquoi|comment|qué|cómo)\b",
    re.IGNORECASE,
)
_CORRECTS = late.pattern(r"(?:no|nope|wait|actually|wrong|that['’]s (?:not|wrong))\b", re.IGNORECASE)
_ONE_OFF = late.pattern(
    r"\b(?:don['’]?t|do not|never|avoid) \w+ (?:it|this|that|these|those|them)\b|\b(?:yet|for now|right now|this time|today|until|at the moment|for the moment|anymore now|in this (?:pr|commit|branch))\b"
    # "don't fix anything, just validate it": said of what is asked for now
    r"|\b(?:just|only) (?:analy[sz]e|answer|check|describe|discuss|explain|investigate|look|plan|read|report|review|show|tell|validate|verify)\b",
    re.IGNORECASE,
)
_THIS_ONCE = late.pattern(
    r"\bi(?:['’]d| would) (?:\w+ )?(?:prefer|like)\b|\bi (?:really )?like (?:the|that|this|it|option|how)\b",
    re.IGNORECASE,
)
_LASTING = late.pattern(
    r"\b(?:never|always|from now on|going forward|in (?:the )?future,|whenever|every time|prefer)\b|总是|始终|以后|今后|必ず|常に|いつも|今後は|これからは|絶対に|항상|반드시|앞으로|절대|ab jetzt|désormais|siempre|nunca",
    re.IGNORECASE,
)
_SENTENCE_END = late.pattern(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？；])")
_BULLET = late.pattern(r"^\s*(?:[-*+•]|\d{1,2}[.)]|[a-z]\))\s+")
_PASTED = late.pattern(
    r"^\s*(?:[{}\[\]<|>=#$%@+]|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|at \S+\(|File \"|Traceback|[A-Z]+ *[:|]|\S+\.\w+:\d+|create mode|\S+ \|)"
)

_OBJECT = late.pattern(
    r"`([^`\n]{1,120})`"
    r"|\"([^\"\n]{2,120})\"|“([^”\n]{2,120})”|(?<![\w'’])'([^'\n]{2,80})'(?!\w)"
    r"|((?<![\w/.])(?:~|\.{1,2})?/?(?:[\w@.-]+/)+[\w@.*-]+|(?<![\w/.])/[\w.-]+(?:/[\w.-]+)+)"
    r"|(?<![\w./-])([\w-]+\.(?:py|pyi|js|jsx|ts|tsx|mjs|go|rs|rb|java|kt|c|h|cc|cpp|hpp|cs|php|swift|sh|sql|html|css|scss|vue|svelte|md|rst|txt|json|ya?ml|toml|ini|cfg|lock|env|proto|tf))(?![\w/])"
    r"|(?<![\w-])(--?[a-zA-Z][\w-]*)"
    r"|\b((?:[A-Za-z]\w*\.)*[A-Za-z]\w*(?:_\w+)+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z]{2,}_[A-Z_0-9]+)\b"
    r"|\b((?:port|version|timeout|limit|budget|threads?|workers?|retries|depth|width|python|node)(?: number)?(?: to| of| is|=|:)? ?v?\d[\w.]*)"
)
_REPLACED = late.pattern(
    r"(?:\binstead of|\brather than|\bin place of|(?<=\w), not(?= the| a|\s[`\"'/\w])|\bno longer|\bswitch(?:ing)? from|\bstatt|\bau lieu de|\ben lugar de)\s+(.+)",
    re.IGNORECASE,
)
_TAKEN_BACK = late.pattern(
    r"\b(?:forget|ignore|disregard|scrap|never ?mind|drop)\b.{0,30}?\b(?:said|about|earlier|previous|rule|instruction|order|idea)\b|\b(?:revert|undo|roll back)\b"
    r"|\bno need to\b|\b(?:don['’]?t|do not|doesn['’]?t|no longer)\b.*\b(?:any ?more|any longer|after all)\b|\b(?:it['’]?s|that['’]?s|is) (?:ok|okay|fine|allowed) (?:now )?to\b|\byou (?:may|can) now\b|撤销",
    re.IGNORECASE,
)
_CHANGED = late.pattern(r"^(?:no\b|nope\b|wait\b|actually\b|wrong\b)|\bactually\b|\binstead\b|改成", re.IGNORECASE)
_NEW_VALUE = late.pattern(
    r"\b(?:use|make it|change|set|should be|switch|go (?:back|with)|keep|leave|instead|take)\b|改成", re.IGNORECASE
)
_ADDITION = late.pattern(r"\b(?:also|too|as well|in addition|additionally)\b", re.IGNORECASE)


def own_sentences(text: str) -> list[str]:
    """The human's own sentences: of the first lines outside code fences, without what looks pasted."""
    sentences: list[str] = []
    fenced = False
    for line in text[:20_000].split("\n")[:OWN_LINES]:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        bare = _BULLET.sub("", line).strip()
        if fenced or not bare or line.startswith(("    ", "\t")) or _PASTED.match(line):
            continue
        sentences += [part.strip() for part in _SENTENCE_END.split(bare) if part.strip()]
    return sentences


def cues_in(sentence: str) -> tuple[str, ...]:
    """The cues of one sentence, in the order forbid, prefer, correct, decide, do, ask. A question forbids nothing."""
    asks = sentence.rstrip().endswith(("?", "？")) or _QUESTION_WORD.match(sentence) is not None
    found = [cue for cue, pattern in _CUES if pattern.search(sentence)]
    if asks:
        found = [cue for cue in found if cue == "do" or (cue == "correct" and _CORRECTS.match(sentence))]
        found.append("ask")
    return tuple(found)


def is_standing(sentence: str, cues: tuple[str, ...]) -> bool:
    """True for a lasting order, False for a one-off task."""
    if "ask" in cues or not {"forbid", "prefer"} & set(cues) or _THIS_ONCE.search(sentence):
        return False
    return _LASTING.search(sentence) is not None or _ONE_OFF.search(sentence) is None


def objects_in(text: str) -> tuple[str, ...]:
    """Quoted values, paths, flags, identifiers and numbers with their noun, as written, in order, without repeats."""
    found: dict[str, None] = {}
    for match in _OBJECT.finditer(text[:8000]):
        value = next(group for group in match.groups() if group is not None).strip(" .,:;")
        if value:
            found[value] = None
            if len(found) == OBJECT_LIMIT:
                break
    return tuple(found)


def revoked_in(sentence: str, cues: tuple[str, ...]) -> tuple[str, ...]:
    """The objects of earlier orders that this sentence explicitly takes back; nothing where it is not plain.

    "use X instead of Y" takes back Y; "forget what I said about Y", "don't … Y any more" and "revert Y" take back what
    they name; "actually use port 9090" takes back every earlier value of that setting.
    """
    if "ask" in cues:
        return ()
    replaced = _REPLACED.search(sentence)
    if replaced:
        return objects_in(replaced.group(1)) or _first_word(replaced.group(1))
    if _TAKEN_BACK.search(sentence):
        return objects_in(sentence)
    if _CHANGED.search(sentence) and _NEW_VALUE.search(sentence) and not _ADDITION.search(sentence):
        return tuple(value for value in objects_in(sentence) if setting_of(value))
    return ()


def _first_word(text: str) -> tuple[str, ...]:
    match = re.match(r"(?:the |a |an )?([\w.+#-]{2,40})", text)
    return (match.group(1).rstrip("."),) if match else ()


def orders_in(text: str) -> list[Order]:
    """The sentences of a human text that carry a cue, in order, each clipped; at most ORDER_LIMIT."""
    orders = []
    for sentence in own_sentences(text):
        cues = cues_in(sentence[:SEARCHED])
        if not cues:
            continue
        orders.append(
            Order(
                sentence[:SENTENCE_LIMIT],
                cues,
                is_standing(sentence, cues),
                objects_in(sentence),
                revoked_in(sentence[:SEARCHED], cues),
            )
        )
        if len(orders) == ORDER_LIMIT:
            break
    return orders


_REASON = late.pattern(
    r"\b(?:because|since|so that|instead of|rather than|to avoid|the reason|due to)\b", re.IGNORECASE
)
_CHOICE = late.pattern(
    r"\b(?:i['’]?ll|i will|i['’]?ve|i (?:chose|decided|used|kept|added|made|went|left|removed|changed)|we (?:should|will|can|need|use|chose|decided|keep)|let['’]?s|decided|chose|chosen|use[sd]?|using|keep(?:ing)?|went with|switch(?:ed|ing)?|approach|option|should|prefer|recommend)\b",
    re.IGNORECASE,
)
_NEXT = late.pattern(
    r"^(?:\**(?:next(?: steps?| up)?|remaining(?: work| steps?| tasks?)?|still to do|to ?do|not yet done|left to do|outstanding)\**\s*[,:]\**\s*\S"
    r"|next,? (?:i['’]?ll|i will|i['’]?m going|we)\b|(?:then )?i['’]?ll (?:now|next|then)\b|what(?:['’]s| is) left:)",
    re.IGNORECASE,
)
_FENCE = late.pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP = late.pattern(r"^[\s>#*_-]+|\*\*")
_PREAMBLE = late.pattern(
    r"(?:(?:good|great|perfect|excellent|ok(?:ay)?|right|alright|sure|yes|now|so|hm+|wait|actually|first)\b[,.!:—-]* *)*"
    r"(?:(?:now )?let(?: me|['’]?s)|now (?:i|let|we)|i['’]?ll|i will|i(?:['’]m going to| need to| should| see)|next)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)  # a text is asked for its decisions and for its next steps
def _own_lines(text: str) -> list[str]:
    """The sentences of an agent's text outside code and tables, without markup."""
    sentences: list[str] = []
    for line in _FENCE.sub("", text[:12_000]).split("\n"):
        if "|" in line[:3]:
            continue
        bare = _MARKUP.sub("", _BULLET.sub("", line)).strip()
        sentences += [part for part in _SENTENCE_END.split(bare) if len(part) > 12]
    return sentences


def decisions_in(text: str) -> list[str]:
    """At most three sentences in which the agent names a choice with its reason."""
    if _REASON.search(text) is None:
        return []
    return [
        sentence
        for sentence in _own_lines(text)
        if 30 <= len(sentence) <= 500
        and not sentence.endswith(("?", ":"))
        and _REASON.search(sentence)
        and _CHOICE.search(sentence)
    ][:3]


def next_steps_in(text: str) -> list[str]:
    """At most two sentences in which the agent names what it will do next. "Let me …" is no plan."""
    return [sentence for sentence in _own_lines(text) if _NEXT.match(sentence) and not sentence.endswith((":", "?"))][
        :2
    ]


def question_in(text: str) -> str:
    """The question that an agent's text ends with; '' where it does not end with one."""
    tail = text.rstrip().rstrip("*_`)\"'” ")
    if not tail.endswith(("?", "？")):
        return ""
    line = _MARKUP.sub("", _BULLET.sub("", tail[-2000:].rsplit("\n", 1)[-1])).strip()
    last = _SENTENCE_END.split(line)[-1]
    return (last if len(last) > 12 else line)[-SENTENCE_LIMIT:]


def is_preamble(text: str) -> bool:
    """True for an agent's text that only announces a tool call ("Let me look at the tests:")."""
    bare = text.strip()
    if bare.endswith((":", "：")):
        return True
    if len(bare) >= 300:
        return False
    last = _SENTENCE_END.split(bare)[-1]
    return _PREAMBLE.match(bare) is not None or (_PREAMBLE.match(last) is not None and len(bare) - len(last) < 50)
