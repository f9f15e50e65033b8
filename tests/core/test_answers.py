"""Answers of real models: fences, prose, slips and cuts. A cut answer never passes for a short one."""

import json
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.answers import parse_answer
from obsmem.core.errors import WorkerError

ONE = [{"text": "a", "entry_ids": [1]}]

READABLE: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "plain": ('{"notes":[{"text":"a","entry_ids":[1]}]}', ONE),
    "fence": ('```json\n{"notes":[{"text":"a","entry_ids":[1]}]}\n```', ONE),
    "prose around": ('Here are [some] notes:\n{"notes":[{"text":"a","sources":[1]}]}\nAnything else?', ONE),
    "trailing commas": ('{"notes":[{"text":"a","entry_ids":[1,],},],}', ONE),
    "comma in a string": ('{"notes":[{"text":"a,]","entry_ids":[1],}]}', [{"text": "a,]", "entry_ids": [1]}]),
    "single object": ('{"text":"a","entry_ids":[1]}', ONE),
    "bare list": ('[{"text":"a","entry_ids":[1]}]', ONE),
    "json lines": ('{"text":"a","entry_ids":[1]}\n{"text":"a","entry_ids":[1]}', ONE * 2),
    "upstream's words": ('{"observations":[{"content":"a","sourceEntryIds":[1]}]}', ONE),
    "single quotes": ("{'notes': [{'text': 'a', 'entry_ids': [1]}]}", ONE),
    "raw newline": ('{"notes":[{"text":"a\nb","entry_ids":[1]}]}', [{"text": "a\nb", "entry_ids": [1]}]),
    "thinking before": ('<think>{"notes": [</think>{"notes":[{"text":"a","entry_ids":[1]}]}', ONE),
    "runaway after": ('{"notes":[{"text":"a","entry_ids":[1]}]}```json```json```json', ONE),
    "one note, no list": ('{"notes":{"text":"a","entry_ids":[1]}}', ONE),
    "nothing": ('{"notes":[]}', []),
    "empty list": ("[]", []),
    "fenced empty list": ("```json\n[]\n```", []),
}


@pytest.mark.parametrize("name", READABLE)
def test_an_answer_is_read(name: str) -> None:
    text, expected = READABLE[name]
    assert parse_answer(text) == expected


UNREADABLE = {
    "empty": "",
    "blank": " \n ",
    "prose": "There is nothing to note, list[] is empty.",
    "empty object": "{}",
    "null": '{"notes": null}',
    "cut in a string": '{"notes":[{"text":"a","entry_ids":[1]},{"text":"b',
    "cut after an item": '{"notes":[{"text":"a","entry_ids":[1]},',
    "cut in json lines": '{"text":"a","entry_ids":[1]}\n{"text":"b"',
    "cut while thinking": '<think>{"notes":[]} may be right, but',
    "broken": '{"notes":[{"text" "a"}]}',
    "deep": "[" * 100_000 + "{",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_failed_answer_is_an_error_that_may_be_asked_again(name: str) -> None:
    with pytest.raises(WorkerError) as error:
        parse_answer(UNREADABLE[name])
    assert error.value.retry


def test_the_other_passes_have_their_fields() -> None:
    assert parse_answer('{"reflections":[{"content":"a","supportingObservationIds":["x"]}]}', "reflect") == [
        {"text": "a", "note_ids": ["x"]}
    ]
    assert parse_answer('{"ids":["x","y"]}', "drop") == [{"note_id": "x"}, {"note_id": "y"}]
    assert parse_answer('{"drops":[{"note_id":"x","reason":"r"}]}', "drop") == [{"note_id": "x", "why": "r"}]
    assert parse_answer('{"ids":[]}', "drop") == []


def test_every_real_answer_of_small_models_is_read_or_refused_as_cut() -> None:
    folder = Path(__file__).resolve().parents[2] / ".." / "shared" / "evals" / "answers"
    if not folder.is_dir():
        pytest.skip("the recorded answers are not here")
    outcomes: dict[bool, list[str]] = {True: [], False: []}
    for line in (folder / "answers.jsonl").read_text(encoding="utf-8").split("\n"):
        if not line:
            continue
        record = json.loads(line)
        try:
            proposals = parse_answer(record["answer"])
            assert proposals and all(item["text"] and item["entry_ids"] for item in proposals)
            outcomes[True].append(record["mode"])
        except WorkerError as error:
            assert "cut off" in str(error)
            outcomes[False].append(record["mode"])
    assert outcomes[False] == ["schema"] * 3
    assert outcomes[True].count("free") == 14 and outcomes[True].count("schema") == 11
