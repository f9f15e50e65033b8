"""What a user or an agent can call by name in every harness: the texts, from one folder, with this machine's commands.

Invariant: each file that is made of one carries a mark, by which alone it is known as ours; the text is the same in every
harness, only what stands around it differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent / "skill_texts"
MARK = "<!-- Written by observational-memory: `install` makes it, `uninstall` removes it. -->"


class Skill(NamedTuple):
    """``body`` has ``{arguments}`` where the words stand that came with the call. ``for_user`` is True for what only a
    user should start; ``hint`` says what may follow the name, '' for nothing."""

    name: str
    description: str
    hint: str
    for_user: bool
    body: str

    def text(self, arguments: str) -> str:
        """The body and our mark, with what names the words that came with the call."""
        return f"{self.body.replace('{arguments}', arguments).rstrip()}\n\n{MARK}\n"


def skills(command: str, recall: str) -> list[Skill]:
    """Every skill, for a machine where these commands run our program and recall."""
    return [_read(path, command, recall) for path in sorted(FOLDER.glob("*.md"))]


def _read(path: Path, command: str, recall: str) -> Skill:
    head, _, body = path.read_text(encoding="utf-8").partition("\n---\n")
    about = dict(line.partition(":")[::2] for line in head.split("\n"))
    words = body.replace("{command}", command).replace("{recall}", recall)
    return Skill(path.stem, about["description"].strip(), about["hint"].strip(), about["user"].strip() == "yes", words)


def front_matter(**values: str) -> str:
    """The head of a Markdown file, as harnesses read it; values that are '' are left out."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in values.items() if value]
    return "\n".join(["---", *lines, "---", "", ""])
