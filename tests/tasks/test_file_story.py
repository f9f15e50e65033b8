"""What is known of one file, and whether it still is what it was."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.model import Note
from obsmem.memory.file_story import Change, Shown, absolute, replay, sayings_about, shown_text
from obsmem.store.archive import StoredSession
from obsmem.tasks.file_story import FileStory, tell_file
from obsmem.tasks.here import Here
from obsmem.tasks.store import Store
from obsmem.tasks.words import index_all
from tests.tasks.talk import Talk, fresh, opened, session_of

TEXT = "one\ntwo\nthree\n"


def use(talk: Talk, tool: str, values: dict[str, Any], output: str = "done", *, failed: bool = False) -> None:
    """A tool call with its result."""
    call = f"toolu_{talk.number}"
    block = {"type": "tool_use", "id": call, "name": tool, "input": values}
    talk._add("assistant", message={"id": f"msg_{talk.number}", "role": "assistant", "model": "m", "content": [block]})
    result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": failed}
    talk._add("user", message={"role": "user", "content": [result]})


def written(folder: Path) -> Talk:
    """A session in which a file is written and changed."""
    talk = Talk(cwd=str(folder))
    talk.user("Please write src/count.py, and never put a four into count.py.")
    use(talk, "Write", {"file_path": str(folder / "src/count.py"), "content": TEXT})
    use(talk, "Edit", {"file_path": str(folder / "src/count.py"), "old_string": "two", "new_string": "2"})
    talk.agent("I decided to write the digit in count.py because the parser wants it.")
    return talk


def story_of(store: Store, stored: StoredSession, path: str, cwd: str = "") -> FileStory:
    return tell_file(store, path, Here(cwd or stored.session.cwd, stored.session.workspace))


def test_a_file_is_compared_with_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "src" / "count.py"
    file.parent.mkdir()
    with opened() as store:
        stored = session_of(store, written(tmp_path).write(tmp_path / "t"))
        for name in ("src/count.py", "count.py", str(file), "./src/../src/count.py"):
            assert story_of(store, stored, name).path == str(file)
        assert story_of(store, stored, "src/count.py").disk == "gone"
        file.write_text(TEXT.replace("two", "2"), encoding="utf-8")
        story = story_of(store, stored, "src/count.py")
        assert story.disk == "equal" and story.content_id.startswith(stored.session.handle)
        assert [touch.what for touch in story.touches] == ["wrote", "edited"]
        assert story.last("wrote", "edited") == story.touches[-1]
        file.write_bytes(TEXT.replace("two", "2").replace("\n", "\r\n").encode())
        assert story_of(store, stored, "count.py").disk == "equal", "only its line ends differ"
        file.write_text(TEXT, encoding="utf-8")
        assert story_of(store, stored, "count.py").disk == "changed"


def test_who_said_what_about_it(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, written(tmp_path).write(tmp_path / "t"))
        said = story_of(store, stored, "count.py").sayings
        assert ("user", True) in {(one.who, "never put a four" in one.text) for one in said}
        assert [one.at for one in said] == sorted(one.at for one in said)


def test_nothing_is_claimed_of_a_text_that_is_not_known_whole(tmp_path: Path) -> None:
    talk = Talk(cwd=str(tmp_path))
    talk.user("Look at a.py and change it.")
    use(talk, "Read", {"file_path": str(tmp_path / "a.py"), "offset": 1, "limit": 1}, "1\tone")
    use(talk, "Edit", {"file_path": str(tmp_path / "a.py"), "old_string": "one", "new_string": "1"})
    file = tmp_path / "a.py"
    file.write_text("1", encoding="utf-8")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "t"))
        story = story_of(store, stored, "a.py")
        assert (story.disk, story.content_id, story.sha256) == ("changed", "", ""), "it is from now, the talk is old"
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert story_of(store, stored, "a.py").disk == "untouched"


@pytest.mark.parametrize(
    ("form", "around"),
    [("{:>6}→{}", "{}\n\n<system-reminder>\nbe careful\n</system-reminder>"), ("{}\t{}", "{}"),
     ("{}: {}", "<path>/x</path>\n<type>file</type>\n<content>\n{}\n\n(End of file - total 3 lines)\n</content>"),
     ("{:05}| {}", "<file>\n{}\n</file>")],
)  # fmt: skip
def test_a_file_is_compared_with_what_was_read_of_it_whole(form: str, around: str, tmp_path: Path) -> None:
    lines = ["import os", "", "1→ \ttwo: | x"]
    shown = around.replace("{}", "\n".join(form.format(number, line) for number, line in enumerate(lines, 1)))
    file, text = tmp_path / "a.py", "\n".join(lines)
    talk = Talk(cwd=str(tmp_path))
    talk.user("Look at a.py.")
    use(talk, "Read", {"file_path": str(file)}, shown)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "t"))
        gone = story_of(store, stored, "a.py")
        assert (gone.disk, gone.sha256) == ("gone", "") and gone.content_id, "nobody said whether its last line ends"
        for data in (text, text + "\n", text.replace("\n", "\r\n")):
            file.write_bytes(data.encode())
            story = story_of(store, stored, "a.py")
            assert (story.disk, story.sha256) == ("equal", hashlib.sha256(data.encode()).hexdigest())
        file.write_text(text + " ", encoding="utf-8")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert story_of(store, stored, "a.py").disk == "changed", "its bytes say so, whatever its time says"
        use(talk, "Edit", {"file_path": str(file), "old_string": "import os", "new_string": "import re"})
        session_of(store, talk.write(tmp_path / "t"))
        file.write_text(text.replace("os", "re") + "\n", encoding="utf-8")
        assert story_of(store, fresh(store, stored), "a.py").disk == "equal"


def test_part_of_a_file_is_compared_but_never_said_to_have_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    talk = Talk(cwd=str(tmp_path))
    talk.user("Look at the beginning of a.py.")
    use(talk, "Read", {"file_path": str(file), "limit": 2}, "1\tone\n2\ttwo")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "t"))
        file.write_text("one\ntwo\n", encoding="utf-8")
        assert story_of(store, stored, "a.py").disk == "equal", "these bytes were compared"
        file.write_text("one\ntwo\nthree\n", encoding="utf-8")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        story = story_of(store, stored, "a.py")
        assert (story.disk, story.content_id, story.sha256) == ("untouched", "", "")


def test_what_was_written_says_where_the_last_line_ends(tmp_path: Path) -> None:
    talk = written(tmp_path)
    numbered = "\n".join(f"{n}\t{line}" for n, line in enumerate(TEXT.replace("two", "2").rstrip("\n").split("\n"), 1))
    use(talk, "Read", {"file_path": str(tmp_path / "src/count.py")}, numbered)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "t"))
        digest = hashlib.sha256(TEXT.replace("two", "2").encode()).hexdigest()
        assert story_of(store, stored, "src/count.py").sha256 == digest


@pytest.mark.parametrize(
    ("call", "result", "shown"),
    [
        ("Read\nfile_path: a", "1\tx\n2\ty", Shown("x\ny", True)),
        ("Read\nfile_path: a", "1\tx\n\n\nfile.filePath: /w/a", Shown("x", True)),
        ("Read\nfile_path: a\nlimit: 9", "1\tx\n2\ty", Shown("x\ny", False)),
        ("Read", "2\tx\n3\ty", None),
        ("Read", "1\tx\n3\ty", Shown("x", False)),
        ("Read", "1\tx\n(File has more lines. Use 'offset' to go on)", Shown("x", False)),
        ("Read", "".join(f"{n}\tx\n" for n in range(1, 2001)), Shown("\n".join(["x"] * 2000), False)),
        ("Read", "Error: there is no such file", None),
        ("Read", "", None),
    ],
)  # fmt: skip
def test_what_a_tool_showed_of_a_file(call: str, result: str, shown: Shown | None) -> None:
    assert shown_text(call, result) == shown


def test_a_change_that_failed_is_not_part_of_the_text(tmp_path: Path) -> None:
    talk = written(tmp_path)
    path = str(tmp_path / "src/count.py")
    use(talk, "Edit", {"file_path": path, "old_string": "one", "new_string": "1"}, "not found", failed=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/count.py").write_text(TEXT.replace("two", "2"), encoding="utf-8")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "t"))
        assert story_of(store, stored, "count.py").disk == "equal"


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    talk = Talk(cwd=str(tmp_path))
    talk.user("Write both.")
    for folder in ("a", "b"):
        use(talk, "Write", {"file_path": str(tmp_path / folder / "x.py"), "content": folder})
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "t"))
        with pytest.raises(UsageError, match="2 paths"):
            story_of(store, stored, "x.py")
        assert story_of(store, stored, "b/x.py").path.endswith("/b/x.py")
        assert story_of(store, stored, "x.py", str(tmp_path / "a")).path.endswith("/a/x.py"), "the one that stands here"
        with pytest.raises(NotFound, match="search"):
            story_of(store, stored, "y.py")
        with pytest.raises(NotFound):
            tell_file(store, "a/x.py", Here(str(tmp_path), "/another/workspace"))


def test_a_path_is_the_same_however_it_is_written() -> None:
    assert absolute("src/a.py", "/w/shop") == absolute("/w/shop/./src/a.py", "") == "/w/shop/src/a.py"
    assert absolute("src\\a.py", "C:\\w") == absolute("C:\\w\\src\\a.py", "") == "C:/w/src/a.py"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([Change(True, "ab"), Change(False, "B", "b")], "aB"),
        ([Change(True, "bb"), Change(False, "B", "b")], None),
        ([Change(True, "ab"), Change(False, "more")], None),
        ([Change(True, "ab"), Change(False, "B", "x"), Change(True, "new")], "new"),
        ([Change(False, "B", "b")], None),
    ],
)
def test_changes_are_replayed_only_where_they_fit(changes: list[Change], text: str | None) -> None:
    assert replay(changes) == text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("Look at config.py.", True),
        ("Look at `src/config.py`, please.", True),
        ("./src/config.py:3 is wrong", True),
        ("/w/src/config.py", True),
        (r"src\config.py", True),
        ("docs/config.py is another one", False),
        ("/v/src/config.py is elsewhere", False),
        ("../config.py", False),
        ("my-config.py and config.pyc", False),
    ],
)
def test_a_file_is_named_by_an_end_of_its_own_path(words: str, named: bool) -> None:
    note = Note("0" * 12, words, 1, "low", (), "user", "verified", 1)
    assert bool(sayings_about("/w/src/config.py", (), [note])) is named


def test_sessions_that_were_not_looked_into_are_said(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, written(tmp_path).write(tmp_path / "t"))
        store.index.reset(stored.no, "cards")
    with opened(readonly=True) as store, pytest.raises(NotFound, match="1 were not"):
        story_of(store, stored, "src/count.py")
    with opened() as store:
        index_all(store, float("inf"))
    with opened(readonly=True) as store:
        assert len(story_of(store, stored, "src/count.py").touches) == 2
