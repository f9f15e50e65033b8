"""Notes, reflections and drops by rule: what they say, what they cite, what they leave out."""

from __future__ import annotations

from typing import Any

import pytest

from obsmem.core.errors import WorkerError
from obsmem.core.ids import content_id
from obsmem.core.model import Card, Memory, Note, Reflection, Relevance, Reply, Request
from obsmem.memory import check, observe
from obsmem.memory.cards import CardBuilder
from obsmem.memory.chunk import select
from obsmem.workers import extractive
from tests.memory.card_entries import Script, chunk_of
from tests.memory.test_cards import real_entries


def cards_of(script: Script) -> tuple[Card, ...]:
    builder = CardBuilder("abcd")
    for entry in script.entries:
        builder.feed(entry)
    return tuple(builder.take())


def ask(script: Script, before: Script | None = None) -> Reply:
    state = cards_of(before) if before else ()
    return extractive.ask(Request("observe", "abcd", Memory(), chunk_of(script.entries), cards_of(script), state))


def texts(script: Script, before: Script | None = None) -> list[str]:
    return [item["text"] for item in ask(script, before).items]


@pytest.mark.parametrize(
    ("words", "text", "relevance"),
    [
        ("Never touch the public API.", 'User forbade: "Never touch the public API."', "critical"),
        ("Use uv, not pip.", 'User prefers: "Use uv, not pip."', "critical"),
        ("no, that's the wrong file", 'User corrected: "no, that\'s the wrong file"', "critical"),
        ("let's go with option 2", 'User decided: "let\'s go with option 2"', "high"),
        ("Add a test for\nthe parser", 'User asked: "Add a test for the parser"', "high"),
        ("why is it slow?", 'User asked: "why is it slow?"', "medium"),
        ('say "hello"', 'User said: “say "hello"”', "medium"),
    ],
)
def test_the_users_words_are_quoted(words: str, text: str, relevance: Relevance) -> None:
    script = Script()
    script.user(words)
    (item,) = ask(script).items
    assert (item["text"], item["relevance"], item["entry_ids"], item["at"]) == (text, relevance, ["abcd.0"], 60_000)


@pytest.mark.parametrize("words", ["ok thanks", "great!", "continue", "谢谢", "  "])
def test_an_acknowledgement_is_no_note(words: str) -> None:
    script = Script()
    script.user(words)
    assert texts(script) == []


def test_a_yes_is_a_note_with_the_question_that_it_answers() -> None:
    script = Script()
    script.agent("The lock is held across the call, which can hang. Shall I move it into the store?")
    script.user("yes please")
    assert 'User answered "yes please" to "Shall I move it into the store?"' in texts(script)
    assert not any(text.startswith("Agent asked") for text in texts(script))


def test_long_words_keep_their_lasting_order_in_a_note_of_its_own() -> None:
    script = Script()
    script.user(
        "Please review this plan.\n" + "It has many steps and more. " * 30 + "\nNever change src/api.py.\n" + "x " * 900
    )
    long, order = texts(script)
    assert len(long) <= 640
    assert "[…]" in long
    assert order == 'User forbade: "Never change src/api.py."'


def test_edits_of_one_file_in_one_turn_are_one_note_that_cites_them_all() -> None:
    script = Script()
    script.user("go on with the loader")
    script.edit("src/a.py", "", "def load():\n    pass\n")
    script.edit("src/a.py", "", "def save():\n    pass\n")
    script.edit("src/b.py", "a", "b")
    script.edit("src/c.py", "a", "b")
    items = [item for item in ask(script).items if item["text"].startswith("Edited")]
    assert [item["text"] for item in items] == ["Edited src/a.py: load, save", "Edited src/b.py, src/c.py"]
    assert items[0]["entry_ids"] == ["abcd.1", "abcd.2", "abcd.3", "abcd.4"]


def test_a_failure_quotes_the_test_and_the_line_that_decides() -> None:
    script = Script()
    output = "E   assert 1 == 2\nFAILED tests/test_a.py::test_b - x\n1 failed in 0.1s"
    script.run("pytest -q", output, ok=False, exit_code=1)
    (item,) = ask(script).items
    assert item["text"] == '`pytest -q` failed in tests/test_a.py::test_b: "E assert 1 == 2"'
    assert item["relevance"] == "high"
    assert item["entry_ids"] == ["abcd.0", "abcd.1"]


def test_a_fix_in_the_same_chunk_quotes_what_had_failed() -> None:
    script = Script()
    script.run("make", "a.c:1:1: error: no", ok=False)
    script.run("make", "")
    (item,) = ask(script).items
    assert item["text"] == '`make` passed, was failing ("a.c:1:1: error: no")'
    assert len(item["entry_ids"]) == 4


def test_a_fix_of_an_earlier_failure_says_so_and_cites_only_the_chunk() -> None:
    before, script = Script(), Script()
    before.run("make", "a.c:1:1: error: no", ok=False)
    script.run("make", "")
    (item,) = ask(script, before).items
    assert item["text"] == "`make` passed, was failing before"
    assert item["entry_ids"] == ["abcd.0", "abcd.1"]


def test_small_commands_share_a_note_and_noise_has_none() -> None:
    script = Script()
    script.run("ls -la", "a b")
    script.run("git status", "clean")
    script.run("docker compose up -d", "started")
    script.run("git push", "pushed")
    assert texts(script) == ["Ran `docker compose up -d`, `git push`"]


def test_a_commit_is_told_by_hash_branch_and_message() -> None:
    script = Script()
    script.run('git commit -m "Add it"', "[main 3f2a9c1] Add it\n 1 file changed")
    assert texts(script) == ['Committed 3f2a9c1 on main: "Add it"']


def test_todo_notes_tell_what_changed() -> None:
    before, script = Script(), Script()
    before.todo(("1", "open", "parse input"), ("2", "open", "render"))
    script.todo(("1", "done", "parse input"), ("2", "doing", "render"), ("3", "open", "ship it"))
    assert texts(script, before) == ['To-do done: "parse input"; open: "ship it"']


def test_a_refusal_is_told_with_the_words_that_came_with_it() -> None:
    script = Script()
    call = script.call(*[], text="push")
    script.result(call, "The user doesn't want to proceed. The user said:\nnot on main, use a branch", ok=False)
    script.user("not on main, use a branch")
    assert texts(script) == ['User stopped the agent: "not on main, use a branch"']


def test_announcements_and_code_blocks_are_left_out_and_reasons_kept() -> None:
    script = Script()
    script.agent("Let me look at the parser:")
    script.agent(
        "## Done\n\nThe parser **accepts** empty input now.\n```\ncode()\n```\n"
        + "More words on what was done here. " * 8
        + "\nI'll keep the old name because plugins import it."
    )
    first, *_ = texts(script)
    assert first.startswith("Agent: Done The parser accepts empty input now. […] More words")
    assert "because plugins import it" in " ".join(texts(script))


def test_files_read_are_one_low_note_without_what_was_read_before_or_changed() -> None:
    before, script = Script(), Script()
    before.read("a.py")
    script.read("a.py")
    script.read("b.py")
    script.read("c.py")
    script.edit("c.py", "", "def f():\n    pass\n")
    assert "Read b.py" in texts(script, before)


def test_a_chunk_that_begins_after_the_call_cites_only_what_it_shows() -> None:
    script = Script()
    script.run("pytest -q", "2 failed, 1 passed in 0.2s", ok=False)
    cards = cards_of(script)
    chunk = chunk_of(script.entries[1:])
    (item,) = extractive.ask(Request("observe", "abcd", Memory(), chunk, cards)).items
    assert item["entry_ids"] == ["abcd.1"]


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(WorkerError, match="knows no task"):
        extractive.ask(Request("dance", "abcd", Memory()))


@pytest.mark.parametrize("name", ["839b35f7", "79e9becd", "0276a600"])
def test_every_note_of_a_recorded_session_is_one_grounded_line_from_its_chunk(tmp_path: Any, name: str) -> None:
    entries = real_entries(tmp_path, name)
    builder, state, fed = CardBuilder("abcd"), [], 0
    rest = [entry for entry in entries if entry.observable]
    notes = verified = 0
    while rest:
        chunk = select(rest, "abcd", 10_000)
        assert chunk is not None
        for entry in entries[fed : chunk.last_seq + 1]:
            builder.feed(entry)
        fed = chunk.last_seq + 1
        cards = builder.take()
        reply = extractive.ask(Request("observe", "abcd", Memory(), chunk, tuple(cards), tuple(state)))
        state += cards
        assert len(reply.items) <= max(15, chunk.tokens // 250) + 10
        for item in reply.items:
            assert item["entry_ids"]
            assert set(item["entry_ids"]) <= set(chunk.shown)
            assert "\n" not in item["text"]
            assert len(item["text"]) <= 900
            grounding, _ = check.ground(item["text"], [chunk.shown[name] for name in item["entry_ids"]])
            notes += 1
            verified += grounding == "verified"
        rest = [entry for entry in rest if entry.seq > chunk.last_seq]
    assert notes > 25
    assert verified / notes > 0.97


def note(text: str, relevance: Relevance = "medium", evidence: Any = "tool", seq: int = 1) -> Note:
    ids = (f"abcd.{seq}",)
    return Note(content_id(text, ids), text, seq, relevance, ids, evidence, "verified", 10)


def reflect(
    notes: list[Note], script: Script | None = None, known: tuple[Reflection, ...] = ()
) -> list[dict[str, Any]]:
    state = cards_of(script) if script else ()
    request = Request("reflect", "abcd", Memory(tuple(notes), known), state=state)
    return [dict(item) for item in extractive.ask(request).items]


def test_a_standing_order_is_reflected_in_its_words_once() -> None:
    script = Script()
    script.user("Never touch src/api.py.")
    said = note('User forbade: "Never touch src/api.py."', "critical", "user")
    (proposal,) = reflect([said, note("Read b.py")], script)
    assert proposal == {
        "text": 'Standing order of the user: "Never touch src/api.py."',
        "note_ids": [said.id],
    }
    known = Reflection("1", proposal["text"], (said.id,), 10)
    assert reflect([said], script, (known,)) == []


def test_a_superseded_order_is_not_reflected() -> None:
    script = Script()
    script.user("Always use `pip`.")
    script.user("forget what I said about `pip`")
    assert reflect([note('User prefers: "Always use `pip`."', "critical", "user")], script) == []


def test_a_file_that_changed_often_is_one_reflection() -> None:
    one, two = note("Edited src/a.py: load, save", seq=1), note("Edited src/a.py: merge", seq=2)
    (proposal,) = reflect([one, two, note("Edited src/b.py: x", seq=3)])
    assert proposal["text"] == "src/a.py was changed several times and holds merge, load, save"
    assert proposal["note_ids"] == [one.id, two.id]


def test_a_command_is_reflected_as_its_last_run_ended() -> None:
    failed, passed = note('`pytest -q` failed: "E   x"', "high", seq=1), note('`pytest -q` passed: "3 passed"', seq=2)
    (proposal,) = reflect([failed, passed])
    assert proposal["text"] == '`pytest -q` passes as of its last run: "3 passed"'
    assert proposal["note_ids"] == [passed.id]


def test_commits_are_reflected_together_and_not_again() -> None:
    made = [note(f'Committed 3f2a9c{n} on main: "Add {n}"', "high", seq=n) for n in range(3)]
    (proposal,) = reflect(made)
    assert proposal["text"].startswith('Finished and committed: 3f2a9c0 "Add 0"; 3f2a9c1 "Add 1"')
    known = Reflection("1", proposal["text"], tuple(proposal["note_ids"]), 10)
    assert reflect(made, known=(known,)) == []


def drop(notes: list[Note], known: tuple[Reflection, ...] = (), limit: int = 10) -> list[str]:
    request = Request("drop", "abcd", Memory(tuple(notes), known), limit=limit)
    return [item["note_id"] for item in extractive.ask(request).items]


def test_what_is_overtaken_or_cheap_may_go_and_nothing_critical_or_of_the_user() -> None:
    old = note('`pytest -q` failed: "E x"', "high", seq=1)
    new = note('`pytest -q` passed: "3 passed"', seq=2)
    cheap = note("Read a.py, b.py", "low", seq=3)
    critical = note('`make` failed: "boom"', "critical", seq=4)
    again = note("`make` passed", seq=5)
    user = note('User said: "hm"', "low", "user", seq=6)
    assert drop([old, new, cheap, critical, again, user]) == [old.id, cheap.id]
    assert drop([old, new, cheap], limit=1) == [old.id]
    assert drop([old, new, cheap], limit=0) == []


def test_a_note_that_a_reflection_keeps_whole_may_go_and_one_that_it_shortens_stays() -> None:
    whole = note("Edited src/a.py: load_all, save_all", seq=1)
    more = note("Edited src/a.py: merge_all, extra_name", seq=2)
    known = Reflection("1", "src/a.py was changed and holds load_all, save_all, merge_all", (whole.id, more.id), 10)
    assert drop([whole, more], (known,)) == [whole.id]


def test_the_users_words_may_go_only_when_a_reflection_quotes_them() -> None:
    said = note('User decided: "go with rows"', "high", "user")
    assert drop([said]) == []
    assert drop([said], (Reflection("1", 'The user decided: "go with rows"', (said.id,), 9),)) == [said.id]
    assert drop([said], (Reflection("1", "The user wants rows", (said.id,), 9),)) == []


def test_the_pass_accepts_every_proposal() -> None:
    script = Script()
    script.user("Fix src/a.py, but never touch `core`.")
    script.edit("src/a.py", "", "def load():\n    pass\n")
    script.run("pytest -q", "1 failed in 0.1s", ok=False)
    script.agent("The loader is in place, one test still fails on empty input.")
    reply = ask(script)
    accepted = observe.accept(reply, chunk_of(script.entries), (), 10**12)
    assert len(accepted.notes) == len(reply.items)
    assert {item.grounding for item in accepted.notes} == {"verified"}
