"""``bench`` gives the transcripts of the user's own sessions to the bench, and says where there is nothing to measure."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from tests.interfaces.place import SCRIPT, Place

ROOT = Path(__file__).resolve().parents[2]


def run(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        env=place.environment,
        capture_output=True,
        encoding="utf-8",
        cwd=place.project,
    )


def test_sessions_with_a_compaction_are_measured_or_said_to_be_too_small(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert run(place, "bench", "survival").returncode != 0
    assert run(place, "ingest", str(place.transcript)).returncode == 0
    done = run(place, "bench", "survival")
    said = done.stdout + done.stderr
    assert "compactions of" in said or "large enough on both sides" in said, said


def test_the_bench_shares_no_extraction_with_what_it_measures() -> None:
    """Only ``memory``, which drives the program as its user would, imports it; and nothing of how facts are found."""
    for path in sorted((ROOT / "bench" / "survival").glob("*.py")):
        names = [
            node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        ]
        ours = [name for name in names if name.startswith("obsmem")]
        assert path.name == "memory.py" or not ours, (path.name, ours)
        forbidden = ("cards", "claims", "fold", "extractive", "harnesses.claude", "sections", "tokens")
        assert not [name for name in ours if any(word in name for word in forbidden)], path.name
    assert os.path.isfile(ROOT / "bench" / "survival" / "__main__.py")
