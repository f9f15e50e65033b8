"""Names are taken apart the same way in texts and in questions, and any question gives terms."""

from __future__ import annotations

from obsmem.core.identifiers import (
    MOST_NAMES,
    MOST_PARTS,
    MOST_TERMS,
    light_stem,
    parts_of,
    pattern_of,
    read_terms,
    whole_names,
)


def test_forms_of_a_name_have_the_same_parts() -> None:
    forms = ["parseConfig", "parse_config", "ParseConfig", "parse-config", "parse/config"]
    assert {tuple(part.lower() for part in parts_of(form)) for form in forms} == {("parse", "config")}
    assert parts_of("HTTPServer") == ("HTTP", "Server")
    assert parts_of("src/parse/config.py") == ("src", "parse", "config", "py")


def test_names_of_several_parts_are_also_kept_whole() -> None:
    assert whole_names("call parse_config or parseConfig, not parse") == ["parseconfig"]
    assert whole_names("plain words, CAPITALS and _private_ ones") == []
    assert whole_names("Straße_breit, breit_Straße: é_acute_b \ud800one_two") == [
        "ebreit",
        "breitstra",
        "acuteb",
        "onetwo",
    ]


def test_names_are_found_anew_once_too_many_are_remembered() -> None:
    first = [f"name_{number}" for number in range(MOST_NAMES + 10)]
    assert whole_names(" ".join(first)) == [name.replace("_", "") for name in first]
    assert whole_names("name_0 nameX plain") == ["name0", "namex"]


def test_a_question_gives_words_names_with_their_parts_and_phrases() -> None:
    terms = {term.parts: term for term in read_terms('fix parse_config "never touch"')}
    assert terms["fix",].weight == 1 and terms["parse", "config"].weight == 1
    assert terms["parse",].weight < 1 and terms["config",].weight < 1
    assert terms["never", "touch"].quoted == "never touch" and terms["never", "touch"].weight > 1
    assert read_terms('"') == read_terms("(*)") == read_terms("") == []


def test_a_long_question_is_bounded() -> None:
    terms = read_terms(" ".join(f"word{number}" for number in range(900)) + ' "' + "a " * 500 + '"')
    assert len(terms) == MOST_TERMS and all(len(term.parts) <= MOST_PARTS for term in terms)


def test_the_pattern_finds_other_endings_and_other_forms() -> None:
    pattern = pattern_of(read_terms("refreshing parse_config"))
    for text in ("it refreshes", "Refresh!", "parseConfig", "parse/config.py", "PARSE_CONFIG"):
        assert pattern.search(text), text
    assert not pattern.search("afresh start")
    assert light_stem("tokens") == "token" and light_stem("bed") == "bed"
