"""What one part of the bench found: how many points were tried, and a sentence for each violation."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench import facts
from obsmem import __version__

MOST_SHOWN = 12


@dataclass
class Part:
    """``tried`` points, ``faults`` as (where, what). ``skipped`` says why nothing was tried; ``litter`` counts left files."""

    name: str
    tried: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str = ""
    litter: int = 0
    seconds: float = 0.0

    def fault(self, where: str, what: str) -> None:
        """Write down a violation."""
        self.faults.append((where, what))

    def note(self, text: str) -> None:
        """Write down a count of something within."""
        self.notes.append(text)

    def skip(self, why: str) -> Part:
        """Nothing can be tried here."""
        self.skipped = why
        return self

    def expect(self, good: bool, where: str, what: str) -> None:
        """Count a point; a violation where it is not ``good``."""
        self.tried += 1
        if not good:
            self.fault(where, what)

    def lines(self) -> list[str]:
        """What is shown of it: the violations first ones only."""
        shown = [f"    {where}: {what}" for where, what in self.faults[:MOST_SHOWN]]
        more = len(self.faults) - MOST_SHOWN
        return [*shown, f"    … and {more} more"] if more > 0 else shown

    def value(self) -> dict[str, Any]:
        """For the artefact."""
        return {
            "tried": self.tried, "violations": len(self.faults), "faults": self.faults[:50], "notes": self.notes,
            "skipped": self.skipped, "files_left": self.litter, "seconds": round(self.seconds, 1),
        }  # fmt: skip


def add_to(path: str, part: Part, run: Mapping[str, Any]) -> None:
    """Put a part's counts into an artefact in the place of its older ones. ``run``: what is worth knowing of this run."""
    figures: dict[str, Any] = {"rows": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            figures = json.load(file)
    figures["rows"][part.name] = {**part.value(), "product": __version__, **run}
    facts.write(path, figures)
