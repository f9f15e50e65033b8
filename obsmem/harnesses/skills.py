"""What a user or an agent can call by name in every harness: the texts, from one folder, with this machine's commands.

Invariant: each file that `install` makes of one carries a mark, by which alone it is known as ours; the text is the same in
every harness, only what stands around it differs.
"""

from __future__ import annotations

import os

from obsmem.core.tuples import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "skill_texts")
ENDING = ".md"
MARK = "<!-- Written by observational-memory: `install` makes it, `uninstall` removes it. -->"


class Skill(NamedTuple):
    """``body`` has ``{arguments}`` where the words stand that came with the call. ``for_user`` is True for what only a
    user should start; ``hint`` says what may follow the name, '' for nothing."""

    name: str
    description: str
    hint: str
    for_user: bool
    body: str

    def text(self, arguments: str, mark: str = MARK) -> str:
        """The body and a mark ('' for none), with what names the words that came with the call."""
        body = self.body.replace("{arguments}", arguments).rstrip()
        return f"{body}\n\n{mark}\n" if mark else f"{body}\n"


def skills(command: str, recall: str) -> list[Skill]:
    """Every skill, for a machine where these commands run our program and recall."""
    return [_read(name, command, recall) for name in sorted(os.listdir(FOLDER)) if name.endswith(ENDING)]


def _read(name: str, command: str, recall: str) -> Skill:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        head, _, body = file.read().partition("\n---\n")
    about = dict(line.partition(":")[::2] for line in head.split("\n"))
    words = body.replace("{command}", command).replace("{recall}", recall)
    return Skill(
        name.removesuffix(ENDING),
        about["description"].strip(),
        about["hint"].strip(),
        about["user"].strip() == "yes",
        words,
    )


def front_matter(**values: str) -> str:
    """The head of a Markdown file, as harnesses read it; values that are '' are left out."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in values.items() if value]
    return "\n".join(["---", *lines, "---", "", ""])
