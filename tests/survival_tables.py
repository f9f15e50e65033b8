"""The tables of SPEC.md that quote the bench of survival.

Invariant: every figure stands in the summary of the committed artefact, in the very digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ARTEFACT = Path(__file__).resolve().parents[1] / "bench" / "results" / "survival.json"
ARMS = (
    ("B1 tail", "the last messages"),
    ("B3 prompts", "what the user said"),
    ("B4 native", "the summary that the harness wrote"),
    ("B5 card", "a hand-made card with every identifier"),
    ("B5' card, no dump", "the same without its identifiers"),
    ("B8 ours", "the block alone"),
    ("B7 native + ours", "summary and block"),
    ("B9 another session's", "another session's block"),
    ("B11 ours, shuffled", "the block with its files and errors exchanged"),
    ("B10 everything", "the whole session"),
)
CLASSES = {
    "edited": "edited", "read only": "only read", "identifier in file": "name in its file", "command and error": "command, its error",
    "user's words": "user's words", "open to-do": "open to-dos", "demand": "used later",
}  # fmt: skip
LASTING = {kind: CLASSES[kind] for kind in ("edited", "read only", "identifier in file", "user's words")}
PLANTS = {
    "right": "current value told", "retired": "standing value not told, or marked", "stale": "old value without a mark",
    "misled": "… and what replaced it nowhere", "asserted": "never true, told as true", "abstained": "no value given where there is none",
}  # fmt: skip
WAYS = {"fixed": "the bench's wordings", "drawn": "wordings from the grammar"}

Table = Callable[[Iterable[str], Iterable[Iterable[str]]], str]
Row = Mapping[str, str]


def survival(half: str, table: Table) -> str:
    """What the artefact says of one half of the sessions."""
    found = json.loads(ARTEFACT.read_text(encoding="utf-8"))["summary"].get(half)
    if found is None:
        return "None were measured in this run.\n"
    lost = [(name, row["tokens"], *_cells(row["lost"])) for name, row in found["sections"].items()]
    parts = [
        _held(half, found, table),
        table(("summary and block, and so many calls", *CLASSES.values()), _rows(found["calls"].items())),
        table(
            ("search for what the summary dropped and the session used", "first hit", "first five hits"),
            [(f"{found['search']['questions']} questions", found["search"]["hit@1"], found["search"]["hit@5"])],
        ),
        table(("made-up facts", *PLANTS.values()), _rows(_plants(found["plants"]), PLANTS)),
        _wrong(found, table),
        table(("the block, so many rounds on", *LASTING.values()), _rows(_rounds(found["rounds"]), LASTING)),
        table(
            ("after each compaction that really happened", *LASTING.values()), _rows(_course(found["course"]), LASTING)
        ),
        table(("points lost without a section", "share of the tokens", *CLASSES.values()), lost),
    ]
    return "\n".join(parts)


def _cells(row: Row, columns: Mapping[str, str] = CLASSES) -> list[str]:
    return [row.get(kind, "–") for kind in columns]


def _rows(named: Iterable[tuple[str, Row]], columns: Mapping[str, str] = CLASSES) -> list[tuple[str, ...]]:
    return [(name, *_cells(row, columns)) for name, row in named]


def _held(half: str, found: Mapping[str, Any], table: Table) -> str:
    """Every arm, with the number of facts above and the difference below."""
    return table(
        (f"{half}, {found['compactions']} compactions of {found['sessions']} sessions", *CLASSES.values()),
        [
            ("facts", *(str(found["facts"][kind]) for kind in CLASSES)),
            *_rows((about, found["arms"][arm]) for arm, about in ARMS),
            ("summary and block minus summary", *_cells(found["differences"])),
        ],
    )


def _plants(found: Mapping[str, Mapping[str, Row]]) -> list[tuple[str, Row]]:
    return [
        (f"{WAYS[name]}, {'block alone' if way == 'block' else way}", row)
        for name, ways in found.items()
        for way, row in ways.items()
    ]


def _wrong(found: Mapping[str, Any], table: Table) -> str:
    """What is wrongly retired or false, and whether notes cite what they tell."""
    standing, false, cited = found["standing"], found["false"], found["citations"]
    reached = [
        (f"lines of facts that {who} cites", *_cells(cited[key]))
        for key, who in (("reached by notes", "a note"), ("reached by notes or block", "a note or the block"))
    ]
    return table(
        ("what should not be, and what should", "looked at", "share"),
        [
            ("instructions of the user wrongly retired", str(standing["asked"]), standing["retired"]),
            *(
                (f"claims of the {name} that the session never had", str(false[key]["claims"]), false[key]["rate"])
                for key, name in (("ours", "block"), ("native", "summary"))
            ),
            *(
                (f"names beside a file in {name}, never together in the session", str(false[key]["bindings"]), false[key]["falsely bound rate"])
                for key, name in (("ours", "the block"), ("shuffled", "the block with files exchanged"))
                if "bindings" in false.get(key, ())
            ),
            ("notes whose entries were all shown to the observer", str(cited["notes"]), cited["ids shown"]),
            ("notes whose rare words stand in the cited lines", str(cited["telling"]), cited["contained"]),
            ("entries recalled byte for byte, the transcript gone", str(cited["recalled"]), cited["same bytes"]),
        ],
    ) + "\n" + table(("citations", *CLASSES.values()), reached)  # fmt: skip


def _rounds(found: Mapping[str, Row]) -> list[tuple[str, Row]]:
    return [
        ("fewer than half of the first, from round" if name == "cliff" else name, row) for name, row in found.items()
    ]


def _course(found: Mapping[str, Any]) -> list[tuple[str, Row]]:
    about = {"native": "summary", "ours": "block", "native + ours": "summary and block"}
    return [
        (f"{number}, {about[arm]} ({one['sessions']} sessions)", row)
        for number, one in found.items()
        for arm, row in one["arms"].items()
    ]
