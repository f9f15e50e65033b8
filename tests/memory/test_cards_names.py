"""What an entry names is kept, wherever it stands; what nobody would ask for by name is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.core.mask import mask
from obsmem.memory.cards import CardBuilder
from obsmem.memory.cards_names import HEAD, NAMES_KEPT, TAIL, names_in
from obsmem.system import config
from obsmem.tasks.cards import cards_of
from obsmem.tasks.discover import find_below
from obsmem.tasks.entries import read_entries
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import open_store
from tests.memory.card_entries import Script

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see src/app/main_loop.py:12, lib/x.ts.", ["src/app/main_loop.py", "lib/x.ts"]),
        ("strategy.SessionState and parse_config(raw_bytes)", ["SessionState", "parse_config", "raw_bytes"]),
        ("34157bc5 (HEAD) fix #123, ENT-221", ["34157bc5", "#123", "ENT-221"]),
        ("comment 2738937075 on v2.1.17", ["2738937075", "v2.1.17"]),
        ("https://example.org/a/pull/12.", ["https://example.org/a/pull/12"]),
        ("diff --git a/cmd/tool.go b/cmd/tool.go", ["cmd/tool.go"]),
        (r'"two\nNewLine\tgitHash"', ["NewLine", "gitHash"]),
        (r'open C:\new\table then "a\nNewLine"', ["NewLine"]),
        ("origin/alex/ent-phase of feature/x-y", ["origin/alex/ent-phase", "feature/x-y"]),
    ],
)
def test_names_are_known_by_their_shape(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_prose_names_nothing() -> None:
    assert (
        names_in("Read and/or write, e.g. the first half - decade, 12 of 2026. It WAS well-known (see README).") == []
    )


def test_paths_below_the_folder_come_out_relative() -> None:
    assert names_in("/repo/src/a_b.py and /other/c.py", cwd="/repo") == ["src/a_b.py", "/other/c.py"]


def test_only_head_and_tail_of_a_long_text_are_looked_at_and_so_many_names_kept() -> None:
    text = "first_name\n" + "word " * HEAD + "middle_name " + "word " * TAIL + "last_name"
    assert names_in(text) == ["first_name", "last_name"]
    assert names_in("x" * (HEAD - 9) + " whole_name " + "word " * TAIL) == [], "the cut goes through the name"
    assert len(names_in(" ".join(f"name_{number}" for number in range(2 * NAMES_KEPT)))) == NAMES_KEPT


def test_a_secret_in_an_output_is_none_of_its_names() -> None:
    script = Script()
    script.run("cat .env", "DB_HOST=db_main\nDB_PASSWORD=Zq8rT5vW2xK9\nexport OLD_KEY_ID=other_name")
    builder = CardBuilder("abcd", mask=mask)
    for entry in script.entries:
        builder.feed(entry)
    said = [fact.text for card in builder.take() for fact in card.facts if fact.kind == "names"]
    assert "DB_HOST" in said[-1] and "other_name" in said[-1]
    assert "Zq8rT5vW2xK9" not in " ".join(said)


def test_every_name_of_a_recorded_session_stands_in_its_entry(tmp_path: Path) -> None:
    count = 0
    with open_store(home=str(tmp_path), config=config.defaults()) as store:
        for found in find_below(str(DEMO)):
            stored = ingest(store, found.harness, found.source, final=True).stored if found.harness else None
            if stored is None:
                continue
            rows = list(store.archive.entries(stored.no, 0, stored.last_seq, "replaced_by IS NULL"))
            texts = {entry.seq: entry.text for entry in read_entries(store, stored, rows, lost=True)}
            for fact in (fact for card in cards_of(store, stored) for fact in card.facts if fact.kind == "names"):
                for name in fact.text.split(" "):
                    count += 1
                    assert name in texts[fact.seqs[0]]
    assert count > 100
