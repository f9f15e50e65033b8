"""What our own commands gave an agent is kept, and observed by nobody: a claim that is recalled is no proof of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.core.finds import Query
from obsmem.interfaces.mcp_scope import Asker
from obsmem.interfaces.mcp_tools import call_tool
from obsmem.memory.own import INTRODUCTION
from obsmem.tasks.remember import remember
from obsmem.tasks.search import search
from obsmem.tasks.words import index_all
from tests.tasks.talk import SESSION, Talk, entries, fresh, opened, session_of, watch
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


# A harness whose transcript has no ids of calls: sections of text, each under its label.
NAMELESS = [
    "user:\n<user_query>\nWhy does the parser fail?\n</user_query>\n\n",
    "[Tool call] run_terminal_cmd\n  command: cat log.txt\n\n",
    "[Tool call] run_terminal_cmd\n  command: recall 3fa9c1d\n\n",
    "[Tool call] Grep\n  pattern: header\n\n",
    f"[Tool result] Grep\nsrc/parse.py:88: {CLAIM}\n\n",
    f"[Tool result] run_terminal_cmd\n{CLAIM} (in the log)\n\n",
    f"[Tool result] run_terminal_cmd\nNote [3fa9c1d] {CLAIM}\n\n",
    "assistant:\nIt is the header.\n[Tool call] run_terminal_cmd\n  command: recall 3fa9c1d\n\n",
    "[Tool result] run_terminal_cmd\n\n",
    "[Tool call] run_terminal_cmd\n  command: cat log.txt\n\n",
    f"[Tool result] run_terminal_cmd\n{CLAIM} (behind an empty one)\n\n",
    "[Tool call] run_terminal_cmd\n  command: recall 3fa9c1d\n\n",
    "assistant:\nNever mind.\n\n",
    f"[Tool result] run_terminal_cmd\n{CLAIM} (of nobody)\n\n",
]


@pytest.mark.parametrize("pieces", [(), (3,), (4, 6), (1, 2, 3, 4, 5, 6, 7, 8), (8, 11)])
def test_where_calls_have_no_ids_a_result_belongs_to_the_first_call_of_its_tool(
    pieces: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "agent-transcripts" / f"{SESSION}.txt"
    path.parent.mkdir()
    with opened() as store:
        for end in (*pieces, len(NAMELESS)):
            path.write_text("".join(NAMELESS[:end]), encoding="utf-8")
            stored = session_of(store, path, "cursor", final=True)
        results = [one for one in entries(store, stored) if one.kind == "tool_result"]
        assert not any(one.call_id for one in results)
        assert [one.speaker for one in results] == ["tool", "tool", "harness", "tool", "tool"]
        assert results[2].text.startswith("Note [3fa9c1d]")
        mine = f"{stored.session.handle}.{results[2].seq}"
        for _ in range(2):  # looked through, then from the index
            for mode in ("words", "exact"):
                assert mine not in [hit.id for hit in search(store, Query(CLAIM, mode, limit=50)).hits]
                assert mine in [hit.id for hit in search(store, Query(CLAIM, mode, limit=50, own=True)).hits]
            index_all(store, float("inf"))


def test_an_answer_of_our_tools_is_known_by_what_it_opens_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Talk()
    first.user("Why does the parser fail?")
    first.run("cat log.txt", CLAIM)
    with opened() as store:
        stored = session_of(store, first.write(tmp_path))
        (result,) = (one for one in entries(store, stored) if one.kind == "tool_result")
        name = f"{stored.session.handle}.{result.seq}"
    answer = call_tool("get", {"id": name}, Asker("/w/shop"))
    assert not answer.failed and answer.text.startswith(INTRODUCTION) and CLAIM in answer.text
    second = Talk("5e551011-0000-4000-8000-0000000000e5")
    second.user("What did the log say?")
    use(second, "CallTool", {"server": "memory", "name": "get"}, answer.text)
    use(second, "WebFetch", {"url": "http://localhost"}, f"They print: {INTRODUCTION} {CLAIM}")
    with opened() as store:
        stored = session_of(store, second.write(tmp_path))
        speakers = [one.speaker for one in entries(store, stored) if one.kind == "tool_result"]
        assert speakers == ["harness", "tool"]
