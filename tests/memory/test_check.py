"""Citations must have been shown; what can be looked up must stand in the cited words, as a whole."""

import pytest

from obsmem.memory.check import citations, evidence, ground
from tests.memory.make import agent, chunk_of, result, user

CHUNK = chunk_of(user(7, "a"), agent(812, "b"), result(813, "c"))


@pytest.mark.parametrize(
    "ids",
    [
        ["abcd.812"],
        ["2"],
        ["[abcd.812]"],
        [2],
        "abcd.812",
        "[2]",
        ["`abcd.812`"],
        ["#2"],
        [" abcd.812 ", 2],
        2,
    ],
)
def test_an_id_may_be_written_in_many_ways(ids: object) -> None:
    assert citations(ids, CHUNK) == (("abcd.812",), ())


def test_ids_come_back_once_and_in_the_order_of_the_chunk() -> None:
    assert citations(["3", "1", "abcd.813"], CHUNK) == (("abcd.7", "abcd.813"), ())
    assert citations("3, 1", CHUNK)[0] == ("abcd.7", "abcd.813")


@pytest.mark.parametrize("name", ["4", "0", "812", "efgh.812", "note 1", "abcd.8120", "2.5", "-2"])
def test_an_id_that_was_not_shown_is_unknown(name: str) -> None:
    known, unknown = citations([name, 2], CHUNK)
    assert known == ("abcd.812",) and unknown


def test_the_strongest_voice_counts() -> None:
    assert evidence([agent(1, ""), result(2, ""), user(3, "")]) == "user"
    assert evidence([agent(1, ""), result(2, "")]) == "tool"
    assert evidence([agent(1, "")]) == "agent"


SOURCE = (
    'Edited /home/u/src/a.py:31: error: Incompatible types in "parse_config"; took 128 ms, 12 of 15 passed,\n'
    "  1,234 tokens; ran `uv run pytest -q  tests` at 4b6027402aa1; don’t touch the public API;\n"
    "ConfigLoader.load() uses MAX_RETRIES=3 and --prune, version 2.10.1, `agent.Name()` on 2026-04-29, 50% done"
)

FOUND = [
    "src/a.py:31 failed",
    "a.py has an error in parse_config",
    "took 128ms",
    "12 of 15 passed",
    "1234 tokens were used",
    "12.0 passed",
    "commit 4b60274",
    'user: "Don\'t touch the public API"',
    "“don’t touch … public API”",
    '"Incompatible types in…"',
    '"uses MAX_RETRIES=3 and --prune," it says',
    "ConfigLoader.load and MAX_RETRIES",
    "runs `uv run  pytest -q tests`",
    "`agent.Name` or agent.Name()",
    "uses --prune on 2.10.1",
    "50 % done on 2026-04-29",
    "plain prose about reading and/or writing, input/output, e.g. this",
    "It isn't what they'd say",
    "GitHub and TypeScript are names",
    "«don't touch the public API»",
    "'took 128 ms' he said",
]


@pytest.mark.parametrize("text", FOUND)
def test_what_stands_in_the_source_is_verified(text: str) -> None:
    assert ground(text, [SOURCE]) == ("verified", ())


MISSING = {
    "took 28 ms": "28 ms",
    "took 128 s": "128 s",
    "1 passed": "1",
    "version 2.10": "2.10",
    "in src/b.py": "src/b.py",
    "in a.pyc": "a.pyc",
    "in ba.py": "ba.py",
    "commit 4b60275": "4b60275",
    "calls parse_conf": "parse_conf",
    "calls Parse_config": "Parse_config",
    "uses ConfigLoaders": "ConfigLoaders",
    "runs `pytest -x`": "pytest -x",
    "with --prune-all": "--prune-all",
    'user said "touch the private API"': "touch the private API",
    'said "don\'t … private API"': "don't … private API",
    "at 10:31": "10:31",
    "see https://example.org/a": "https://example.org/a",
}


@pytest.mark.parametrize("text", MISSING)
def test_what_does_not_stand_there_is_named(text: str) -> None:
    assert ground(text, [SOURCE]) == ("none", (MISSING[text],))


def test_some_found_and_some_not_is_partial() -> None:
    assert ground("parse_config took 99 ms", [SOURCE]) == ("partial", ("99 ms",))


def test_a_line_number_must_be_there_too() -> None:
    assert ground("src/a.py:32", [SOURCE])[0] == "none"


def test_times_may_come_from_the_labels() -> None:
    assert ground("decided on 2026-05-02 10:31", [SOURCE], "2026-05-02 10:31")[0] == "verified"


def test_several_sources_are_one() -> None:
    assert ground("12 in a.py", ["12 items", "file a.py"])[0] == "verified"
    assert ground("12 in a.py", [])[0] == "none"


def test_a_masked_value_is_found_where_it_was_masked() -> None:
    words = "use ghp_…[masked github token] now"
    assert ground('user gave "use ghp_…[masked github token]"', [words])[0] == "verified"


def test_hostile_text_ends_in_bounded_time() -> None:
    for piece in ("a.", "'a", "/a", "`", '"', "1,", "a_", "…", "aA", "(", "\u3000"):
        ground(piece * 5000, [piece * 5000])
