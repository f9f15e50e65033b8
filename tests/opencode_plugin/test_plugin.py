"""The OpenCode plugin in a host of our own: what it asks our script, what it hands to OpenCode, and that it never throws."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.harnesses import SESSION_VARIABLES
from obsmem.harnesses.written import OWN_BLOCK

HERE = Path(__file__).parent
PLUGIN = HERE.parents[1] / "opencode-plugin" / "observational-memory.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

EVENT, MESSAGE, TEXT = "event", "chat.message", "experimental.text.complete"
COMPACTING, CONTINUE = "experimental.session.compacting", "experimental.compaction.autocontinue"
SYSTEM = "experimental.chat.system.transform"
OUTPUT, MESSAGES = "tool.execute.after", "experimental.chat.messages.transform"
HOOKS = (EVENT, MESSAGE, TEXT, COMPACTING, CONTINUE, SYSTEM, OUTPUT, MESSAGES, "shell.env")
SUMMARISER = "You are somebody who sums up."
AGENT = "You are an agent."


def block(name: str) -> str:
    """A block with what could be mangled on the way: quotes, several lines, wide characters."""
    return f'{OWN_BLOCK}delivery="{name}" part="1/1">\n"quoted" \\ – ✓ 日本\n\n`x`\n</observational-memory>'


def answer(text: str) -> dict[str, Any]:
    return {"stdout": json.dumps({"context": text}, ensure_ascii=False)}


class Host:
    """One run of the host: ``script`` answers what the plugin asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[str, Any] = {}
        self.environment: dict[str, str] = {}
        self.options: Any = {"command": [sys.executable, str(HERE / "script.py"), str(folder)]}
        self.hurry = 1

    def run(self, *steps: Any, **given: Any) -> list[Any]:
        """Run steps; the result of each."""
        (self.folder / "answers.json").write_text(json.dumps(self.answers), encoding="utf-8")
        value = {"options": self.options, "hurry": self.hurry, "steps": steps, **given}
        known = {name: text for name, text in os.environ.items() if not name.startswith("OBSERVATIONAL_MEMORY_")}
        environment = {**known, "XDG_DATA_HOME": str(self.folder / "data"), **self.environment}
        environment.pop("OPENCODE_DB", None) if "OPENCODE_DB" not in self.environment else None
        done = subprocess.run(
            [str(NODE), str(HERE / "host.mjs"), str(PLUGIN)],
            input=json.dumps(value),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0 and done.stderr == "", done.stderr
        results: list[Any] = json.loads(done.stdout)
        return results

    def calls(self) -> list[dict[str, Any]]:
        """What the script was asked so far, in order."""
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.folder.glob("call-*.json"))]

    def events(self) -> list[str]:
        """The last word of each call."""
        return [call["words"][-1] for call in self.calls()]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def request(session: str = "s1", prompt: str = AGENT) -> list[Any]:
    """A model request of a session, before the plugin saw it."""
    return [SYSTEM, {"sessionID": session, "model": {}}, {"system": [prompt]}]


def event(kind: str, session: str = "s1", **info: Any) -> list[Any]:
    properties: dict[str, Any] = {"info": {"id": session, **info}} if info else {"sessionID": session}
    return [EVENT, {"event": {"type": kind, "properties": properties}}, {}]


def compacting(session: str = "s1") -> list[Any]:
    return [COMPACTING, {"sessionID": session}, {"context": []}]


def system(result: Any) -> list[str]:
    """The system prompts of a request, without the agent's own."""
    _, *added = result["output"]["system"]
    return [str(text) for text in added]


ODD: tuple[Any, ...] = (None, 5, "text", [], {}, {"sessionID": 5}, {"sessionID": None}, {"event": None}, {"event": {"type": 7}}, {"sessionID": "s1"}, {"event": {"type": "session.updated", "properties": {"info": [1]}}})  # fmt: skip


@pytest.mark.parametrize("name", HOOKS)
def test_no_hook_throws_whatever_it_is_given(host: Host, name: str) -> None:
    outputs: tuple[Any, ...] = (None, {}, {"system": 5}, {"system": [5]}, {"context": None})
    steps = [[name, given, output] for given in ODD for output in outputs]
    assert not [result for result in host.run(*steps) if "threw" in result]


def test_the_tool_answers_odd_arguments_in_words(host: Host) -> None:
    results = host.run(*[["recall", given, {}] for given in (*ODD, {"id": "a b"}, {"id": "--raw"}, {"id": "$(ls)"})])
    assert all(isinstance(result["result"], str) and result["result"] for result in results)
    assert host.calls() == []


def test_it_has_the_hooks_that_opencode_calls(host: Host) -> None:
    (keys,) = host.run(["keys"])
    assert keys["result"] == sorted([*HOOKS, "tool", "recall", "memory_search", "memory_pin"])


@pytest.mark.parametrize("name", ["OBSERVATIONAL_MEMORY_WORKER", "OBSERVATIONAL_MEMORY_OFF"])
def test_inside_a_worker_and_where_memory_is_off_it_has_no_hooks(host: Host, name: str) -> None:
    host.environment[name] = "1"
    assert host.run(["keys"])[0]["result"] == []
    host.environment[name] = "0" if name.endswith("OFF") else ""
    assert host.run(["keys"])[0]["result"] != []


def test_a_session_that_was_never_compacted_is_asked_for_once_and_gets_nothing(host: Host) -> None:
    results = host.run(request(), request(), [request(), request()])
    assert [system(result) for result in (*results[:2], *results[2])] == [[]] * 4
    assert host.events() == ["session.resumed"]
    (call,) = host.calls()
    assert call["payload"]["sessionID"] == "s1"
    assert call["payload"]["db"] == str(host.folder / "data" / "opencode" / "opencode.db")


def test_a_resumed_session_carries_the_same_bytes_in_every_request(host: Host) -> None:
    host.answers["session.resumed"] = answer(block("k1"))
    first, *others = host.run([request(), request()], *[request() for _ in range(20)])
    assert [system(result) for result in (*first, *others)] == [[block("k1")]] * 22
    assert host.events() == ["session.resumed"]


def test_a_compaction_puts_the_block_into_the_summary_request_and_into_all_later_ones(host: Host) -> None:
    host.answers |= {"session.resumed": answer(block("old")), COMPACTING: answer(block("new"))}
    results = host.run(
        request(), compacting(), request(prompt=SUMMARISER), request(prompt=SUMMARISER), event("session.compacted"), request(), request()
    )  # fmt: skip
    before, asked, summary, repeated, _, after, later = results
    assert system(before) == [block("old")]
    assert asked["output"]["context"] == [block("new")]
    assert system(summary) == system(repeated) == []
    assert system(after) == system(later) == [block("new")]


@pytest.mark.parametrize("signs", [[], [[CONTINUE, {"sessionID": "s1"}, {"enabled": True}]]])
def test_the_block_comes_even_where_no_event_says_that_the_compaction_is_over(host: Host, signs: list[Any]) -> None:
    host.answers[COMPACTING] = answer(block("new"))
    *_, after = host.run(compacting(), request(prompt=SUMMARISER), *signs, request())
    assert system(after) == [block("new")]


def test_a_compaction_that_failed_leaves_the_session_as_it_was(host: Host) -> None:
    host.answers |= {"session.resumed": answer(block("old")), COMPACTING: answer(block("new"))}
    message = [MESSAGE, {"sessionID": "s1"}, {}]
    *_, after = host.run(request(), compacting(), request(prompt=SUMMARISER), message, request())
    assert system(after) == [block("old")]


def test_a_session_of_which_something_is_taken_back_is_asked_for_again(host: Host) -> None:
    """What was taken back may be the compaction itself, or what its block says; and it may be given back."""
    host.answers |= {"session.resumed": answer(""), COMPACTING: answer(block("new"))}
    taken_back = event("session.updated", revert={"messageID": "msg_1"})
    *_, before, _, _, after, again = host.run(
        compacting(), request(prompt=SUMMARISER), event("session.compacted"), event("session.updated", title="x"),
        request(), taken_back, taken_back, request(), request(),
    )  # fmt: skip
    assert system(before) == [block("new")]
    assert system(after) == system(again) == []
    assert host.events() == [COMPACTING, "session.resumed"]


def test_two_sessions_at_once_do_not_mix(host: Host) -> None:
    for session in ("s1", "s2"):
        host.answers[f"session.resumed {session}"] = answer(block(session))
        host.answers[f"{COMPACTING} {session}"] = answer(block(f"{session}new"))
    host.answers[f"{COMPACTING} s1"]["seconds"] = 0.3
    first, both, mixed, _, last = host.run(
        [request("s1"), request("s2")],
        [compacting("s1"), compacting("s2"), request("s3")],
        [request("s1", SUMMARISER), request("s2", SUMMARISER)],
        event("session.compacted", "s1"),
        [request("s1"), request("s2", SUMMARISER), request("s3")],
    )
    assert [system(result) for result in first] == [[block("s1")], [block("s2")]]
    assert [result["output"]["context"] for result in both[:2]] == [[block("s1new")], [block("s2new")]]
    assert [system(result) for result in mixed] == [[], []]
    assert [system(result) for result in last] == [[block("s1new")], [], []]


def test_a_plugin_that_is_loaded_twice_gives_the_block_once(host: Host) -> None:
    host.answers |= {"session.resumed": answer(block("k1")), COMPACTING: answer(block("k1"))}
    twice = [SYSTEM, {"sessionID": "s1"}, {"system": [AGENT, block("k1")]}]
    seen, asked = host.run(twice, [COMPACTING, {"sessionID": "s1"}, {"context": [block("k1")]}])
    assert system(seen) == asked["output"]["context"] == [block("k1")]


def test_side_requests_carry_nothing(host: Host) -> None:
    host.answers["session.resumed"] = answer(block("k1"))
    title, nobody = host.run(request(prompt="You are a title generator. You output"), [SYSTEM, {}, {"system": [AGENT]}])
    assert system(title) == system(nobody) == []
    assert host.calls() == []


def test_a_sub_agents_session_is_left_alone(host: Host) -> None:
    host.answers |= {"session.resumed": answer(block("k1")), COMPACTING: answer(block("k2"))}
    _, request_, compaction, _, _ = host.run(
        event("session.created", "c1", parentID="s1"), request("c1"), compacting("c1"), event("session.idle", "c1"), ["wait", 300]
    )  # fmt: skip
    assert system(request_) == [] and compaction["output"]["context"] == []
    assert host.calls() == []


def test_the_end_of_a_turn_is_told_even_if_opencode_ends_at_once(host: Host) -> None:
    host.answers["session.idle"] = {"seconds": 0.2}
    host.run(event("session.idle"))
    limit = time.monotonic() + 20
    while not host.calls() and time.monotonic() < limit:
        time.sleep(0.05)
    (call,) = host.calls()
    assert call["words"] == ["hook", "opencode", "session.idle"]
    assert call["payload"]["sessionID"] == "s1" and call["payload"]["directory"] == str(host.folder)


@pytest.mark.parametrize("options", [{"command": ["/nowhere/launch"]}, {"command": "/nowhere/launch hook opencode"}, {"command": 7}, {}, None, 3])  # fmt: skip
def test_a_script_that_is_not_there_costs_nothing(host: Host, options: Any) -> None:
    host.options = options
    host.environment["OBSERVATIONAL_MEMORY_HOME"] = str(host.folder / "none")
    results = host.run(event("session.idle"), compacting(), request(prompt=SUMMARISER), event("session.compacted"), request(), ["recall", {"id": "abcd123"}, {}])  # fmt: skip
    assert system(results[4]) == [] and results[1]["output"]["context"] == []
    assert "recall gave no answer" in results[5]["result"] or "not found" in results[5]["result"]


def test_a_script_that_hangs_is_killed_at_the_limit(host: Host) -> None:
    host.hurry = 20
    host.answers = {name: {"seconds": 600} for name in ("session.resumed", COMPACTING, "recall")}
    results = host.run(request(), compacting(), ["recall", {"id": "abcd123"}, {}], ["wait", 300])
    assert system(results[0]) == [] and results[1]["output"]["context"] == []
    assert "time limit" in results[2]["result"]
    assert len(host.calls()) == 3
    for call in host.calls():
        with pytest.raises(ProcessLookupError):
            os.kill(call["pid"], 0)


JUNK = ("no JSON", "[1, 2", '{"context": 5}', '"text"', "null", "\x00\x01", '{"context": "', "Warning: x\n" + json.dumps({"context": "y"}))  # fmt: skip


@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_no_block(host: Host, junk: str) -> None:
    host.answers = {"session.resumed": {"stdout": junk}, COMPACTING: {"stdout": junk}}
    before, asked, _, after = host.run(request(), compacting(), event("session.compacted"), request())
    assert system(before) == system(after) == [] and asked["output"]["context"] == []


def test_a_script_that_fails_is_asked_again_but_not_for_ever(host: Host) -> None:
    host.answers = {"session.resumed": {"status": 1}}
    host.run(*[request() for _ in range(8)])
    assert host.events() == ["session.resumed"] * 3


def test_a_compaction_without_an_answer_lets_the_block_be_asked_for_afterwards(host: Host) -> None:
    host.answers = {COMPACTING: {"status": 1}, "session.resumed": answer(block("late"))}
    _, _, _, after = host.run(compacting(), request(prompt=SUMMARISER), event("session.compacted"), request())
    assert system(after) == [block("late")]


def test_the_block_can_take_the_place_of_the_summary(host: Host) -> None:
    """The summariser is asked for next to nothing, and what it says gives way to the block, which then is in no prompt."""
    host.options["replace_summary"] = True
    host.answers[COMPACTING] = answer(block("new"))
    said = [TEXT, {"sessionID": "s1"}, {"text": "Done."}]
    asked, _, summary, more, _, after, ordinary = host.run(
        compacting(), request(prompt=SUMMARISER), said, said, event("session.compacted"), request(), said
    )
    assert asked["output"]["context"] == [] and "Done" in asked["output"]["prompt"]
    assert summary["output"]["text"] == block("new") and more["output"]["text"] == ""
    assert system(after) == []
    assert ordinary["output"]["text"] == "Done."


def test_an_empty_block_never_takes_the_place_of_a_summary(host: Host) -> None:
    host.options["replace_summary"] = True
    said = [TEXT, {"sessionID": "s1"}, {"text": "A real summary."}]
    asked, _, summary = host.run(compacting(), request(prompt=SUMMARISER), said)
    assert "prompt" not in asked["output"] and summary["output"]["text"] == "A real summary."


def test_recall_gives_what_the_script_prints_and_runs_where_the_session_is(host: Host, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    host.answers["recall"] = {"stdout": "the exact words\n"}
    context = {"sessionID": "s1", "directory": str(tmp_path / "project")}
    results = host.run(["recall", {"id": "[7c2e.812]", "range": "0:40"}, context], ["recall", {"id": "3fa9c1d", "range": ""}, context])  # fmt: skip
    assert [result["result"] for result in results] == ["the exact words\n"] * 2
    first, second = host.calls()
    assert first["words"] == ["recall", "7c2e.812", "--range", "0:40"]
    assert second["words"] == ["recall", "3fa9c1d"]
    assert first["folder"] == str(tmp_path / "project")


def test_a_long_range_is_cut_and_says_where_it_goes_on(host: Host) -> None:
    host.answers["recall"] = {"stdout": "words\n"}
    (result,) = host.run(["recall", {"id": "7c2e.812", "range": "100:50000"}, {}])
    assert host.calls()[0]["words"][-1] == "100:6100"
    assert 'go on with range "6100:12100"' in result["result"]


@pytest.mark.skipif(os.name != "posix", reason="a shell line of POSIX")
def test_a_command_may_be_the_shell_line_of_other_hook_configs(host: Host) -> None:
    host.options = {"command": f'"{sys.executable}" {HERE / "script.py"} {host.folder} hook opencode'}
    host.answers["session.resumed"] = answer(block("k1"))
    result, _ = host.run(request(), ["recall", {"id": "3fa9c1d"}, {}])
    assert system(result) == [block("k1")]
    assert [call["words"] for call in host.calls()] == [["hook", "opencode", "session.resumed"], ["recall", "3fa9c1d"]]


def test_sessions_that_are_kept_nowhere_are_left_alone(host: Host) -> None:
    host.environment["OPENCODE_DB"] = ":memory:"
    assert host.run(["keys"])[0]["result"] == []


@pytest.mark.parametrize(("named", "expected"), [("/srv/x.db", "/srv/x.db"), ("y.db", "data/opencode/y.db")])  # fmt: skip
def test_the_database_is_the_one_that_opencode_uses(host: Host, named: str, expected: str) -> None:
    host.environment["OPENCODE_DB"] = named
    host.run(request())
    (call,) = host.calls()
    assert call["payload"]["db"] == (str(host.folder / expected) if expected.startswith("data") else expected)


def test_a_tool_hands_its_arguments_over_as_json_and_names_its_session(host: Host) -> None:
    host.answers["mcp"] = {"stdout": "[7c2e.1] found\n"}
    words = 'it\'s "$HOME" `ls` ; rm -rf \n--raw'
    context = {"sessionID": "ses_1", "directory": str(host.folder)}
    search = ["tool", "memory_search", [{"query": words, "more": ""}, context]]
    pin = ["tool", "memory_pin", [{"what": words, "scope": "workspace"}, context]]
    found = [one["result"] for one in host.run(search, pin)]
    assert found == ["[7c2e.1] found\n"] * 2
    first, second = host.calls()
    assert (first["words"], first["payload"]) == (["mcp", "--call", "search"], {"query": words})
    assert (second["words"], second["payload"]) == (["mcp", "--call", "pin"], {"what": words, "scope": "workspace"})
    assert first["session"] == second["session"] == "ses_1"


def test_a_shell_is_told_which_session_runs_it(host: Host) -> None:
    told, untold = host.run(
        ["shell.env", {"sessionID": "ses_1", "cwd": "/"}, {"env": {"A": "b"}}], ["shell.env", {"cwd": "/"}, {"env": {}}]
    )
    assert (
        told["output"]["env"] == {"A": "b", SESSION_VARIABLES["opencode"][0]: "ses_1"} and untold["output"]["env"] == {}
    )


WARNED = json.dumps({"context": f'{OWN_BLOCK}notice="window">\nnear ✓\n</observational-memory>', "notice": "near"})


def prompt(session: str = "s1", *parts: Any, **message: Any) -> list[Any]:
    """A prompt before the plugin saw it."""
    return [MESSAGE, {"sessionID": session}, {"message": {"id": "msg_1", **message}, "parts": list(parts)}]


def test_a_warning_goes_behind_the_prompts_own_words(host: Host) -> None:
    """As one more part with an id behind theirs, since OpenCode orders by ids; a prompt without a warning stays as it is."""
    host.answers = {"chat.message s1": {"stdout": WARNED}}
    late = {"id": "prt_ffffffff0001AAAAAAAAAAAAAA", "type": "text", "text": "Go on."}
    early = {"id": "prt_000000000001AAAAAAAAAAAAAA", "type": "text", "text": "Go on."}
    warned, after, plain = host.run(prompt("s1", late), prompt("s1", early), prompt("s2", early))
    for result, own in ((warned, late), (after, early)):
        first, added = result["output"]["parts"]
        assert first == own
        assert {**added, "id": ""} == {"id": "", "sessionID": "s1", "messageID": "msg_1", "type": "text",
                                       "text": json.loads(WARNED)["context"], "synthetic": True}  # fmt: skip
        assert added["id"] > own["id"] and len(added["id"]) == len(own["id"]) and added["id"].startswith("prt_")
    assert plain["output"]["parts"] == [early]
    assert host.events() == ["chat.message"] * 3


def test_what_a_session_start_has_for_the_user_alone_is_shown_to_him_once(host: Host) -> None:
    host.answers["session.resumed"] = {"stdout": json.dumps({"notice": "Nothing was kept lately."})}
    first, again, shown = host.run(request(), request(), ["toasts"])
    assert system(first) == system(again) == []
    assert shown["result"] == ["Nothing was kept lately."]


@pytest.mark.parametrize("odd", ["", "not json", "[]", "5", '{"context": 5}', '{"notice": "only"}', "{"])
def test_an_odd_answer_adds_nothing_to_a_prompt(host: Host, odd: str) -> None:
    host.answers = {"chat.message": {"stdout": odd}}
    (result,) = host.run(prompt("s1", {"id": "prt_1"}))
    assert result["output"]["parts"] == [{"id": "prt_1"}]


def test_a_sub_agent_is_not_warned_and_a_script_that_hangs_holds_no_prompt_up(host: Host) -> None:
    host.answers = {"chat.message s2": {"seconds": 60, "stdout": WARNED}, "chat.message s1": {"stdout": WARNED}}
    host.hurry = 10
    child, hung = host.run(event("session.created", "s1", parentID="s0"), prompt("s1"), prompt("s2"))[1:]
    assert child["output"]["parts"] == [] and hung["output"]["parts"] == []
    assert [call["payload"]["sessionID"] for call in host.calls()] == ["s2"]
