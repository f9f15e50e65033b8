"""The http worker against a server on loopback: one request in both forms, and what servers refuse of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from obsmem import workers
from obsmem.core.answers import SCHEMAS
from obsmem.core.errors import ConfigError
from obsmem.workers import http
from obsmem.workers.base import SYSTEM
from tests.workers.http_worker import ASK, KEY, PROMPT, failure, worker
from tests.workers.model_site import (
    NOTES,
    Played,
    completion,
    message,
    refusal,
    site,
)


def test_chat_completions_are_asked_with_one_message_and_a_strict_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with site(completion()) as server:
        reply = worker(server, key_env="A_KEY", answer_tokens=77, headers={"X-Team": "notes"}).ask(ASK)
    (seen,) = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["x-team"] == "notes"
    assert seen.body == {
        "model": "m",
        "max_tokens": 77,
        "stream": False,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}],
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "observe", "strict": True, "schema": SCHEMAS["observe"]},
        },
    }
    assert reply.items == tuple(NOTES["notes"])
    assert (reply.worker, reply.model, reply.tokens_in, reply.tokens_out) == ("http:m", "m-2026", 120, 30)
    assert reply.text == json.dumps(NOTES)


def test_messages_are_asked_with_one_message_and_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with site(message()) as server:
        reply = worker(server, api="anthropic", key_env="A_KEY", answer_tokens=77).ask(ASK)
    (seen,) = server.seen
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == KEY
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen.headers
    assert seen.body == {
        "model": "m",
        "max_tokens": 77,
        "stream": False,
        "system": SYSTEM,
        "messages": [{"role": "user", "content": PROMPT}],
        "temperature": 0,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMAS["observe"]}},
    }
    assert reply.items == tuple(NOTES["notes"])
    assert (reply.model, reply.tokens_in, reply.tokens_out) == ("m-2026", 4320, 50)


def test_an_explicit_empty_list_is_an_answer_and_a_lone_surrogate_in_a_prompt_is_sent_as_a_mark() -> None:
    with site(completion('{"notes": []}')) as server:
        assert worker(server).ask(ASK._replace(prompt="a\ud800b")).items == ()
    assert server.seen[0].body["messages"][1]["content"] == "a?b"


def test_missing_or_odd_usage_counts_as_nothing() -> None:
    odd = {"prompt_tokens": "many", "completion_tokens": True}
    with site(completion(usage=odd), completion(usage=None, model=None)) as server:
        made = worker(server)
        for reply in (made.ask(ASK), made.ask(ASK)):
            assert (reply.tokens_in, reply.tokens_out) == (0, 0)


def test_without_a_key_none_is_sent_and_without_a_schema_no_format() -> None:
    with site(completion()) as server:
        worker(server).ask(ASK._replace(schema={}))
        worker(server, structured="off").ask(ASK)
    for seen in server.seen:
        assert "authorization" not in seen.headers
        assert "response_format" not in seen.body


def test_an_answer_in_parts_is_put_together() -> None:
    text = json.dumps(NOTES)
    parts = [{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}]
    with site(completion(message={"content": parts})) as server:
        assert worker(server).ask(ASK).text == text


def test_a_refused_temperature_is_left_out_from_then_on() -> None:
    no = refusal(400, "`temperature` is deprecated for this model.", type="invalid_request_error")
    with site(no, completion()) as server:
        made = worker(server)
        made.ask(ASK)
        worker(server).ask(ASK)
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, False]
    assert all("response_format" in seen.body for seen in server.seen)


def test_the_other_name_of_the_limit_is_used_where_it_is_asked_for() -> None:
    no = refusal(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
    with site(no, completion()) as server:
        worker(server, answer_tokens=55).ask(ASK)
        worker(server, answer_tokens=55).ask(ASK)
    assert [seen.body.get("max_completion_tokens") for seen in server.seen] == [None, 55, 55]
    assert ["max_tokens" in seen.body for seen in server.seen] == [True, False, False]


@pytest.mark.parametrize(
    ("api", "field", "no"),
    [
        ("openai", "response_format", refusal(400, "This response_format type is unavailable now")),
        ("openai", "response_format", Played(422, {"detail": [{"loc": ["body", "response_format"], "msg": "extra"}]})),
        ("openai", "response_format", Played(400, "Bad Request")),
        ("anthropic", "output_config", refusal(400, "output_config: Extra inputs are not permitted")),
    ],
)
def test_a_refused_schema_is_left_out_from_then_on_where_structured_is_auto(api: str, field: str, no: Played) -> None:
    with site(no, completion() if api == "openai" else message()) as server:
        assert worker(server, api=api).ask(ASK).items
        assert worker(server, api=api).ask(ASK).items
    assert [field in seen.body for seen in server.seen] == [True, False, False]


def test_a_refused_schema_is_a_mistake_in_the_settings_where_structured_is_on() -> None:
    with site(refusal(400, "This response_format type is unavailable now")) as server:
        error = failure(worker(server, structured="on"))
    assert (error.fault, error.retry, len(server.seen)) == ("settings", False, 1)
    assert "takes no schema" in str(error)


def test_nothing_is_learned_from_a_refusal_that_stays() -> None:
    with site(refusal(400, "no"), refusal(400, "no"), completion()) as server:
        assert failure(worker(server)).fault == "settings"
        worker(server).ask(ASK)
    assert ["response_format" in seen.body for seen in server.seen] == [True, False, True]


def test_several_parts_may_be_refused_one_after_the_other() -> None:
    steps = (
        refusal(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        refusal(400, "use max_completion_tokens"),
        refusal(400, "json_schema is not supported"),
        completion(),
    )
    with site(*steps) as server:
        assert worker(server).ask(ASK).items
    assert set(server.seen[-1].body) == {"model", "max_completion_tokens", "stream", "messages"}


def test_a_worker_has_what_its_options_say() -> None:
    assert workers.load("http") is http
    made = worker("http://127.0.0.1:1", kind="http", window=32_000, answer_tokens=500, alone=True)
    assert (made.NAME, made.model, made.window, made.answer_tokens, made.alone) == ("http:m", "m", 32_000, 500, True)
    plain = worker("http://127.0.0.1:1", name="ours", window=None)
    assert (plain.NAME, plain.window, plain.answer_tokens, plain.alone) == ("ours", 0, 4_000, False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"api": "soap"}, "api"),
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"answer_tokens": "many"}, "answer_tokens"),
        ({"structured": "maybe"}, "structured"),
        ({"api_key": "x"}, "api_key"),
        ({"key_command": []}, "key_command"),
        ({"key_env": "A", "key_command": "b"}, "both key_env and key_command"),
        ({"headers": {"x": 3}}, "headers.x"),
        ({"headers": {"x y": "3"}}, "x y"),
        ({"headers": {"x": "3\r\ny: 4"}}, "is no header"),
        ({"headers": {"x": "{key}"}}, "wants a key"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        worker("https://api.example.com", **options)
    assert words in str(caught.value)


def test_the_value_of_a_header_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        worker("https://api.example.com", headers={"x-token": [KEY]})
    assert KEY not in str(caught.value)


def test_every_option_is_described() -> None:
    assert http.OPTIONS["additionalProperties"] is False
    assert all(option["description"] for option in http.OPTIONS["properties"].values())
