"""The plugin and long outputs: what it hands to our script, what it puts in the place, and which old results it masks when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsmem.system.shortening import Settings, write_settings
from tests.opencode_plugin.test_plugin import MESSAGES, NODE, OUTPUT, SYSTEM, Host

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

LONG = "a line of an output\n" * 400
LIMIT = {"context": 50_000, "output": 10_000}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.environment["OBSERVATIONAL_MEMORY_HOME"] = str(tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    return made


def settle(host: Host, **settings: Any) -> None:
    """What a maintainer compiled of the configuration."""
    write_settings(host.environment["OBSERVATIONAL_MEMORY_HOME"], Settings(**settings))


def printed(output: str = LONG, tool: str = "bash", **metadata: Any) -> list[Any]:
    """A tool that has ended."""
    given = {"tool": tool, "sessionID": "s1", "callID": "call_1", "args": {"command": "make"}}
    return [OUTPUT, given, {"title": "make", "output": output, "metadata": {"exit": 0, "output": output, **metadata}}]


def test_a_long_output_is_handed_to_the_script_and_its_answer_put_in_place(host: Host) -> None:
    settle(host, reduce=True)
    host.answers["tool.execute.after"] = {"stdout": json.dumps({"output": "short"})}
    (after,) = host.run(printed())
    assert after["output"]["output"] == "short"
    assert after["output"]["metadata"]["output"] == LONG
    (call,) = host.calls()
    assert call["words"] == ["hook", "opencode", "tool.execute.after"]
    wanted = {"sessionID": "s1", "callID": "call_1", "command": "make", "output": LONG, "exit": 0, "path": ""}
    assert wanted.items() <= call["payload"].items()


def test_of_an_output_that_opencode_cut_the_file_is_named_or_nothing_is_done(host: Host) -> None:
    settle(host, reduce=True)
    host.run(printed(truncated=True, outputPath="/w/whole.txt"), printed(truncated=True))
    (call,) = host.calls()
    assert call["payload"]["path"] == "/w/whole.txt"


def test_nothing_is_asked_without_the_users_word_for_other_tools_or_short_outputs(host: Host) -> None:
    host.run(printed())
    settle(host, reduce=True, minimum=10_000)
    host.run(printed())
    settle(host, reduce=True)
    results = host.run(printed(tool="read"), printed("short"))
    assert [one["output"]["output"] for one in results] == [LONG, "short"]
    assert host.calls() == []


@pytest.mark.parametrize(
    "answer", [{}, {"stdout": "no JSON"}, {"stdout": '{"output": 5}'}, {"status": 1, "stdout": '{"output": "x"}'}, {"seconds": 30}]
)  # fmt: skip
def test_whatever_goes_wrong_leaves_the_output_as_it_is(host: Host, answer: dict[str, Any]) -> None:
    settle(host, reduce=True)
    host.answers["tool.execute.after"] = answer
    host.hurry = 20
    (after,) = host.run(printed())
    assert after["output"]["output"] == LONG


# --- the thin view


def conversation(results: int, size: int = 8_000, used: int = 0) -> list[Any]:
    """Messages with so many results of ``size`` characters each; ``used`` tokens were counted for the last request."""
    messages: list[Any] = [{"info": {"sessionID": "s1", "role": "user"}, "parts": [{"type": "text", "text": "Do it."}]}]
    for number in range(results):
        state = {"status": "completed", "input": {"command": "make"}, "output": f"{number:04d}" + "x" * (size - 4)}
        part = {"type": "tool", "tool": "bash", "callID": f"call-{number}", "state": state}
        messages.append({"info": {"sessionID": "s1", "role": "assistant"}, "parts": [part]})
    if used:
        messages[-1]["info"]["tokens"] = {"input": used, "output": 0, "cache": {"read": 0, "write": 0}}
    return messages


def sent(messages: list[Any]) -> list[Any]:
    return [MESSAGES, {}, {"messages": messages}]


def known(limit: Any = LIMIT) -> list[Any]:
    """A request that tells the plugin the model's window."""
    return [SYSTEM, {"sessionID": "s1", "model": {"limit": limit}}, {"system": ["You are an agent."]}]


def outputs(result: Any) -> list[str]:
    """What stands in the results of a request."""
    return [
        part["state"]["output"]
        for one in result["output"]["messages"]
        for part in one["parts"]
        if part["type"] == "tool"
    ]


def masked(result: Any) -> list[int]:
    """Which results of a request are masked."""
    return [number for number, text in enumerate(outputs(result)) if text.startswith("[observational-memory:")]


def test_while_there_is_room_nothing_is_masked_nor_without_the_users_word(host: Host) -> None:
    settle(host, view="thin")
    _, small = host.run(known(), sent(conversation(9)))
    assert masked(small) == []
    settle(host)
    _, large = host.run(known(), sent(conversation(40)))
    assert masked(large) == []


def test_when_it_would_not_fit_the_oldest_are_masked_and_never_the_newest(host: Host) -> None:
    settle(host, view="thin")
    _, first = host.run(known(), sent(conversation(16)))
    hidden = masked(first)
    assert hidden == list(range(len(hidden)))
    assert 0 < len(hidden) <= 8
    _, all_large = host.run(known({"context": 20_000, "output": 1_000}), sent(conversation(40)))
    assert max(masked(all_large)) == 31, "the eight newest stay"


def test_what_is_masked_stays_so_and_nothing_more_is_until_it_does_not_fit_again(host: Host) -> None:
    settle(host, view="thin")
    _, first, second, third = host.run(known(), *(sent(conversation(count)) for count in (16, 17, 18)))
    assert masked(first) == masked(second) == masked(third)
    assert outputs(first) == outputs(second)[:16] == outputs(third)[:16], "the prefix is the same"
    again = host.run(sent(conversation(16)))[0]
    assert outputs(again) == outputs(first), "after a restart, too"


def test_what_the_provider_counted_counts(host: Host) -> None:
    settle(host, view="thin")
    _, result = host.run(known(), sent(conversation(10, used=39_000)))
    assert masked(result) == [0, 1]


def test_a_masked_result_comes_back_whole_by_the_id_that_its_mask_names(host: Host) -> None:
    settle(host, view="thin")
    whole = conversation(16)
    recall = ["recall", {"id": "call-0", "range": "0:3000"}, {"sessionID": "s1", "directory": str(host.folder)}]
    rest = ["recall", {"id": "call-0", "range": "3000:8000"}, {"sessionID": "s1", "directory": str(host.folder)}]
    _, first, one, other = host.run(known(), sent(whole), recall, rest)
    assert 'id "call-0"' in outputs(first)[0]
    text = one["result"].partition("\n[characters")[0] + other["result"]
    assert text == outputs({"output": {"messages": whole}})[0]
