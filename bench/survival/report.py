"""What the cases say together: the summary that an artefact keeps, which a document may quote, and its tables as text.

Invariant: a table prints what stands in the summary, and the summary holds percents as they are printed (one place).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.survival import judge
from bench.survival.measure import CLASSES, LASTING, SECTIONS

FIRST = ("B4 native", "B1 tail", "B5 card", "B5' card, no dump")
CLIFF = 0.5  # of what was held in the first round
_SHORT = {
    "identifier in file": "ident~file", "command and error": "cmd~error", "user's words": "words", "open to-do": "to-do",
}  # fmt: skip

Case = dict[str, Any]


def summary(results: Sequence[Case]) -> dict[str, Any]:
    """What the tables print of one half."""
    return {
        "compactions": len(results),
        "sessions": len({one["session"] for one in results}),
        "facts": {kind: sum(one["facts"][kind] for one in results) for kind in CLASSES},
        "arms": {name: _classes(one["arms"][name]["shares"] for one in results) for name in _order(results[0]["arms"])},
        "tokens": {name: _median(one["arms"][name]["tokens"] for one in results) for name in results[0]["arms"]},
        "micro": {name: _pooled(results, name) for name in ("B4 native", "B8 ours", "B7 native + ours")},
        "calls": {count: _classes(one["calls"][count] for one in results) for count in results[0]["calls"]},
        "differences": differences(results),
        "search": _search(results),
        "plants": _plants(results),
        "standing": _standing(results),
        "false": _false(results),
        "citations": _citations(results),
        "rounds": _rounds(results),
        "course": _course(results),
        "sections": _sections(results),
    }  # fmt: skip


def baselines(results: Sequence[Mapping[str, Any]]) -> str:
    """The table of the arms that were there before any memory."""
    rows = {name: _classes(one[name]["shares"] for one in results) for name in FIRST}
    return _table("", CLASSES, rows)


def differences(results: Sequence[Case]) -> dict[str, str]:
    """Native and ours together minus native alone, paired by session, with the 95 % interval, by class."""
    found = {}
    for kind in CLASSES:
        pairs: dict[str, list[float]] = defaultdict(list)
        for one in results:
            ours, other = one["arms"]["B7 native + ours"]["shares"], one["arms"]["B4 native"]["shares"]
            if kind in ours:
                pairs[one["session"]].append(ours[kind] - other[kind])
        if pairs:
            whole, low, high = judge.interval(pairs)
            means = [judge.mean(values) for values in pairs.values()]
            won, lost = sum(one > 0 for one in means), sum(one < 0 for one in means)
            found[kind] = (
                f"{100 * whole:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}] over {len(pairs)} sessions, {won} won, {lost} lost"
            )
    return found


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _share(part: float, whole: float) -> str:
    return _percent(part / whole) if whole else "-"


def _classes(shares: Iterable[Mapping[str, float]], classes: Sequence[str] = CLASSES) -> dict[str, str]:
    """Class -> mean of the shares of the cases that have such facts; classes that none has are left out."""
    held = list(shares)
    return {
        kind: _percent(judge.mean([one[kind] for one in held if kind in one]))
        for kind in classes
        if any(kind in one for one in held)
    }


def _pooled(results: Sequence[Case], name: str) -> dict[str, str]:
    """Class -> the share of all facts, whichever case they are of."""
    return {
        kind: _share(sum(one["arms"][name]["shares"].get(kind, 0) * one["facts"][kind] for one in results), count)
        for kind in CLASSES
        if (count := sum(one["facts"][kind] for one in results))
    }


def _median(values: Iterable[int]) -> int:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def _order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda one: (int(one[1:].split(" ")[0].rstrip("'")), one))


def _search(results: Sequence[Case]) -> dict[str, Any]:
    questions = sum(one["search"]["questions"] for one in results)
    return {"questions": questions} | {
        name: _share(sum(one["search"][name] * one["search"]["questions"] for one in results), questions)
        for name in ("hit@1", "hit@5", "mrr")
    }


def _plants(results: Sequence[Case]) -> dict[str, dict[str, dict[str, str]]]:
    """Set of wordings -> block alone or with calls -> how it stands to them."""
    first = results[0]["plants"]
    return {
        name: {
            way: {row: _percent(judge.mean([one["plants"][name][way][row] for one in results])) for row in rows}
            for way, rows in ways.items()
        }
        for name, ways in first.items()
    }


def _standing(results: Sequence[Case]) -> dict[str, Any]:
    asked, missing, marked = (sum(one["standing"][name] for one in results) for name in ("asked", "missing", "marked"))
    return {"asked": asked, "missing": missing, "marked": marked, "retired": _share(missing + marked, asked)}


def _false(results: Sequence[Case]) -> dict[str, dict[str, Any]]:
    found = {}
    for name, counts in results[0]["false"].items():
        whole = {key: sum(one["false"][name][key] for one in results) for key in counts}
        found[name] = whole | {
            "rate": f"{100 * whole['false'] / max(1, whole['claims']):.2f}",
            "falsely bound rate": f"{100 * whole['falsely bound'] / max(1, whole['bindings']):.2f}",
        }
    return found


def _citations(results: Sequence[Case]) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(one["citations"][name] for one in results)

    reached = [
        _classes({kind: pair[column] for kind, pair in one["citations"]["reached"].items()} for one in results)
        for column in (0, 1)
    ]
    return {
        "notes": total("notes"), "ids shown": _share(total("shown"), total("notes")),
        "telling": total("telling"), "contained": _share(total("contained"), total("telling")),
        "recalled": total("recalled"), "same bytes": _share(total("same"), total("recalled")),
        "reached by notes": reached[0], "reached by notes or block": reached[1],
    }  # fmt: skip


def _rounds(results: Sequence[Case]) -> dict[str, dict[str, str]]:
    """Round -> class -> share; and the round in which a class first fell below half of what was held in the first."""
    rows = {
        str(number): _classes((one["rounds"][number - 1] for one in results), LASTING)
        for number in range(1, len(results[0]["rounds"]) + 1)
    }
    cliff = {}
    for kind in rows["1"]:
        least = CLIFF * float(rows["1"][kind])
        cliff[kind] = next((number for number, row in rows.items() if float(row[kind]) < least), "none")
    return {**rows, "cliff": cliff}


def _course(results: Sequence[Case]) -> dict[str, Any]:
    """After which of the compactions that really happened -> arm -> class -> share, of the sessions that have several."""
    several = [one["course"] for one in results if one["course"]]
    found: dict[str, Any] = {}
    for number in range(max(map(len, several), default=0)):
        there = [one[number] for one in several if len(one) > number]
        arms = {arm: _classes((one[arm] for one in there), LASTING) for arm in there[0]}
        found[str(number + 1)] = {"sessions": len(there), "arms": arms}
    return found


def _sections(results: Sequence[Case]) -> dict[str, Any]:
    """Section -> its share of the block's tokens, and what is held less without it, by class, in points."""
    found = {}
    for name in SECTIONS:
        having = [one for one in results if name in one["sections"]]
        if having:
            cost = [one["sections"][name]["tokens"] / one["arms"]["B8 ours"]["tokens"] for one in having]
            lost = [
                {kind: whole - one["sections"][name]["without"][kind] for kind, whole in held.items()}
                for one in having
                for held in [one["arms"]["B8 ours"]["shares"]]
            ]
            found[name] = {"blocks": len(having), "tokens": _percent(judge.mean(cost)), "lost": _classes(lost)}
    return found


def tables(found: Mapping[str, Any]) -> str:
    """A half's summary as text."""
    parts = [
        _table("share of facts held, in percent", CLASSES, found["arms"], found["tokens"]),
        _table("summary and block, with calls", CLASSES, {f"+ {count}": row for count, row in found["calls"].items()}),
        _lines("summary and block minus summary", found["differences"]),
        _lines("search for what the summary dropped", found["search"]),
        *(
            _table(f"made-up facts, {name} wordings", list(ways["block"]), ways)
            for name, ways in found["plants"].items()
        ),
        _lines("standing instructions", found["standing"]),
        *(_lines(f"claims without a source, {name}", row) for name, row in found["false"].items()),
        _lines("citations", {key: value for key, value in found["citations"].items() if isinstance(value, (str, int))}),
        _table(
            "lines of facts that are cited",
            CLASSES,
            {key: row for key, row in found["citations"].items() if isinstance(row, dict)},
        ),
        _table("block, over five rounds", LASTING, found["rounds"]),
        *(
            _table(f"after compaction {number} of {row['sessions']} sessions with several", LASTING, row["arms"])
            for number, row in found["course"].items()
        ),
        _table(
            "lost without a section, in points (share of the tokens)",
            CLASSES,
            {f"{name} ({row['tokens']} %)": row["lost"] for name, row in found["sections"].items()},
        ),
    ]
    return "\n\n".join(parts)


def _table(
    title: str, columns: Sequence[str], rows: Mapping[str, Mapping[str, str]], tokens: Mapping[str, int] | None = None
) -> str:
    head = f"{'':<26}{'tokens':>8}" if tokens else f"{'':<26}"
    lines = [title] if title else []
    lines.append(head + "".join(f"{_SHORT.get(column, column):>12}" for column in columns))
    for name, row in rows.items():
        size = f"{tokens[name]:>8}" if tokens else ""
        lines.append(f"{name:<26}{size}" + "".join(f"{row.get(column, '-'):>12}" for column in columns))
    return "\n".join(lines)


def _lines(title: str, values: Mapping[str, Any]) -> str:
    return f"{title}: " + "; ".join(f"{name} {value}" for name, value in values.items())
