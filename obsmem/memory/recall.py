"""From an id back to the exact words behind it, as text under a budget or as a value for programs.

Invariants: what exists is printed even when something else is missing, and what is missing is named; a note's own line
always stands first; secrets are masked; an entry that is cut says which characters are left out and how to get them.
Nothing is read here: entries come in as values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core.clean import strip_controls
from obsmem.core.clock import Clock, utc_minute
from obsmem.core.ids import entry_id, shorten
from obsmem.core.mask import mask
from obsmem.core.model import Entry, Note, Reflection
from obsmem.core.tokens import clip, clip_tail, estimate, excerpt
from obsmem.core.tuples import NamedTuple
from obsmem.memory.lines import line, reflection_line

DEFAULT_BUDGET = 2000
SMALLEST_EXCERPT = 40  # tokens; an entry gets at least this much, or only its heading

LEFT_OUT_LINE = 60  # tokens for the line that names the entries for which there was no room

VOICES = {"user": "the user said it", "tool": "a tool showed it", "agent": "the agent claimed it"}


class Source(NamedTuple):
    """One entry behind a note: the entry (its ``text`` the exact words), or the reason why it cannot be shown.

    ``around`` marks an entry that nothing cites, shown because it stands beside a cited one; ``later`` names a human's later
    words on the same matter.
    """

    id: str
    entry: Entry | None = None
    missing: str = ""
    around: bool = False
    later: str = ""


class Found(NamedTuple):
    """Everything that an id names. ``notes`` are the hits, or the supports of ``reflections``; ``dropped`` are the ids
    of those that the block no longer shows, with the reason; ``missing_notes`` are supports that no record is left of."""

    notes: tuple[Note, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    sources: tuple[Source, ...] = ()
    dropped: Mapping[str, str] = {}
    missing_notes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """note | reflection | mixed (notes that are hits themselves beside a reflection) | entry."""
        if not self.reflections:
            return "note" if self.notes else "entry"
        supports = {name for reflection in self.reflections for name in reflection.note_ids}
        return "reflection" if all(note.id in supports for note in self.notes) else "mixed"

    @property
    def status(self) -> str:
        """ok | partial (something is missing, the rest is here) | source_unavailable (no entry left) | no_source |
        not_found."""
        if not (self.notes or self.reflections or self.sources):
            return "not_found"
        cited = [source for source in self.sources if not source.around]
        missing = [source for source in cited if source.entry is None]
        if cited and len(missing) == len(cited):
            return "source_unavailable"
        if missing or self.missing_notes:
            return "partial"
        return "ok" if cited else "no_source"


def with_context(cited: Sequence[Source], session: str, entries: Sequence[Entry], count: int) -> tuple[Source, ...]:
    """Add up to ``count`` entries before and after each cited one of a session, all in the order of the session.

    ``entries`` are those of the session, in order. Sources of other sessions, and missing ones, stay in front.
    """
    position = {entry.seq: index for index, entry in enumerate(entries)}
    own = {source.entry.seq: source for source in cited if source.entry and source.id.startswith(session + ".")}
    wanted: set[int] = set()
    for seq in own:
        if seq in position:
            wanted.update(range(max(0, position[seq] - count), min(len(entries), position[seq] + count + 1)))
    others = [
        source
        for source in cited
        if not (source.entry and source.entry.seq in own and source.id.startswith(session + "."))
    ]
    placed = [own.get(entries[index].seq) for index in sorted(wanted)]
    around = [
        source or Source(entry_id(session, entries[index].seq), entries[index], around=True)
        for source, index in zip(placed, sorted(wanted), strict=True)
    ]
    lost = [source for seq, source in own.items() if seq not in position]
    return (*others, *lost, *around)


def render(found: Found, budget: int = DEFAULT_BUDGET, clock: Clock = utc_minute, *, raw: bool = False) -> str:
    """Write what was found in at most ``budget`` tokens. Notes come first and take at most
    half of it where entries follow; what has no room is counted and named.

    ``raw`` leaves secrets and control characters in, for a person at a terminal who asked for it.
    """
    if found.status == "not_found":
        return "Nothing has that id."
    head = _head(found, clock)
    missing = [f"{source.id}: {source.missing or 'not available'}" for source in found.sources if source.entry is None]
    if missing:
        head.append("Not available: " + "; ".join(missing))
    if found.status == "no_source":
        head.append("No entries stand behind it.")
    there = [(source, source.entry) for source in found.sources if source.entry is not None]
    top = "\n".join(_fit_lines(head, budget // 2 if there else budget))
    blocks = _blocks(there, budget - estimate(top), clock, raw=raw)
    text = "\n\n".join([top, *blocks] if top else blocks)
    return text if raw else mask(text)


def _fit_lines(lines: Sequence[str], room: int) -> list[str]:
    """The first lines that fit; a long one is cut inside, and what does not fit is counted."""
    more = "(and {} more lines; recall the ids one by one)"
    room -= estimate(more) + 4
    kept: list[str] = []
    for text in lines:
        shown = excerpt(text, room, " […] ")
        if not shown or (kept and shown != text):
            return [*kept, more.format(len(lines) - len(kept))]
        kept.append(shown)
        room -= estimate(shown + "\n")
    return kept


def cut(text: str, start: int, end: int, *, raw: bool = False) -> str:
    """Characters ``start`` up to ``end`` of an entry, counted as ``render`` counts them in its ``--range``."""
    return _words(text, raw=raw)[max(0, start) : max(0, end)]


def as_value(found: Found, clock: Clock = utc_minute, *, raw: bool = False) -> dict[str, Any]:
    """The same as a value that JSON can hold. Texts are whole."""

    def words(text: str) -> str:
        return _words(text, raw=raw)

    return {
        "status": found.status,
        "kind": found.kind,
        "collision": _collides(found),
        "reflections": [
            {
                "id": item.id,
                "text": words(item.text),
                "note_ids": list(item.note_ids),
                "status": "dropped" if item.id in found.dropped else "active",
                "why": found.dropped.get(item.id, ""),
            }
            for item in found.reflections
        ],
        "notes": [
            {
                "id": note.id,
                "text": words(note.text),
                "at": note.at,
                "time": clock(note.at),
                "relevance": note.relevance,
                "evidence": note.evidence,
                "grounding": note.grounding,
                "missing": [words(piece) for piece in note.missing],
                "entry_ids": list(note.entry_ids),
                "status": "dropped" if note.id in found.dropped else "active",
                "why": found.dropped.get(note.id, ""),
            }
            for note in found.notes
        ],
        "missing_notes": list(found.missing_notes),
        "sources": [_source_value(source, clock, raw=raw) for source in found.sources],
    }


def _source_value(source: Source, clock: Clock, *, raw: bool) -> dict[str, Any]:
    entry = source.entry
    if entry is None:
        return {"id": source.id, "missing": source.missing or "not available"}
    place = entry.place
    return {
        "id": source.id,
        "around": source.around,
        "later": source.later,
        "kind": entry.kind,
        "speaker": entry.speaker,
        "tool": entry.tool,
        "ok": entry.ok,
        "at": entry.at,
        "time": clock(entry.at),
        "active": entry.active,
        "file": place.source if place else "",
        "line": place.line if place else 0,
        "text": _words(entry.text, raw=raw),
    }


def _words(text: str, *, raw: bool) -> str:
    return text if raw else mask(strip_controls(text))


def _collides(found: Found) -> bool:
    supports = {name for reflection in found.reflections for name in reflection.note_ids}
    hits = len(found.reflections) + sum(note.id not in supports for note in found.notes)
    return hits > 1


def _told(why: str) -> str:
    """Why the block no longer shows a record: another one that refuted or replaced it is worth naming."""
    told = f" ({why})" if " by " in why and not why.startswith("retired") else ""
    return f"dropped{told}: no longer in the block, kept here"


def _head(found: Found, clock: Clock) -> list[str]:
    short = shorten([note.id for note in found.notes] + [item.id for item in found.reflections])
    lines = []
    if _collides(found):
        lines.append("More than one record begins with this id.")
    for reflection in found.reflections:
        lines.append("Reflection " + reflection_line(reflection, short[reflection.id]))
        if reflection.id in found.dropped:
            lines.append("  " + _told(found.dropped[reflection.id]))
    for note in found.notes:
        later = next((one.later for one in found.sources if one.later and one.id in note.entry_ids), "")
        lines.append(f"Note {line(note, short[note.id], clock)} {later}".rstrip())
        remarks = [VOICES[note.evidence]]
        if note.grounding != "verified":
            remarks.append(
                f"{note.grounding} of it found in the entries"
                if note.grounding == "none"
                else "partly found in the entries"
            )
            remarks.append("missing there: " + ", ".join(note.missing))
        if note.id in found.dropped:
            remarks.append(_told(found.dropped[note.id]))
        lines.append("  " + "; ".join(remarks))
    if found.missing_notes:
        lines.append("Notes not available: " + ", ".join(found.missing_notes))
    return lines


def _blocks(there: Sequence[tuple[Source, Entry]], room: int, clock: Clock, *, raw: bool) -> list[str]:
    """Share the room: short entries leave what they do not need to the longer ones."""
    headings = [_heading(source, entry, clock) for source, entry in there]
    texts = [_words(entry.text, raw=raw).rstrip("\n") for _, entry in there]
    costs = [estimate(text) for text in texts]
    floors = [
        min(cost, estimate(_all_of(text, source.id)))
        for cost, text, (source, _) in zip(costs, texts, there, strict=True)
    ]
    overhead = [estimate(heading + "\n\n\n") + floor for heading, floor in zip(headings, floors, strict=True)]
    kept = _how_many(overhead, room)
    left = [source.id for source, _ in there[kept:]]
    spare = room - sum(overhead[:kept]) - (LEFT_OUT_LINE if left else 0)
    shares = list(floors[:kept])
    by_size = sorted(range(kept), key=lambda index: costs[index])
    for done, index in enumerate(by_size):
        more = min(costs[index] - floors[index], max(0, spare) // (kept - done))
        shares[index] += more
        spare -= more
    blocks = [
        f"{headings[index]}\n{_excerpt(texts[index], shares[index], there[index][0].id)}" for index in range(kept)
    ]
    if left:
        blocks.append(clip(f"{len(left)} more entries, each by itself with recall: {' '.join(left)}", LEFT_OUT_LINE))
    return blocks


def _how_many(costs: Sequence[int], room: int) -> int:
    """How many from the front fit, with room for the line that names the others where there are any."""
    if sum(costs) <= room:
        return len(costs)
    used = 0
    for index, cost in enumerate(costs):
        used += cost
        if used > room - LEFT_OUT_LINE:
            return index
    return len(costs)


def _heading(source: Source, entry: Entry, clock: Clock) -> str:
    who = {"human": "user"}.get(entry.speaker, entry.speaker)
    what = f" {entry.tool}" if entry.tool else ""
    outcome = " (failed)" if entry.ok is False else ""
    place = f" · {entry.place.source}:{entry.place.line}" if entry.place and entry.place.line else ""
    if entry.place and entry.place.table:
        place = f" · {entry.place.source} {entry.place.table} {entry.place.key}"
    live = "" if entry.active else " · on an abandoned branch"
    around = " · around it" if source.around else ""
    later = f" {source.later}" if source.later else ""
    return f"[{source.id}] {who}{what} {clock(entry.at)}{outcome}{place}{live}{around}{later}:"


def _excerpt(text: str, budget: int, name: str) -> str:
    """Head and tail with a mark between that says which characters are left out, and how to get them."""
    if estimate(text) <= budget:
        return text
    whole = _all_of(text, name)
    longest = f"\n[… {len(text)} characters left out: recall {name} --range {len(text)}:{len(text)} …]\n"
    room = budget - estimate(longest) - 2
    if room < SMALLEST_EXCERPT:
        return whole
    head = clip(text, (room + 1) // 2)
    tail = clip_tail(text[len(head) :], room // 2)
    start, end = len(head), len(text) - len(tail)
    return f"{head}\n[… {end - start} characters left out: recall {name} --range {start}:{end} …]\n{tail}"


def _all_of(text: str, name: str) -> str:
    return f"[… {len(text)} characters: recall {name} --range 0:{len(text)} …]"
