"""The bench of survival judges as its definitions say: what belongs together, what is bound, what is false."""

from __future__ import annotations

from bench.survival import arms, judge
from bench.survival.entries import RECORD
from bench.survival.facts import Fact

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
