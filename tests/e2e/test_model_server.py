"""The scripted model itself: what it answers, what it counts as a side request, what it logs. Needs no program."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import model_server, wire

TOOL = {"name": "Bash", "input": {"command": "ls"}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[model_server.ModelServer]:
    """A server that answers one tool call, then what it says without a script."""
    (tmp_path / model_server.SCRIPTS["main"]).write_text(json.dumps({"tools": [TOOL]}) + "\n", encoding="utf-8")
    running = model_server.ModelServer(tmp_path)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def _post(server: model_server.ModelServer, path: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", json.dumps(body).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        return str(answer.read().decode("utf-8"))


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_answers_follow_the_script_and_then_say_ok(server: model_server.ModelServer) -> None:
    body = {"model": "m", "stream": False, "messages": [_user("go")], "tools": [{}]}
    first = json.loads(_post(server, "/v1/messages?beta=true", body))
    second = json.loads(_post(server, "/v1/messages", body))
    assert first["content"] == [{"type": "tool_use", "id": "toolu_000100", **TOOL}]
    assert first["stop_reason"] == "tool_use"
    assert second["content"] == [{"type": "text", "text": "OK."}]


def test_a_summariser_request_takes_no_answer_from_the_script(server: model_server.ModelServer) -> None:
    asked = _user("Your task is to create a detailed summary of the conversation so far.")
    summary = json.loads(_post(server, "/v1/messages", {"messages": [_user("go"), asked]}))
    assert "<summary>" in summary["content"][0]["text"]
    following = json.loads(_post(server, "/v1/messages", {"messages": [_user("go")]}))
    assert following["stop_reason"] == "tool_use"
    lines = (server.folder / model_server.LOG).read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["kind"] for line in lines if line] == ["summary", "main"]


def test_a_summariser_request_has_a_script_of_its_own(server: model_server.ModelServer) -> None:
    (server.folder / model_server.SCRIPTS["summary"]).write_text('{"text": "Short."}\n', encoding="utf-8")
    asked = _user("Your task is to create a detailed summary of the conversation so far.")
    first, second = (json.loads(_post(server, "/v1/messages", {"messages": [asked]})) for _ in range(2))
    assert first["content"] == [{"type": "text", "text": "Short."}]
    assert "<summary>" in second["content"][0]["text"]


@pytest.mark.parametrize("path", sorted(wire.STREAMS))
def test_every_stream_carries_the_text_the_call_and_the_usage(path: str) -> None:
    answer = {"text": "Look.", "tools": [TOOL], "usage": {"input": 4321, "output": 7}}
    stream = b"".join(wire.STREAMS[path](answer, 3, "m")).decode("utf-8")
    values = [json.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: {")]
    said = list(wire.texts(values))
    assert "Look." in said
    assert "Bash" in said
    assert json.dumps(TOOL["input"]) in said
    assert "4321" in stream


@pytest.mark.parametrize("path", sorted(wire.STREAMS))
def test_a_stalled_stream_has_begun_its_text_and_has_no_end(path: str) -> None:
    events = list(wire.STREAMS[path]({"text": "Look."}, 3, "m"))
    begun = list(wire.stalled(events))
    assert b"Look." in begun[-1] and begun == events[: len(begun)] and len(begun) < len(events)


def test_a_stalled_answer_stays_open_until_its_client_goes_away(server: model_server.ModelServer) -> None:
    (server.folder / model_server.SCRIPTS["main"]).write_text(
        '{"stalled": true}\n{"text": "Next."}\n', encoding="utf-8"
    )
    body = json.dumps({"stream": True, "messages": [_user("go")]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/v1/messages", body)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        while b"OK." not in (line := answer.readline()):
            assert line, "it ended"
        assert "Next." in _post(server, "/v1/messages", {"messages": [_user("go")]})


def test_a_conversation_that_mentions_a_summary_is_not_a_summariser_request() -> None:
    early = _user("create a detailed summary of the conversation")
    assert wire.classify({"messages": [early, _user("now fix the bug")]}) == "main"
