"""Refusals of prompts that are too long, in the words of several servers, and errors that are none."""

from __future__ import annotations

import json
import time

import pytest

from obsmem.core.refusals import read_refusal


@pytest.mark.parametrize(
    ("text", "window", "counted"),
    [
        ("prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462),
        ("Prompt is too long", 0, 0),
        ("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease it", 200_000, 178_959),
        ('{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}', 0, 0),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
            "Please reduce the length of the messages.",
            8192,
            9001,
        ),
        ('{"error":{"message":"Too much.","code":"context_length_exceeded"}}', 0, 0),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", 0, 0),
        (
            "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 278,542 tokens.",
            272_000,
            278_542,
        ),
        (
            "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the "
            "messages, 10000 in the completion). Please reduce the length of the messages or completion.",
            16_384,
            112_946,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 8192 "
            "tokens and your request has 6000 input tokens (4000 > 8192 - 6000).",
            8192,
            6000,
        ),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
            "9000 tokens: 8000 tokens from the input messages and 1000 tokens for the completion.",
            8192,
            8000,
        ),
        ("The input (12345 tokens) is longer than the model's context length (8192 tokens).", 8192, 12_345),
        ("the request exceeds the available context size, try increasing it", 0, 0),
        ("request (13000 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192, 13_000),
        ("Requested tokens (2285) exceed context window of 2048", 2048, 2285),
        (
            "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with "
            "context length of only 32768 tokens, which is not enough.",
            32_768,
            111_490,
        ),
        (
            "The number of tokens to keep from the initial prompt is greater than the context length "
            "(n_keep: 15000>= n_ctx: 8192).",
            8192,
            15_000,
        ),
        ("the input length exceeds the context length", 0, 0),
        ("prompt too long; exceeded max context length by 4 tokens", 0, 0),
        ("The input token count (218152) exceeds the maximum number of tokens allowed (65536).", 65_536, 218_152),
        ("the input token count is 32825 but model only supports up to 32768", 32_768, 32_825),
        ("Input is too long for requested model.", 0, 0),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            32_768,
            40_000,
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            131_072,
            537_812,
        ),
        ("prompt token count of 128700 exceeds the limit of 128000", 128_000, 128_700),
        ("Your request exceeded model token limit: 262144 (requested: 270000)", 262_144, 270_000),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 512 `max_new_tokens`",
            4096,
            5000,
        ),
        (
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 12345, please reduce "
            "your message size and try again.",
            6000,
            12_345,
        ),
    ],
)
def test_a_refusal_is_read_with_the_numbers_that_it_names(text: str, window: int, counted: int) -> None:
    assert read_refusal(text) == (window, counted)
    assert read_refusal(json.dumps({"error": {"message": text}})) == (window, counted)


@pytest.mark.parametrize("nested", [False, True])
def test_numbers_are_read_from_the_fields_of_a_json_answer(nested: bool) -> None:
    body = json.dumps(
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the context size",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 14429,
                "n_ctx": 8192,
            }
        }
    )
    assert read_refusal(json.dumps({"raw": body}) if nested else body) == (8192, 14_429)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 20000, Requested 15000.",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
        "You exceeded your current quota, please check your plan and billing details.",
        "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
        "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for this model",
        "Your credit balance is too low to access the API.",
        "The model `m` does not exist.",
        "Tokens per minute exceed limit for this key.",
        "Overloaded",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ],
)
def test_other_errors_are_no_refusals(text: str) -> None:
    assert read_refusal(text) is None


def test_a_long_page_is_neither_searched_to_its_end_nor_slow() -> None:
    started = time.process_time()
    assert read_refusal("token length exceed " * 200_000 + "prompt is too long") is None
    assert read_refusal("1" * 1_000_000) is None
    assert time.process_time() - started < 5
