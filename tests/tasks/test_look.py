"""Looking at the record itself: pieces join without a gap, calls are found by their id, pages do not shift."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.ids import entry_id
from obsmem.core.tokens import estimate
from obsmem.tasks.here import Here
from obsmem.tasks.look import (
    PIECE,
    PIECE_TOKENS,
    around,
    find_tool_call,
    read_range,
    session_lines,
    timeline,
    timeline_here,
)
from obsmem.tasks.pins import pin, write_note
from tests.tasks.talk import FORK, Talk, entries, fresh, opened, session_of, turns, watch

KEY = "ghp_" + "a1B2c3D4e5" * 4  # in the shape of a token


def test_pieces_of_an_entry_join_to_its_words(tmp_path: Path) -> None:
    talk = turns(1)
    words = "".join(f"Line {number} – ünïcode 🎈\n" for number in range(2_000))
    talk.run("cat big.txt", words)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        (big,) = (one for one in entries(store, stored) if len(one.text) > PIECE)
        name = entry_id(stored.session.handle, big.seq)
        first = read_range(store, name)
        assert first.start == 0 < first.end <= PIECE and first.total == len(big.text)
        text, end = "", 0
        while end < first.total:
            piece = read_range(store, name, end, 7_001)
            assert piece.start == end
            text, end = text + piece.text, piece.end
        assert text == big.text and text.rstrip() == words.rstrip()
        with pytest.raises(UsageError, match=str(first.total)):
            read_range(store, name, first.total)
        with pytest.raises(NotFound):
            read_range(store, f"{stored.session.handle}.999")


def test_secrets_are_masked_in_every_piece(tmp_path: Path) -> None:
    talk = Talk()
    talk.user(f"My token is {KEY}, do not use it.")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        name = f"{stored.session.handle}.0"
        whole = read_range(store, name).text
        assert KEY not in whole and whole.startswith("My token is ")
        pieces = "".join(read_range(store, name, start, 5).text for start in range(0, len(whole), 5))
        assert pieces == whole
        assert KEY not in str(around(store, name, 2))


def test_what_stands_around_an_entry_comes_in_order(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        handle = stored.session.handle
        found = around(store, f"{handle}.5", 2)
        assert [one.id for one in found] == [f"{handle}.{seq}" for seq in range(3, 8)]
        assert [one.id for one in found if not one.around] == [f"{handle}.5"]


def test_a_call_is_found_by_its_id_with_what_it_gave(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        calls = [one for one in entries(store, stored) if one.kind == "tool_call"]
        for call in calls:
            names = find_tool_call(store, call.call_id)
            found = [read_range(store, name) for name in names]
            assert [piece.kind for piece in found] == ["tool_call", "tool_result"]
            assert names[0] == entry_id(stored.session.handle, call.seq)
        with pytest.raises(UsageError, match=calls[0].call_id):
            find_tool_call(store, "toolu_")
        with pytest.raises(NotFound, match="timeline"):
            find_tool_call(store, "toolu_of_nobody")
        with pytest.raises(UsageError):
            find_tool_call(store, "t")


def test_parallel_calls_keep_their_own_results(tmp_path: Path) -> None:
    talk = turns(1)
    uses = [{"type": "tool_use", "id": f"par_{n}", "name": "Bash", "input": {"command": f"echo {n}"}} for n in "ab"]
    talk._add("assistant", message={"id": "msg_p", "role": "assistant", "model": "m", "content": uses})
    for name in "ba":
        result = {"type": "tool_result", "tool_use_id": f"par_{name}", "content": f"said {name}", "is_error": False}
        talk._add("user", message={"role": "user", "content": [result]})
    talk._add(
        "assistant",
        message={"id": "msg_q", "role": "assistant", "model": "m",
                 "content": [{"type": "tool_use", "id": "par_lost", "name": "Bash", "input": {"command": "sleep"}}]},
    )  # fmt: skip
    with opened() as store:
        session_of(store, talk.write(tmp_path))
        for name in "ab":
            _, result_id = find_tool_call(store, f"par_{name}")
            assert read_range(store, result_id).text.startswith(f"said {name}")
        assert len(find_tool_call(store, "par_lost")) == 1, "it never gave anything"


def test_a_copy_in_a_fork_is_not_a_second_call(tmp_path: Path) -> None:
    parent = turns(2)
    with opened() as store:
        stored = session_of(store, parent.write(tmp_path))
        call = next(one.call_id for one in entries(store, stored) if one.kind == "tool_call")
        session_of(store, parent.fork(FORK).write(tmp_path, f"{FORK}.jsonl"))
        assert all(name.startswith(stored.session.handle + ".") for name in find_tool_call(store, call))


def test_pages_of_a_timeline_do_not_shift_while_entries_arrive(tmp_path: Path) -> None:
    talk = turns(4)
    talk.compact()
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        whole = session_lines(store, stored)
        assert [line.what for line in whole[:3]] == ["said", "ran", "concluded"]
        assert whole[-1].what == "compacted"
        assert "`pytest tests/test_1.py` → ok" in {line.text.partition(":")[0] for line in whole}
        seen, after = [], ""
        for _ in range(3):
            page = timeline(store, fresh(store, stored), after, 4)
            seen += page.lines
            after = page.more
            talk.turn(9)
            session_of(store, talk.write(tmp_path))
        assert [line.id for line in seen] == [line.id for line in whole[:12]]
        with pytest.raises(UsageError):
            timeline(store, stored, "nonsense", 4)


def test_the_workspace_is_told_from_its_newest_end(tmp_path: Path) -> None:
    with opened() as store:
        one = session_of(store, turns(3).write(tmp_path))
        other = session_of(store, turns(2, FORK).write(tmp_path, f"{FORK}.jsonl"))
        workspace = one.session.workspace
        expected = {line.id for stored in (one, other) for line in session_lines(store, stored)}
        seen, after = [], ""
        while True:
            page = timeline_here(store, workspace, after, 4)
            seen += page.lines
            after = page.more
            if not after:
                break
        assert len(seen) == len(expected) and {line.id for line in seen} == expected
        assert [line.at for line in seen] == sorted((line.at for line in seen), reverse=True)
        assert timeline_here(store, "/another").lines == ()


def test_notes_by_hand_and_pins_stand_at_their_time(tmp_path: Path) -> None:
    talk = turns(3)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        watch(store, stored)
        workspace = stored.session.workspace
        note = write_note(store, "The harbour is closed on Sundays.", Here("/w/shop", workspace, fresh(store, stored)))
        mine = pin(store, "Never sail by night.", "session", Here("/w/shop", workspace, stored))
        agents = pin(store, "Tests take a minute.", "session", Here("/w/shop", workspace, stored), by="agent")
        nobodys = pin(store, "Everywhere the same.", "workspace", Here("/w/shop", workspace))
        first = len(talk.records)
        talk.turn(8)
        for record in talk.records[first:]:
            record["timestamp"] = "2099-01-01T00:00:00.000Z"
        session_of(store, talk.write(tmp_path))
        stored = fresh(store, stored)
        seen, after = [], ""
        while True:
            page = timeline(store, stored, after, 2)
            seen += page.lines
            after = page.more
            if not after:
                break
        assert seen == session_lines(store, stored) and len({line.id for line in seen}) == len(seen)
        told = [(line.who, line.what, line.id) for line in seen if line.what in ("noted", "pinned")]
        assert told == [("user", "noted", note.id), ("user", "pinned", mine.id), ("agent", "pinned", agents.id)]
        places = [line.what for line in seen]
        last = len(places) - 1 - places[::-1].index("said")
        assert places.index("noted") < last < len(places) - 1, "before what was said later"
        here = [line.id for line in timeline_here(store, workspace, "", 100).lines]
        assert set(here) == {line.id for line in seen} | {nobodys.id}
        paged, after = [], ""
        while True:
            page = timeline_here(store, workspace, after, 3)
            paged += [line.id for line in page.lines]
            after = page.more
            if not after:
                break
        assert paged == here


def test_a_piece_costs_no_more_than_an_answer_may(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("数据库连接" * 3_000)
    talk.run("xxd key", "0f9e3b7a" * 3_000)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        for entry in entries(store, stored):
            name = entry_id(stored.session.handle, entry.seq)
            piece = read_range(store, name)
            assert estimate(piece.text) <= PIECE_TOKENS
            assert 0 < piece.end <= PIECE and piece.text == entry.text[: piece.end]
            assert read_range(store, name, 0, piece.total).text == entry.text, "who asks for all gets all"


def test_a_whole_call_id_elsewhere_is_meant_before_part_of_one_here(tmp_path: Path) -> None:
    names = {"/w/there": "toolu_zz", "/w/here": "toolu_zz9"}
    with opened() as store:
        for number, (cwd, call) in enumerate(names.items()):
            talk = Talk(f"5e551011-0000-4000-8000-0000000000{number:02d}", cwd)
            talk.user("Look.")
            talk.run("ls", "one")
            path = talk.write(tmp_path, f"{talk.session}.jsonl")
            made = f"toolu_{talk.session[-2:]}1".encode()
            path.write_bytes(path.read_bytes().replace(made, call.encode()))
            stored = session_of(store, path)
        for call in names.values():
            ids = find_tool_call(store, call, stored.session.workspace)
            owner = store.archive.by_handle(ids[0].partition(".")[0])
            assert len(ids) == 2 and names[owner.session.cwd] == call


def test_around_keeps_to_the_live_path(tmp_path: Path) -> None:
    talk = turns(2)
    kept = talk.head
    for number in range(40):
        talk.user(f"a dead end {number}")
    talk.head = kept
    talk.user("alive again")
    talk.agent("alive words")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        known = entries(store, stored)
        alive = [one.seq for one in known if one.active]
        again = next(one.seq for one in known if one.text == "alive again")
        found = around(store, entry_id(stored.session.handle, again), 2)
        place = alive.index(again)
        assert [one.entry.seq for one in found if one.entry] == alive[place - 2 : place + 3]
        dead = next(one.seq for one in known if not one.active)
        assert any(not one.entry.active for one in around(store, entry_id(stored.session.handle, dead), 2) if one.entry)
