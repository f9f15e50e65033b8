"""Our own voice is known by our name, and by the program of that name, never by a word alone."""

from __future__ import annotations

import pytest

from obsmem.core.model import Action, Entry
from obsmem.memory.own import is_own_call, is_own_text


def call(command: str = "", tool: str = "Shell") -> Entry:
    """A tool call."""
    return Entry(1, "", "tool_call", "agent", command, tool=tool, actions=(Action("run", command=command),))


@pytest.mark.parametrize(
    "command",
    [
        "observational-memory search parser",
        "cd /srv && recall abcd.12 --raw",
        "python3 /opt/x/observational_memory.py recall abcd.1",
        "FOO=1 ~/.local/share/observational-memory/recall 3fa9c1d",
        "'/home/u/my data/recall' 3fa9c1d",
        "uv run observational-memory status | head",
    ],
)
def test_our_commands_are_ours(command: str) -> None:
    assert is_own_call(call(command))


@pytest.mark.parametrize(
    "command", ["grep -rn recall src", "echo observational-memory", "make recall", "pytest tests/test_recall.py", ""]
)
def test_other_commands_are_not(command: str) -> None:
    assert not is_own_call(call(command))


def test_our_tools_and_our_block_are_ours_but_not_a_humans_words() -> None:
    assert is_own_call(call(tool="mcp__observational-memory__search"))
    block = '<observational-memory delivery="k3f9" part="1/1">'
    assert is_own_text(Entry(1, "", "notice", "harness", block))
    assert not is_own_text(Entry(1, "", "user", "human", f"why is {block} there?"))
