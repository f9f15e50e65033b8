"""The bench of survival judges as its definitions say: what belongs together, what is bound, what is false."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from bench.survival import __main__ as bench
from bench.survival import arms, grammar, judge, plants
from bench.survival.citations import judge_citations
from bench.survival.entries import RECORD
from bench.survival.facts import Fact, facts_of
from bench.survival.falsehoods import false_bindings, false_claims, source_of
from bench.survival.memory import remember
from bench.survival.record import Case, Event
from bench.survival.standing import instructions, judge_standing

DEMO = Path(__file__).resolve().parents[1] / "fixtures" / "demo" / "claude-code" / "session.jsonl"

FACTS = [
    Fact("identifier in file", "parseHeader", "pkg/wire/header.go", 1),
    Fact("identifier in file", "writeFooter", "pkg/wire/footer.go", 2),
    Fact("command and error", "make build", "undefined: parseHeader", 3),
    Fact("command and error", "make lint", "unused variable", 4),
]
KINDS = judge.kinds_of(FACTS)


def held(text: str) -> list[str]:
    """The subjects of the facts that a text holds."""
    judged = judge.Text(text, KINDS)
    return [fact.subject for fact in FACTS if judged.holds(fact)]


def test_a_line_binds_what_stands_in_it_and_not_what_stands_in_the_next() -> None:
    block = (
        "## Files\npkg/wire/header.go  edited (12:00): parseHeader\npkg/wire/footer.go  edited (12:01): writeFooter\n"
        "## Commands\n- `make build` \u2192 exit 1; undefined: parseHeader\n- `make lint` \u2192 exit 1; unused variable"
    )
    assert held(block) == [fact.subject for fact in FACTS]
    assert held("pkg/wire/header.go\nparseHeader") == []
    assert held(arms.shuffled(block, FACTS)) == []


def test_a_lone_object_is_exchanged_too() -> None:
    assert held(arms.shuffled("header.go: parseHeader", FACTS[:1])) == []


def test_no_other_object_of_the_kind_stands_between() -> None:
    assert held("header.go and footer.go: writeFooter, parseHeader") == ["writeFooter"]
    assert held("`parseHeader` in `header.go` and `writeFooter` in `footer.go`") == ["parseHeader", "writeFooter"]
    assert held("other/header.go: parseHeader") == []
    assert held("wire/header.go:17: parseHeader") == ["parseHeader"]


def test_a_line_stands_under_headings_items_and_openings() -> None:
    assert held("### `pkg/wire/header.go`\n- added `parseHeader`") == ["parseHeader"]
    assert held("1. **header.go**\n   - the new `parseHeader`:\n     ```go\nfunc parseHeader() {\n```") == [
        "parseHeader"
    ]
    assert held("- header.go was read\n- `parseHeader` is new") == []
    assert held("# header.go\n# Other\nparseHeader") == []


def test_a_record_binds_its_lines_to_its_first_one() -> None:
    record = f"{RECORD}Edit: pkg/wire/header.go\nx\ny\nfunc parseHeader() {{"
    assert held(record) == ["parseHeader"]
    assert held(record + f"\n{RECORD}Read: pkg/wire/footer.go\n{RECORD}func writeFooter() {{") == ["parseHeader"]


def test_commands_that_begin_alike_are_told_apart() -> None:
    long = "gh api repos/one/two/pulls/112/comments/"
    alike = [
        Fact("command and error", long + "1", "not found", 1),
        Fact("command and error", long + "2", "no access", 2),
    ]
    judged = judge.Text(f"`{long}1` failed: no access", judge.kinds_of(alike))
    assert not any(judged.holds(fact) for fact in alike)


def prompts(*words: str) -> Case:
    """A session in which the user said this."""
    return Case("s", 0, "", [], [Event("prompt", one, number) for number, one in enumerate(words)], [], [], "", [])


def test_instructions_that_later_words_may_have_taken_back_are_not_asked_for() -> None:
    stays, goes = "Write every commit message in Spanish.", "Put the generated tables below docs/tables."
    back = "Actually, leave the generated tables where they are."
    assert instructions(prompts(stays, "Does that work for you?", goes, back)) == [stays, back]


def test_an_instruction_is_retired_where_it_is_missing_or_marked() -> None:
    words = ["Write every commit message in Spanish.", "Never touch the lock file.", "Keep Python 3.9 [stale] alive."]
    block = f'Earlier (12:00, ab3d.1): "{words[0]}" [superseded, it seems, by ab3d.9]\nEarlier: "{words[2]}"'
    found = judge_standing(block, words)
    assert (found.asked, found.missing, found.marked) == (3, [words[1]], [words[0]])
    assert judge_standing(block + "\n" + words[0], words[:1]).marked == []


def test_a_claim_is_false_where_no_line_has_it_as_a_whole_word() -> None:
    source = source_of([json.dumps({"a": ["src/wire/header.go has parseHeader", {"size": 4711}]}).encode()])
    block = (
        '<observational-memory delivery="3knj3gxt" part="1/1" session="nrx6">\nSee `/opt/any/made_up_name.py recall <id>`.\n'
        "## Files\nsrc/wire/header.go  edited \u00d7123 (12:36, nrx6.328): parseHeader (+210)\n[ef90011] 4711 bytes\n"
        "(220 older notes left out)\nparse [\u202699 characters\u2026] eader_name\n</observational-memory>"
    )
    assert false_claims(block, source) == (3, [])
    lies = "src/wire/head.go parseHead wire/header.go #123 4712 there [\u2026] parseHeader"
    assert false_claims(lies, source) == (5, ["#123", "4712", "parseHead", "src/wire/head.go"])


def test_a_field_is_no_false_name_and_a_written_out_end_of_line_is_part_of_none() -> None:
    source = source_of([json.dumps({"filePath": 'print("\\\\nnew_user1")'}).encode()])
    assert false_claims("filePath new_user1 nnew_user1", source) == (3, ["nnew_user1"])


def test_a_name_is_falsely_bound_to_a_file_that_no_record_has_it_with() -> None:
    records = ["Edit: pkg/wire/header.go func parseHeader", "Read: pkg/wire/footer.go func writeFooter"]
    text = "header.go: parseHeader, writeFooter\nfooter.go and header.go: parseHeader\nfooter.go: writeFooter\nelsewhere: header.go, writeFooter"
    assert false_bindings(text, records, KINDS.files) == (3, [("writeFooter", "header.go")])


def judged(plant: plants.Plant, text: str) -> dict[str, float]:
    return {name: value for name, value in plants.judge_plants([plant], lambda one: text).items() if value}


def test_a_value_is_right_stale_or_asserted_by_the_line_that_it_stands_in() -> None:
    stays = plants.Plant("staging port", "current", "21001", "")
    assert judged(stays, "The staging port is 21001.") == {"right": 1}
    assert judged(stays, "The staging port is 210010.") == {"retired": 1}
    assert judged(stays, "The staging port is 21001. [superseded, it seems, by ab3d.1]") == {"retired": 1}
    changed = plants.Plant("staging port", "superseded", "21001", "", "31001", "The staging port is 31001 now.")
    told = "The staging port is 21001.\nThe staging port is 31001 now."
    assert judged(changed, told) == {"right": 1, "stale": 1}
    assert judged(changed, "The staging port is 21001.") == {"stale": 1, "misled": 1}
    assert judged(changed, "The staging port moves from 21001 to 31001.") == {"right": 1}
    gone = plants.Plant("staging port", "revoked", "21001", "", later="Scrap the staging port.")
    assert judged(gone, "The staging port is 21001.\nScrap the staging port.") == {"stale": 1}
    assert judged(gone, "Scrap the staging port.") == {"abstained": 1}
    never = plants.Plant("staging port", "never true", "21001", "")
    assert judged(never, "The staging port is 21001.") == {"asserted": 1}
    assert judged(never, "the staging port of the other team is 21001") == {"abstained": 1}


@pytest.mark.parametrize("name", plants.SETS)
def test_made_up_facts_say_what_they_are(name: str) -> None:
    made = [one for seed in range(20) for one in plants.SETS[name]("held-out", random.Random(seed))]
    assert len({one.words.replace(one.value, "").replace(one.noun, "") for one in made}) >= (
        100 if name == "drawn" else 2
    )
    for one in made:
        assert one.value in one.words and one.noun in one.words.casefold() and "{" not in one.words + one.later
        assert not plants.MARK.search(one.words)
        # What was never true tells it, and no other first words do.
        assert judged(one, one.words) in (
            [{"abstained": 1}] if one.fate == "never true" else
            [{"right": 1}] if one.fate == "current" else [{"stale": 1, "misled": 1}]
        )  # fmt: skip
        if one.fate == "superseded":
            assert judged(one, one.later) == {"right": 1}
        elif one.fate == "revoked":
            assert one.noun in one.later.casefold() and one.value not in one.later


def test_every_slot_of_the_grammar_has_something_to_fill_it() -> None:
    slots = {slot for kind in grammar.GRAMMAR.values() for one in kind for slot in re.findall(r"\{(\w+)\}", one)}
    assert slots - grammar.GRAMMAR.keys() == {"noun", "value", "new"}


def test_notes_cite_what_they_tell_and_recall_gives_the_bytes() -> None:
    (case,) = bench.load_cases([DEMO], calls=1)
    with remember(case.before, case.session) as memory:
        block = memory.block(7_840) + "\nversion 2026.8, abcd.99"  # which are no entries
        found = judge_citations(memory, case.before, block, facts_of(case))
    assert found.notes and found.shown == found.notes
    assert found.telling and found.contained == found.telling
    assert found.recalled and found.same == found.recalled
    assert found.reached["edited"][1] >= found.reached["edited"][0] > 0


def test_a_note_that_cites_other_lines_than_it_tells_is_found_out() -> None:
    (case,) = bench.load_cases([DEMO], calls=1)
    moved = [b"{}" for _ in case.before]
    with remember(case.before, case.session) as memory:
        found = judge_citations(memory, moved, memory.block(7_840), [])
    assert found.contained < found.telling
    assert found.same == 0


def test_a_run_prints_what_there_is_without_a_memory_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artefact = tmp_path / "run.json"
    words = [str(DEMO), "--half", "both", "--least-calls", "1", "--out", str(artefact), "--seed", "1"]
    assert bench.main(words) == 0
    said = capsys.readouterr().out
    assert said.index("B4 native") < said.index("B1 tail") < said.index("B5 card") < said.index("B8 ours")
    found = json.loads(artefact.read_text(encoding="utf-8"))
    (told,) = found["summary"].values()
    assert set(told["calls"]) == {"0", "1", "2", "3", "5"} and set(told["plants"]) == set(plants.SETS)
    assert told["arms"]["B10 everything"]["identifier in file"] == "100.0"
    assert told["false"]["ours"]["claims"] and told["citations"]["same bytes"] == "100.0"
    assert len(told["rounds"]) == 6 and told["sections"]["Files"]["tokens"]
