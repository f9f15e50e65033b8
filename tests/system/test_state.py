"""State files survive whatever stands in them; the off switches are found from anywhere below."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.system.state import State, read_state, switched_off, write_state


def values(state: State) -> tuple[object, ...]:
    return (state.read, round(state.rate, 5), state.after, state.off)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    state = State(12345678901, 0.25, 321, True)
    write_state(str(tmp_path / "deep" / "er"), state)
    assert values(read_state(str(tmp_path / "deep" / "er"))) == values(state)


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 50, b"read x\nrate y\n", b"read 5", b"rate 0.5\nread", b"\xff\xfe", b"read 1\n" * 5000]
)
def test_a_broken_state_file_gives_a_valid_state(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(content)
    state = read_state(str(tmp_path))
    assert state.read >= 0
    assert state.rate > 0
    assert state.after > 0


def test_without_a_state_file_there_are_defaults(tmp_path: Path) -> None:
    assert values(read_state(str(tmp_path))) == values(State())


def test_each_switch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, deep = tmp_path / "memory-home", tmp_path / "project" / "a" / "b"
    home.mkdir()
    deep.mkdir(parents=True)
    assert switched_off(str(home), str(deep)) == ""
    (tmp_path / "project" / ".observational-memory-off").touch()
    assert switched_off(str(home), str(deep)) == "project"
    assert switched_off(str(home), str(tmp_path)) == ""
    assert switched_off(str(home), "") == ""
    (home / "off").touch()
    assert switched_off(str(home), str(deep)) == "machine"
    for text, off in (("1", True), ("yes", True), ("0", False), ("false", False), (" no ", False), ("", False)):
        monkeypatch.setenv("OBSERVATIONAL_MEMORY_OFF", text)
        assert (switched_off(str(home), "") == "environment") == off
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_WORKER", "1")
    assert switched_off(str(home), str(deep)) == "worker"
