"""What our own commands gave an agent is kept, and observed by nobody: a claim that is recalled is no proof of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.tasks.remember import remember
from tests.tasks.talk import Talk, entries, fresh, opened, session_of, watch
from tests.tasks.test_file_story import use

CLAIM = "The parser fails in src/parse.py:88 with ValueError: bad header, exit code 3"


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize(
    ("tool", "values", "ours"),
    [
        ("Bash", {"command": "recall 3fa9c1d"}, True),
        ("mcp__observational-memory__search", {"query": "parser"}, True),
        ("Bash", {"command": "pytest -q; recall 3fa9c1d"}, False),
        ("Bash", {"command": "cat log.txt"}, False),
    ],
)
def test_only_what_others_gave_is_observed(
    tool: str, values: dict[str, str], ours: bool, in_pieces: bool, tmp_path: Path
) -> None:
    talk = Talk()
    talk.user("Why does the parser fail?")
    use(talk, tool, values, CLAIM)
    talk.agent("Understood.")
    with opened() as store:
        path = talk.write(tmp_path)
        if in_pieces:
            whole = path.read_bytes()
            lines = talk.lines()
            path.write_bytes(b"".join(lines[:2]))
            session_of(store, path)
            path.write_bytes(whole)
        stored = session_of(store, path)
        (result,) = (one for one in entries(store, stored) if one.kind == "tool_result")
        assert result.text.startswith(CLAIM) and result.speaker == ("harness" if ours else "tool")
        watch(store, stored)
        noted = any("ValueError" in note.text for note in remember(store, fresh(store, stored)).notes)
        assert not (ours and noted)
