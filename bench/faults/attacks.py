"""Hostile words stay data, and secrets stay inside, in every way out."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

from bench.faults import hostile_session
from bench.faults.hostile_session import CANARY, HOSTILE
from bench.faults.parts import Part
from bench.faults.place import Place
from bench.faults.ways_out import everything

# What a terminal obeys, and what a reader cannot see.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
FENCE = re.compile(r"<record-([0-9a-f]{10})[^>\n]*>\n(.*?)\n</record-\1>", re.DOTALL)
BLOCK_BEGINS, BLOCK_ENDS = "<observational-memory ", "</observational-memory>"
KEPT_AS_WRITTEN = ("written exported", "written sessions.bundle", "written page.html", "file ", "written .", "prompts")


def hostile(short: bool, chance: random.Random) -> Part:
    """Orders, headings, fences, markers, terminal sequences and unseen characters in every entry: nothing obeys them."""
    part = Part("hostile text")
    with Place() as place:
        place.lines = hostile_session.write(place.project, list(HOSTILE))
        place.grow(len(place.lines))
        place.settings.update(OBSERVE_AFTER_TOKENS="1", CHUNK_MAX_TOKENS="3000")
        counted: Counter[str] = Counter()
        for way, text in everything(place):
            counted[way.split(" ")[0]] += CANARY in text
            part.tried += 1
            for what in _broken_out(way, text):
                part.fault(way, what)
        for kind in ("prompts", "hook", "block", "command", "tool", "written", "json"):
            part.expect(counted[kind] > 0, kind, "the hostile words never came by here, so nothing was shown")
        part.note(f"hostile words came by: {dict(counted)}")
    return part


def _broken_out(way: str, text: str) -> list[str]:
    wrong = []
    if not way.startswith(KEPT_AS_WRITTEN):
        unseen = UNSEEN.search(text)
        if unseen:
            wrong.append(f"{unseen.group()!r} is let out: {text[max(0, unseen.start() - 40) : unseen.end() + 20]!r}")
    if way.startswith("json "):
        try:
            json.loads(text.split("\n\n")[0])
        except ValueError as error:
            if text.strip() and not text.startswith("\n"):
                wrong.append(f"no JSON: {error}: {text[:80]!r}")
        return wrong
    if way.startswith(("hook SessionStart", "hook UserPrompt", "block ")):
        if text.count(BLOCK_ENDS) != text.count(BLOCK_BEGINS):
            wrong.append(f"{text.count(BLOCK_BEGINS)} blocks begin, {text.count(BLOCK_ENDS)} end")
        if 'delivery="zzzz"' in text.replace("\\", ""):
            wrong.append("a marker from an entry stands there as ours")
        wrong += [f"a line is the entry's own: {line[:60]!r}" for line in text.split("\n") if line.startswith(CANARY)]
        headings = Counter(line for line in text.split("\n") if line.startswith("## "))
        parts = max(1, text.count(BLOCK_BEGINS))
        wrong += [f"{line!r} stands {n} times" for line, n in headings.items() if n > parts]
    if way.startswith("tool "):
        outside = FENCE.sub("", text)
        wrong += [
            f"a line outside of a fence is the entry's own: {line[:60]!r}"
            for line in outside.split("\n")
            if line.startswith(CANARY)
        ]
    if way.startswith("written page.html") and "<script>alert('" + CANARY in text:
        wrong.append("a script of an entry would run")
    return wrong


def planted(short: bool, chance: random.Random) -> Part:
    """Secrets of 23 kinds, planted in every kind of entry, looked for in every way out."""
    part = Part("planted secrets")
    with Place() as place:
        found = hostile_session.secrets(chance)
        place.lines = hostile_session.write(place.project, [words for words, _ in found.values()])
        place.grow(len(place.lines))
        place.settings.update(OBSERVE_AFTER_TOKENS="1", CHUNK_MAX_TOKENS="3000")
        ways, masked = 0, Counter[str]()
        for way, text in everything(place):
            ways += 1
            masked[way.split(" ")[0]] += "[masked " in text
            part.tried += len(found)
            for kind, (_, secret) in found.items():
                if secret in text:
                    at = text.index(secret)
                    part.fault(way, f"{kind}: …{text[max(0, at - 60) : at]!r}")
        for way in ("prompts", "hook", "block", "command", "json", "tool", "written", "file"):
            part.expect(masked[way] > 0, way, "no secret was masked there, so nothing was shown")
        part.note(f"{len(found)} kinds in {ways} ways, masked in {dict(masked)}")
    return part
