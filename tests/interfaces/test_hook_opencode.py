"""The hooks that our OpenCode plugin calls, as real processes over a database with OpenCode's tables."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.system.paths import session_folder
from tests.harnesses.test_opencode_rows import SESSION, Database
from tests.interfaces.place import Place

COMPACTING, RESUMED = "experimental.session.compacting", "session.resumed"


class Talk:
    """One OpenCode session, and what its plugin asks."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder / "place")
        self.database = Database(folder / "opencode.db", wal=True)
        self.database.talk()
        self.place.environment["OBSERVATIONAL_MEMORY_SET_OBSERVE_AFTER_TOKENS"] = "300"
        self.count = 100

    def say(self, role: str, text: str, **more: Any) -> None:
        """Append a message with one part."""
        self.count += 1
        now = int(time.time() * 1000)
        self.database.message(f"msg_{self.count}", role, now, time={"created": now}, **more)
        self.database.part(f"prt_{self.count}", f"msg_{self.count}", now, {"type": "text", "text": text})

    def compact(self, text: str = "A summary by somebody else.", **more: Any) -> str:
        """What the plugin gets before a compaction; then the compaction happens."""
        block = self.ask(COMPACTING)
        self.say("assistant", text, summary=True, mode="compaction", **more)
        return block

    def forget(self, *messages: str) -> None:
        """Delete messages, as OpenCode does at the next prompt after they were taken back."""
        with self.database.connection as connection:
            for message in messages:
                connection.execute("DELETE FROM part WHERE message_id=?", (message,))
                connection.execute("DELETE FROM message WHERE id=?", (message,))

    def ask(self, event: str, **changes: Any) -> str:
        """The block in the answer to an event; '' for none."""
        given = {"sessionID": SESSION, "directory": "/srv/ferry", "db": str(self.database.path), **changes}
        done = self.place.hook("opencode", event, given=json.dumps(given).encode())
        assert done.returncode == 0 and done.stderr == b""
        return str(json.loads(done.stdout)["context"]) if done.stdout else ""

    @property
    def folder(self) -> Path:
        return Path(session_folder(str(self.place.home), "opencode", str(self.database.path), SESSION))


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_before_a_compaction_the_whole_block_is_answered(talk: Talk) -> None:
    block = talk.ask(COMPACTING)
    assert block.startswith("<observational-memory ") and block.endswith("</observational-memory>")
    assert "second wish" in block


def test_a_session_that_goes_on_gets_the_same_bytes_until_the_next_compaction(talk: Talk) -> None:
    first = talk.compact()
    assert [talk.ask(RESUMED) for _ in range(3)] == [first] * 3
    talk.say("user", "third wish: rename it to Nightjar")
    work = ["opencode", "--transcript", str(talk.database.path), "--session", SESSION, "--cwd", "/srv/ferry"]
    assert talk.place.command("maintain", *work).returncode == 0
    assert "Nightjar" in (talk.folder / "block.next").read_text(encoding="utf-8")
    assert talk.ask(RESUMED) == first
    second = talk.compact()
    assert "Nightjar" in second and talk.ask(RESUMED) == second


def test_a_compaction_that_was_taken_back_takes_its_block_with_it(talk: Talk) -> None:
    """The one before it counts again: its block is made anew, without what was taken back, and kept from then on."""
    talk.compact()
    talk.say("user", "third wish: rename it to Nightjar")
    last = talk.count
    assert "Nightjar" in talk.compact()
    talk.forget(f"msg_{last}", f"msg_{talk.count}")
    talk.say("user", "fourth wish")
    block = talk.ask(RESUMED)
    assert "second wish" in block and "Nightjar" not in block
    assert talk.ask(RESUMED) == block


def test_a_session_that_was_never_compacted_gets_nothing(talk: Talk) -> None:
    assert talk.ask(RESUMED) == ""
    assert not list(talk.place.home.glob("*.db"))


def test_a_session_that_was_compacted_before_we_came_gets_a_block_that_is_then_kept(talk: Talk) -> None:
    talk.say("assistant", "A summary by somebody else.", summary=True)
    block = talk.ask(RESUMED)
    assert "second wish" in block and "somebody else" not in block
    talk.say("user", "third wish")
    assert talk.ask(RESUMED) == block


def test_a_compaction_that_failed_after_another_does_not_make_the_block_change_with_each_process(talk: Talk) -> None:
    talk.compact()
    talk.say("user", "third wish: rename it to Nightjar")
    talk.compact(error={"name": "APIError", "data": {"message": "gone"}})
    block = talk.ask(RESUMED)
    assert "Nightjar" in block
    talk.say("user", "fourth wish")
    assert talk.ask(RESUMED) == block


def test_a_compaction_that_failed_is_none(talk: Talk) -> None:
    talk.compact(error={"name": "APIError", "data": {"message": "gone"}})
    assert talk.ask(RESUMED) == ""


def test_a_block_that_became_the_summary_is_not_given_twice(talk: Talk) -> None:
    block = talk.ask(COMPACTING)
    talk.say("assistant", block, summary=True)
    assert talk.ask(RESUMED) == ""


def test_a_sub_agents_session_gets_nothing(talk: Talk) -> None:
    talk.database.session("ses_child", parent=SESSION)
    talk.database.message("msg_c", "assistant", 5, "ses_child", summary=True)
    talk.database.part("prt_c", "msg_c", 5, {"type": "text", "text": "Summed up."}, "ses_child")
    assert talk.ask(RESUMED, sessionID="ses_child") == ""


def test_where_the_maintainer_fails_nothing_older_than_the_compaction_is_given(talk: Talk) -> None:
    talk.compact()
    (talk.place.home / "archive.db").write_bytes(b"no database")
    assert talk.ask(COMPACTING) == ""
    assert not (talk.folder / "block.kept").exists()


@pytest.mark.parametrize("database", ["", "/nowhere/opencode.db", 5])
def test_a_database_that_is_not_there_gives_nothing(talk: Talk, database: Any) -> None:
    talk.place.environment["XDG_DATA_HOME"] = str(talk.place.folder)
    assert [talk.ask(event, db=database) for event in (COMPACTING, RESUMED)] == ["", ""]
