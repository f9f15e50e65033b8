"""The http worker against real servers on loopback: both forms, what servers refuse, every failure, keys and addresses."""

from __future__ import annotations

import json
import logging
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from obsmem import workers
from obsmem.core.answers import SCHEMAS
from obsmem.core.errors import FAULTS, ConfigError, WorkerError
from obsmem.core.model import Memory, Request
from obsmem.workers import http, http_faults, http_forms, http_wire
from obsmem.workers.base import ANSWER_LIMIT, SYSTEM
from tests.workers.model_site import (
    NOTES,
    Played,
    Site,
    completion,
    drip,
    hang,
    hang_up,
    message,
    refusal,
    site,
)

PROMPT = "What was decided about the harbour?"
ASK = Request("observe", "abcd", Memory(), prompt=PROMPT, schema=SCHEMAS["observe"])
KEY = "sk-made-up-0123456789"
NOW = 1_800_000_000.0


class FakeTime:
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        self.at = 100.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds

    @property
    def clock(self) -> http.Clock:
        return http.Clock(lambda: self.at, lambda: NOW, self.pause, lambda: 1.0)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(http, "_LEARNED", {})


def worker(place: Site | str, time: FakeTime | None = None, **options: Any) -> Any:
    url = place if isinstance(place, str) else place.url
    given = {"api": "openai", "url": url, "model": "m", **options}
    return http.make(given, time.clock if time else None)


def failure(made: Any) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        made.ask(ASK)
    shown = "".join(traceback.format_exception(caught.value))
    assert PROMPT not in shown
    assert KEY not in shown
    assert str(caught.value).startswith("The worker")
    return caught.value


# --- one request, one answer ------------------------------------------------------------------------------------------


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


# --- what servers refuse ----------------------------------------------------------------------------------------------


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


# --- failures ---------------------------------------------------------------------------------------------------------

ROWS = [
    (
        refusal(401, f"Incorrect API key provided: {KEY}", type="authentication_error"),
        "settings",
        "key was not accepted",
    ),
    (refusal(402, "Pay."), "unavailable", "quota or credit"),
    (refusal(403, "Not yours.", type="permission_error"), "settings", "may not do this"),
    (refusal(404, "model 'm' not found, try pulling it first"), "settings", "no such model"),
    (refusal(404, "The model `m` does not exist", code="model_not_found"), "settings", "no such model"),
    (Played(404, "404 page not found"), "settings", "no such API"),
    (Played(405, "no"), "settings", "no such API"),
    (Played(418, "tea"), "settings", "does not take such a request"),
    (Played(501, "no"), "settings", "does not take such a request"),
    (refusal(400, "Your credit balance is too low to access the API."), "unavailable", "quota or credit"),
    (refusal(429, "You exceeded your current quota.", code="insufficient_quota"), "unavailable", "quota or credit"),
    (refusal(400, "flagged", code="content_filter"), "answer", "rules do not allow"),
    (refusal(429, "Slow down.", type="rate_limit_error"), "unavailable", "asked too often"),
    (Played(500, "<html>oops</html>"), "unavailable", "fault of its own"),
    (Played(502, ""), "unavailable", "fault of its own"),
    (Played(503, {"error": {"code": 503, "message": "Loading model"}}), "unavailable", "overloaded or still loading"),
    (Played(529, {"type": "error", "error": {"type": "overloaded_error"}}), "unavailable", "overloaded"),
    (Played(200, {"type": "error", "error": {"type": "overloaded_error"}}), "unavailable", "overloaded"),
    (Played(200, {"error": {"code": 401, "message": "No auth"}}), "settings", "key was not accepted"),
    (Played(200, {"error": "went wrong"}), "unavailable", "fault of its own"),
    (Played(407, ""), "unavailable", "proxy lets nothing through"),
    (Played(408, ""), "unavailable", "overloaded"),
    (Played(413, ""), "overflow", "does not fit"),
    (Played(200, "<html>Welcome</html>"), "answer", "else than a JSON object"),
    (Played(200, b"\xff\xfe\x00"), "answer", "else than a JSON object"),
    (Played(200, "[" * 100_000), "answer", "else than a JSON object"),
    (Played(200, "[]"), "answer", "else than a JSON object"),
    (Played(200, {"object": "list"}), "answer", "no answer of the openai API"),
    (Played(200, {"choices": []}), "answer", "no answer of the openai API"),
    (Played(200, {"choices": [{"message": None}]}), "answer", "no answer of the openai API"),
    (completion(""), "answer", "empty answer"),
    (completion("  \n"), "answer", "empty answer"),
    (completion(ended="length"), "answer", "was cut off"),
    (completion(ended="content_filter"), "answer", "refused to answer"),
    (completion("", message={"refusal": "I will not."}), "answer", "refused to answer"),
]


@pytest.mark.parametrize(("played", "fault", "words"), ROWS)
def test_a_failure_says_what_it_means_for_the_worker(played: Played, fault: str, words: str, time: FakeTime) -> None:
    with site(played) as server:
        error = failure(worker(server, time))
    assert error.fault == fault
    assert words in str(error)


@pytest.mark.parametrize(
    ("played", "fault", "words"),
    [
        (message(ended="max_tokens"), "answer", "was cut off"),
        (message(ended="refusal"), "answer", "refused to answer"),
        (message(ended="model_context_window_exceeded"), "overflow", "filled its window"),
        (message(content=[{"type": "thinking", "thinking": "hm"}]), "answer", "empty answer"),
        (message(content=[]), "answer", "empty answer"),
        (message(content=None), "answer", "no answer of the anthropic API"),
    ],
)
def test_an_answer_of_messages_that_is_not_whole_is_a_failure(played: Played, fault: str, words: str) -> None:
    with site(played) as server:
        error = failure(worker(server, api="anthropic"))
    assert error.fault == fault
    assert words in str(error)


def test_words_that_hold_no_proposals_are_a_failure_that_carries_them() -> None:
    with site(completion("Certainly! I will take notes.")) as server, pytest.raises(WorkerError) as caught:
        worker(server).ask(ASK)
    assert (caught.value.fault, caught.value.retry) == ("answer", True)
    assert caught.value.answer == "Certainly! I will take notes."
    assert "Certainly" not in str(caught.value)


def test_an_answer_that_is_too_big_is_a_failure_and_the_biggest_is_none() -> None:
    rest = len(json.dumps(completion('{"notes": []}').body)) + 20
    with site(
        completion('{"notes": []}', padding="x" * (ANSWER_LIMIT - rest)), completion(padding="x" * ANSWER_LIMIT)
    ) as s:
        made = worker(s)
        assert made.ask(ASK).items == ()
        assert "more than 1048576 bytes" in str(failure(made))


@pytest.mark.parametrize(
    ("played", "window", "counted"),
    [
        (refusal(400, "prompt is too long: 213462 tokens > 200000 maximum"), 200_000, 213_462),
        (
            refusal(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
            8192,
            9001,
        ),
        (refusal(500, "the request exceeds the available context size", n_ctx=256, n_prompt_tokens=1407), 256, 1407),
        (Played(400, {"object": "error", "message": "maximum context length is 10 tokens. you requested 20 tokens"}), 10, 20),
        (Played(400, [{"error": {"message": "input token count (9) exceeds the maximum number of tokens allowed (7)"}}]), 7, 9),
        (
            refusal(400, "Provider returned error", metadata={"raw": '{"message":"prompt is too long: 9 tokens > 7 maximum"}'}),
            7,
            9,
        ),
        (refusal(413, "Request too large on tokens per minute (TPM): Limit 6000, Requested 7000"), 6000, 7000),
    ],
)  # fmt: skip
def test_a_prompt_that_is_too_long_is_an_overflow_with_its_numbers(played: Played, window: int, counted: int) -> None:
    with site(played) as server:
        error = failure(worker(server))
    assert (error.fault, error.window, error.counted) == ("overflow", window, counted)
    assert len(server.seen) == 1


def test_the_echo_of_a_request_in_an_error_is_not_taken_for_the_error() -> None:
    detail = [{"loc": ["body", "model"], "msg": "Field required", "input": "prompt is too long: 9 tokens > 7 maximum"}]
    with site(Played(422, {"detail": detail})) as server:
        assert failure(worker(server)).fault == "settings"


def test_every_row_is_a_sentence_with_a_known_fault() -> None:
    for kind, row in http_faults.ROWS.items():
        error = http_faults.fail(http_faults.Failure(kind, 418, wait=3.2), "w")
        assert error.fault in FAULTS
        assert str(error) == f"The worker w gave no answer: {row.what} (HTTP 418, wait 4 s). {row.remedy}."


@pytest.mark.parametrize("status", range(300, 600))
def test_every_status_that_is_no_success_is_a_failure_with_a_row(status: int) -> None:
    judged = http_faults.judge(status, {}, b"", NOW)
    assert judged is not None
    assert judged.kind in http_faults.ROWS


# --- busy servers -----------------------------------------------------------------------------------------------------


def test_a_busy_server_is_asked_again_after_growing_pauses_and_then_given_up(time: FakeTime) -> None:
    with site(Played(503)) as server:
        error = failure(worker(server, time))
    assert (error.fault, error.retry) == ("unavailable", True)
    assert len(server.seen) == http.MOST_TRIES
    assert time.pauses == [1.0, 2.0, 4.0]


def test_chance_shortens_a_pause_but_never_to_nothing(time: FakeTime) -> None:
    clock = time.clock._replace(chance=lambda: 0.0)
    with site(Played(503), completion()) as server:
        http.make({"api": "openai", "url": server.url, "model": "m"}, clock).ask(ASK)
    assert time.pauses == [0.5]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"retry-after": formatdate(NOW + 9, usegmt=True)}, 9.0),
        ({"retry-after": "30", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": formatdate(NOW - 60, usegmt=True)}, 1.0),
        ({"retry-after": "soon"}, 1.0),
        ({"retry-after": "nan"}, 1.0),
        ({"retry-after": "-3"}, 1.0),
    ],
)
def test_a_server_is_left_alone_as_long_as_it_asks(headers: dict[str, str], seconds: float, time: FakeTime) -> None:
    with site(Played(429, "", headers), completion()) as server:
        assert worker(server, time).ask(ASK).items
    assert time.pauses == [pytest.approx(seconds)]


def test_a_wait_that_is_longer_than_what_is_left_is_handed_back(time: FakeTime) -> None:
    with site(Played(429, "", {"retry-after": "61"})) as server:
        error = failure(worker(server, time, timeout_seconds=60))
    assert (error.fault, error.wait, time.pauses, len(server.seen)) == ("unavailable", 61.0, [], 1)


def test_no_pause_goes_beyond_the_deadline(time: FakeTime) -> None:
    with site(Played(500)) as server:
        failure(worker(server, time, timeout_seconds=2.5))
    assert time.pauses == [1.0]
    assert len(server.seen) == 2


@pytest.mark.parametrize("step", [hang, drip])
def test_a_server_that_never_ends_its_answer_does_not_hold_the_worker(step: Any) -> None:
    with site(step) as server:
        error = failure(worker(server, timeout_seconds=0.3))
    assert error.fault == "unavailable"
    assert "time ran out" in str(error)


def test_a_connection_that_breaks_off_is_made_again(time: FakeTime) -> None:
    with site(hang_up, completion()) as server:
        assert worker(server, time).ask(ASK).items
    assert len(server.seen) == 2


def test_a_server_that_is_not_there_is_unavailable_at_once(time: FakeTime) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = failure(worker(f"http://127.0.0.1:{taken.getsockname()[1]}", time))
    assert (error.fault, time.pauses) == ("unavailable", [])
    assert "nothing listens" in str(error)


def test_an_unknown_host_is_unavailable(monkeypatch: pytest.MonkeyPatch, time: FakeTime) -> None:
    def unknown(*args: Any, **names: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no test may ask a name server
    error = failure(worker("https://model.invalid", time))
    assert error.fault == "unavailable"
    assert "name is unknown" in str(error)


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("https://api.example.com", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/chat/completions", "https://api.example.com/chat/completions"),
        ("https://api.example.com/api", "https://api.example.com/api/v1/chat/completions"),
        ("https://api.example.com/v1beta/openai/", "https://api.example.com/v1beta/openai/chat/completions"),
        ("https://api.example.com/api/paas/v4", "https://api.example.com/api/paas/v4/chat/completions"),
        ("https://a.example.com/x/chat/completions?v=1#y", "https://a.example.com/x/chat/completions?v=1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
    ],
)
def test_an_address_may_stop_before_the_version_or_the_endpoint(given: str, whole: str) -> None:
    assert http_wire.endpoint(given, http_forms.ENDPOINTS["openai"], True) == whole


@pytest.mark.parametrize(
    "url",
    ["ftp://x/v1", "localhost:11434", "/v1", "http://", "http://x:port", "https://user:word@x", "https://a b", ""],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="url") as caught:
        worker(url)
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("options", [{"key_env": "A_KEY"}, {"key_command": "echo x"}, {"headers": {"x-token": "t"}}])
@pytest.mark.parametrize("host", ["api.example.com", "192.168.1.7:8080", "gpu-box", "127.0.0.1.example.com"])
def test_a_key_never_goes_over_plain_http_to_another_machine(options: dict[str, Any], host: str) -> None:
    with pytest.raises(ConfigError, match="unencrypted"):
        worker(f"http://{host}/v1", **options)
    worker(f"https://{host}/v1", **options)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.9.9.9:80"])
def test_a_key_may_go_over_plain_http_to_this_machine(host: str) -> None:
    worker(f"http://{host}/v1", key_env="A_KEY")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("10.0.0.5", True), ("gpu-box", True), ("box.local", True), ("8.8.8.8", False), ("api.example.com", False)],
)
def test_without_a_key_plain_http_goes_no_further_than_a_private_network(host: str, allowed: bool) -> None:
    if allowed:
        worker(f"http://{host}:8080")
        return
    with pytest.raises(ConfigError, match="unencrypted"):
        worker(f"http://{host}:8080")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with (
        site(completion()) as other,
        site(Played(status, "", {"location": f"{other.url}/v1/chat/completions"})) as first,
    ):
        error = failure(worker(first, key_env="A_KEY"))
    assert (error.fault, len(first.seen), other.seen) == ("settings", 1, [])
    assert "redirects" in str(error)


def test_a_proxy_of_the_environment_is_used_for_another_host_and_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with site(completion()) as proxy, site(completion()) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        worker("http://model.internal:8080").ask(ASK)
        assert [seen.path for seen in proxy.seen] == ["http://model.internal:8080/v1/chat/completions"]
        worker(server).ask(ASK)
        assert (len(proxy.seen), len(server.seen)) == (1, 1)


def test_a_proxy_that_refuses_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch, time: FakeTime) -> None:
    with site(completion()) as proxy:  # it knows no CONNECT
        monkeypatch.setenv("https_proxy", proxy.url)
        error = failure(worker("https://model.internal", time))
    assert error.fault == "unavailable"
    assert "proxy" in str(error)


def encrypted(folder: Path, server: Site) -> str:
    """Put a server behind a certificate that nobody has signed; its address."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([program, *words], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server.url.replace("http:", "https:")


def test_a_certificate_is_always_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: FakeTime) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    server = Site([completion()])
    url = encrypted(tmp_path, server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        error = failure(worker(url, time, key_env="A_KEY"))
        assert (error.fault, server.seen) == ("settings", [])
        assert "certificate is not trusted" in str(error)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert worker(url, time, key_env="A_KEY").ask(ASK).items
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_without_encryption_behind_https_is_unavailable(time: FakeTime) -> None:
    with site(completion()) as server:
        error = failure(worker(server.url.replace("http:", "https:"), time))
    assert (error.fault, server.seen) == ("unavailable", [])
    assert "no encrypted connection" in str(error)


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_comes_from_a_program_or_a_shell_line() -> None:
    program = [sys.executable, "-c", f"print({KEY!r})"]
    with site(completion()) as server:
        worker(server, key_command=program).ask(ASK)
        worker(server, key_command=f"echo {KEY}").ask(ASK)
    assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {KEY}"] * 2


def test_a_header_may_have_the_key_in_it_which_then_stands_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with site(message()) as server:
        worker(server, api="anthropic", key_env="A_KEY", headers={"Authorization": "Bearer {key}"}).ask(ASK)
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in server.seen[0].headers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key_env": "NOT_SET"}, "NOT_SET is not set"),
        ({"key_env": "BROKEN"}, "is no key"),
        ({"key_command": ["no-such-program-here"]}, "cannot be started"),
        ({"key_command": f"echo {KEY}; exit 3"}, "exit code 3"),
        ({"key_command": "true"}, "printed nothing"),
        ({"key_command": f"echo {KEY}; echo more"}, "is no key"),
        ({"key_command": [sys.executable, "-c", "print('x' * 99999)"]}, "is no key"),
        ({"key_command": [sys.executable, "-c", "import time; time.sleep(30)"]}, "did not end in time"),
        ({"key_command": "sleep 30 & wait"}, "did not end in time"),
        ({"key_command": [sys.executable, "-c", "while True: print('x' * 9999)"]}, "is no key"),
    ],
)
def test_without_a_usable_key_nothing_is_sent(
    options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", f"{KEY}\nx: y")
    with site(completion()) as server:
        error = failure(worker(server, timeout_seconds=1 if words.endswith("in time") else 60, **options))
    assert (error.fault, server.seen) == ("settings", [])
    assert words in str(error)


def test_what_a_key_command_started_is_gone_after_its_deadline(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    mark.touch()
    line = f"(while [ -e {mark} ]; do sleep 0.05; touch {tmp_path / 'beat'}; done) & wait"
    with site(completion()) as server:
        failure(worker(server, timeout_seconds=1, key_command=line))
    beat = tmp_path / "beat"
    assert beat.exists()
    beat.unlink()
    assert not threading.Event().wait(0.3)
    assert not beat.exists()


def test_neither_key_nor_words_reach_a_log_or_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], time: FakeTime
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    echo = refusal(400, f"bad request: {PROMPT} {KEY}", type=KEY, code=PROMPT)
    with (
        caplog.at_level(logging.DEBUG),
        site(echo, Played(503, f"{KEY} {PROMPT}"), completion(f"{KEY} {PROMPT}")) as server,
    ):
        made = worker(server, time, key_env="A_KEY", structured="off")
        failure(made)
        failure(made)
    assert len(server.seen) == 3
    out, err = capfd.readouterr()
    for text in (caplog.text, out, err, repr(made), str(made)):
        assert KEY not in text
        assert PROMPT not in text


# --- making one -------------------------------------------------------------------------------------------------------


def test_a_worker_has_what_its_options_say() -> None:
    assert workers.load("http") is http
    made = worker("http://127.0.0.1:1", kind="http", window=32_000, answer_tokens=500, alone=True)
    assert (made.NAME, made.model, made.window, made.answer_tokens, made.alone) == ("http:m", "m", 32_000, 500, True)
    plain = worker("http://127.0.0.1:1", name="ours", window=None)
    assert (plain.NAME, plain.window, plain.answer_tokens, plain.alone) == ("ours", 0, 4_000, False)


def test_with_model_is_a_copy_that_asks_for_another_model() -> None:
    with site(completion()) as server:
        first = worker(server)
        other = first.with_model("n")
        other.ask(ASK)
        first.ask(ASK)
    assert [seen.body["model"] for seen in server.seen] == ["n", "m"]
    assert (first.NAME, other.NAME) == ("http:m", "http:n")
    assert worker(server, name="ours").with_model("n").NAME == "ours"


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
