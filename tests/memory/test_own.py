"""Our own voice is known by our name, and by the program of that name, never by a word alone."""

from __future__ import annotations

import pytest

from obsmem.core.model import Action, Entry
from obsmem.memory.own import is_ours_alone, is_own_call, is_own_text


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


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("recall 3fa9c1d | head -5", True),
        ("cd /srv && recall abcd.12; observational-memory search x", True),
        ("pytest -q && recall abcd.12", False),
        ("recall abcd.12 && rm -r build", False),
        ("pytest -q", False),
    ],
)
def test_a_call_that_runs_something_else_too_is_not_ours_alone(command: str, alone: bool) -> None:
    assert is_ours_alone(call(command)) is alone


def test_our_tools_and_our_block_are_ours_but_not_a_humans_words() -> None:
    for tool in ("mcp__observational-memory__search", "mcp__observational_memory.recall", "memory_search", "recall"):
        assert is_own_call(call(tool=tool)) and is_ours_alone(call(tool=tool))
    assert not is_own_call(call(tool="mcp__other__recall")) and not is_own_call(call(tool="recall_all"))
    block = '<observational-memory delivery="k3f9" part="1/1">'
    assert is_own_text(Entry(1, "", "notice", "harness", block))
    assert not is_own_text(Entry(1, "", "user", "human", f"why is {block} there?"))
