"""Figures in the documents are those of a committed artefact, and the benches' own arithmetic is right.

A comment ``<!-- figures: bench/results/NAME.json -->`` (or ``NAME.json at PATH``, keys of nested objects with ``>`` between them) stands
before a table: its first column and its headings then are keys in the artefact, and every cell is the value there,
rounded as it is quoted. A cell may quote the first of several numbers, or all; one that says nothing (``–``) counts as nothing.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs_tables import ROOT

DOCUMENTS = (ROOT / "README.md", ROOT / "SPEC.md")
RESULTS = ROOT / "bench" / "results"
MARK = re.compile(r"<!-- figures: (bench/results/[\w-]+\.json)(?: at ([^\n]+?))? -->\n\n?((?:\|[^\n]*\n)+)")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def wrong_cells(text: str, root: Path) -> list[str]:
    """What stands in marked tables and is not so in the artefacts that they name."""
    wrong = []
    for name, keys, table in MARK.findall(text):
        artefact = json.loads((root / name).read_text(encoding="utf-8"))
        for key in filter(None, map(str.strip, keys.split(">"))):
            artefact = artefact[key]
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().split("\n")]
        assert rows, f"{name}: a table without rows"
        for row in rows:
            assert len(row) == len(head), row
            for column, cell in list(zip(head, row, strict=True))[1:]:
                if cell not in ("", "–") and not _says(cell, artefact.get(_bare(row[0]), {}).get(_bare(column))):
                    wrong.append(f"{name}: {row[0]}, {column}: {cell}")
    return wrong


def _bare(cell: str) -> str:
    return cell.replace("`", "").replace("**", "")


def _says(cell: str, value: Any) -> bool:
    """True if a cell quotes a value of an artefact, rounded to the digits that it shows."""
    if isinstance(value, bool) or value is None:
        return cell == {True: "yes", False: "no", None: "not measured"}[value]
    if isinstance(value, str):
        return _bare(cell) == value
    quoted = NUMBER.findall(cell)
    values = value if isinstance(value, list) else [value]
    if not quoted or len(quoted) not in (1, len(values)):
        return False
    return all(
        abs(float(one.replace(",", "")) - held) <= 0.5000001 * 10.0 ** -len(one.partition(".")[2])
        for one, held in zip(quoted, values, strict=False)
    )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_quoted_figures_are_those_of_the_artefact(path: Path) -> None:
    assert wrong_cells(path.read_text(encoding="utf-8"), ROOT) == []


def test_every_mark_stands_before_a_table() -> None:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert text.count("<!-- figures:") == len(MARK.findall(text)), (
            f"{path.name}: a mark without a table, or misspelt"
        )


def test_artefacts_name_no_place_and_no_host() -> None:
    artefacts = sorted(RESULTS.glob("*.json"))
    assert artefacts
    for artefact in artefacts:
        assert not re.search(r"/(?:home|root|tmp|work|Users)/", artefact.read_text(encoding="utf-8")), artefact.name


@pytest.mark.parametrize(
    ("cell", "wrong"),
    [("1.48", 0), ("1.5", 0), ("1.49", 1), ("1.48 (1.45–1.52)", 0), ("1.48 (1.45–1.53)", 1), ("–", 0), ("fast", 1)],
)
def test_a_cell_is_compared_as_it_is_rounded(tmp_path: Path, cell: str, wrong: int) -> None:
    results = tmp_path / "bench" / "results"
    results.mkdir(parents=True)
    (results / "one.json").write_text('{"rows": {"Stop, 1 GB": {"/ start": [1.481, 1.45, 1.519]}}}', encoding="utf-8")
    text = (
        f"<!-- figures: bench/results/one.json at rows -->\n| what | / start |\n|---|--:|\n| `Stop, 1 GB` | {cell} |\n"
    )
    assert len(wrong_cells(text, tmp_path)) == wrong
    assert len(wrong_cells(text.replace("1 GB", "2 GB"), tmp_path)) == (cell != "–")
