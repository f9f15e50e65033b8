"""What each failure of a server says about the worker, and nothing of the prompt or the key."""

from __future__ import annotations

import json

import pytest

from obsmem.core.errors import FAULTS, WorkerError
from obsmem.workers import http_faults
from obsmem.workers.base import ANSWER_LIMIT
from tests.workers.http_worker import ASK, KEY, NOW, FakeTime, failure, worker
from tests.workers.model_site import (
    Played,
    completion,
    message,
    pour,
    refusal,
    site,
)

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


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with site(pour) as server:
        assert "more than 1048576 bytes" in str(failure(worker(server, timeout_seconds=60)))


@pytest.mark.parametrize("status", [401, 402, 403, 404, 503])
def test_a_status_that_says_why_is_believed_more_than_words(status: int) -> None:
    judged = http_faults.judge(status, {}, b"prompt is too long: 9 tokens > 7 maximum", NOW)
    assert judged is not None
    assert judged.kind != "overflow"


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
