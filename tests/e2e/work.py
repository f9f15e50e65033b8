"""The scripted work that a session does before its compaction: enough of it that its block needs more than one part.

Owns the words that tests look for afterwards. Invariant: every instruction and every fact here is said once, by the
speaker whose part it is, so that finding it in a block shows where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

FIRST_PROMPT = (
    "Build the report generator in small modules. Never touch the file legacy/config.yaml. Use tabs in Makefiles."
)
SECOND_PROMPT = "Now add the exporters. The output limit is 4096 rows, and the header must read X-Report-Version: 7."
THIRD_PROMPT = "Fix the failing check in module_03.py and tell me the exit status of check.sh before you go on."
LAST_PROMPT = "Go on with what is left."

STANDING_ORDER = "legacy/config.yaml"
FAILING_COMMAND = "sh check.sh"
FAILURE = "row limit exceeded: 4097 > 4096"

FILES, FILES_PER_ANSWER = 30, 6

Tool = Callable[[str], dict[str, Any]]
Answer = Mapping[str, Any]


def answers(write: Callable[[str, str], dict[str, Any]], shell: Tool) -> Iterator[list[Answer]]:
    """The answers for each of three turns. ``write`` and ``shell`` make the harness's own tool calls."""
    yield [*_modules(write, shell, "module"), {"text": "The modules of the report generator are all there."}]
    yield [*_modules(write, shell, "exporter"), {"text": "The exporters write at most 4096 rows each."}]
    check = f"#!/bin/sh\necho '{FAILURE}' >&2\nexit 7\n"
    yield [
        {"text": "I write the check first.", "tools": [write("check.sh", check)]},
        {"text": "And run it.", "tools": [shell(FAILING_COMMAND)]},
        {"text": "check.sh ends with exit status 7; module_03.py still has to be fixed."},
    ]


def _modules(write: Callable[[str, str], dict[str, Any]], shell: Tool, kind: str) -> Iterator[Answer]:
    """Several files with each answer, for the sake of time; then one command that uses the last of them."""
    for first in range(0, FILES, FILES_PER_ANSWER):
        names = [f"{kind}_{number:02d}" for number in range(first, first + FILES_PER_ANSWER)]
        said = f"{names[0]}.py to {names[-1]}.py each hold eight steps that drop the rows before their own number."
        yield {"text": said, "tools": [write(f"{name}.py", _source(name)) for name in names]}
        yield {
            "tools": [shell(f"python3 -c 'import {names[-1]}; print({names[-1]}.{names[-1]}_step_3(list(range(9))))'")]
        }


def _source(name: str) -> str:
    return "".join(f"def {name}_step_{step}(rows):\n    return rows[{step}:]\n\n\n" for step in range(8))
