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

Tool = Callable[[str], dict[str, Any]]
Answer = Mapping[str, Any]


def answers(write: Callable[[str, str], dict[str, Any]], shell: Tool, modules: int = 6) -> Iterator[list[Answer]]:
    """The answers for each of three turns. ``write`` and ``shell`` make the harness's own tool calls."""
    yield [
        *_modules(write, shell, "module", range(modules)),
        {"text": "The modules of the report generator are there."},
    ]
    yield [*_modules(write, shell, "exporter", range(modules)), {"text": "The exporters write at most 4096 rows."}]
    check = f"#!/bin/sh\necho '{FAILURE}' >&2\nexit 7\n"
    yield [
        {"text": "I write the check first.", "tools": [write("check.sh", check)]},
        {"text": "And run it.", "tools": [shell(FAILING_COMMAND)]},
        {"text": "check.sh ends with exit status 7; module_03.py still has to be fixed."},
    ]


def _modules(write: Callable[[str, str], dict[str, Any]], shell: Tool, kind: str, numbers: range) -> Iterator[Answer]:
    for number in numbers:
        name = f"{kind}_{number:02d}"
        source = "".join(f"def {name}_step_{step}(rows):\n    return rows[{step}:]\n\n\n" for step in range(16))
        said = (
            f"{name}.py holds the steps {name}_step_0 to {name}_step_15, each dropping the rows before its own number."
        )
        yield {"text": said, "tools": [write(f"{name}.py", source)]}
        yield {"tools": [shell(f"python3 -c 'import {name}; print({name}.{name}_step_3(list(range(9))))'")]}
