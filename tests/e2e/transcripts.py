"""Transcripts that real programs wrote, kept as cases for the readers of ``obsmem/harnesses``.

Owns what is changed in them on the way: ids and paths of the run, and the programs' own long prompts, which are
shortened. Invariants: records keep their order, number and keys; a text that carries our block is kept whole; a case is
written only when ``OBSMEM_E2E_RECORD`` is set.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .payloads import Scrubber, folder
from .world import World

LONGEST = 600  # characters; no text that a case is about is longer
MARK = "<observational-memory "


def keep(harness: str, world: World, transcript: Path, case: str, about: str) -> None:
    """Write a case folder from a transcript. ``entries.json`` is then made by ``UPDATE_FIXTURES=1 pytest``."""
    if not os.environ.get("OBSMEM_E2E_RECORD"):
        return
    scrubber = Scrubber(world)
    target = folder(harness).parent / case
    target.mkdir(parents=True, exist_ok=True)
    lines = []
    for line in transcript.read_text(encoding="utf-8").split("\n"):
        if line:
            record = _shorten(scrubber.scrub(json.loads(line)))
            lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    (target / "transcript.jsonl").write_text("".join(lines), encoding="utf-8")
    (target / "about.txt").write_text(about + "\n", encoding="utf-8")


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    if isinstance(value, str) and len(value) > LONGEST and MARK not in value:
        return value[:LONGEST] + " […]"
    return value
