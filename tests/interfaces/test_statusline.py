"""The status line as a harness runs it: our line behind the user's own, never junk, and within its time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.harnesses import load
from obsmem.interfaces.hook_statusline import line, short
from obsmem.system.factsfile import Facts, read_facts, read_report, write_facts
from obsmem.system.state import State, write_state
from tests.interfaces.place import CONVERSATION, ROOT, SCRIPT, SESSION, Cursor, Place, alive, heed_interrupts, until

NAME = "claude-code"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.remember()
    return made


def payload(place: Place, **changes: Any) -> bytes:
    """A payload that the real program gave to its status line, about the session of this place."""
    path = ROOT / "fixtures" / "harnesses" / NAME / "payloads" / "statusLine.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    about = {"session_id": SESSION, "transcript_path": str(place.transcript), "cwd": str(place.project)}
    return json.dumps({**value, **about, **changes}).encode()


def window(tokens: int = 80_000, size: int = 200_000) -> dict[str, Any]:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 90,
        "cache_read_input_tokens": tokens - 200,
        "output_tokens": 100,
    }
    return {"context_window_size": size, "current_usage": usage, "used_percentage": 40, "remaining_percentage": 60}


def shown(place: Place, given: bytes, harness: str = NAME, **environment: str) -> str:
    done = place.hook(harness, "statusLine", given=given, env=environment)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def facts(place: Place, **changes: Any) -> Facts:
    known = Facts()
    for name, value in {
        "tokens": 60_000,
        "mark": 167_000,
        "size": 180_000,
        "window": 200_000,
        "notes": 34,
        "pins": 2,
        **changes,
    }.items():
        setattr(known, name, value)
    write_facts(str(place.notes_folder), known)
    return known


def own(place: Place, command: str, harness: str = NAME) -> None:
    """As an installation writes down what stood where its own command stands now."""
    record = place.home / "install" / harness / "record.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"/settings.json": {"existed": True, "own": json.dumps(command)}}), encoding="utf-8")


def test_one_line_says_how_full_the_window_is_and_what_is_kept(place: Place) -> None:
    facts(place, observed=int(time.time() * 1000) - 240_000, next_in=6_200, delivery="block 4/4 14:02")
    said = shown(place, payload(place, context_window=window()))
    assert said == (
        "memory: 47 % to compaction (80k of 167k) · 34 notes · 2 pins · observed 4 min ago, next in "
        f"{said.split('next in ')[1].split(' ')[0]} · block 4/4 14:02\n"
    )
    report = read_report(str(place.notes_folder))
    assert report is not None and (report.size, report.tokens) == (200_000, 80_000)


def test_what_the_maintainer_left_is_shown(place: Place) -> None:
    place.hook(NAME, "SessionEnd", given=place.payload("SessionEnd"))
    assert until(lambda: bool((found := read_facts(str(place.notes_folder))) and found.tokens))
    left = read_facts(str(place.notes_folder))
    assert left is not None and left.notes > 0 and left.observed > 0 and left.mark > 0
    said = shown(place, payload(place, context_window=None))
    assert f"{left.notes} notes" in said and "observed " in said


@pytest.mark.parametrize(
    "given", [b"", b"not json", b"[]", b"{}", b"\xff\xfe", b'{"session_id": 5}', b'{"context_window": 1}']
)
def test_a_broken_payload_shows_the_users_own_line_or_nothing(place: Place, given: bytes) -> None:
    assert shown(place, given) == ""
    own(place, "cat >/dev/null; printf 'mine ✓'")
    assert shown(place, given) == "mine ✓\n"


@pytest.mark.parametrize(
    "odd",
    [[], "x", {"context_window_size": "x"}, {"context_window_size": -1}, {"context_window_size": 1e300},
     {"context_window_size": 200_000, "current_usage": {"input_tokens": [1]}}, {"context_window_size": True}],
)  # fmt: skip
def test_an_odd_window_shows_what_is_known(place: Place, odd: Any) -> None:
    facts(place)
    said = shown(place, payload(place, context_window=odd, model=odd))
    assert said.startswith("memory: 35 % to compaction (60k of 167k) · 34 notes")


def test_the_users_own_line_comes_first_and_gets_the_same_payload(place: Place) -> None:
    facts(place)
    given = payload(place, context_window=window())
    own(place, f'"{sys.executable}" -c "import sys, zlib; print(zlib.crc32(sys.stdin.buffer.read()))"; echo second')
    from zlib import crc32

    first, second, ours = shown(place, given).rstrip("\n").split("\n")
    assert (first, second) == (str(crc32(given)), "second") and ours.startswith("memory: 47 %")


def test_a_line_of_the_users_that_fails_is_left_out(place: Place) -> None:
    facts(place)
    own(place, "echo half; exit 3")
    assert shown(place, payload(place)).startswith("memory: ")
    own(place, "no-such-program-at-all")
    assert shown(place, payload(place)).startswith("memory: ")


def test_a_line_of_the_users_that_hangs_is_ended_with_all_that_it_started(place: Place) -> None:
    facts(place)
    trace = place.folder / "pid"
    own(place, f"sleep 600 & echo $! > '{trace}'; sleep 600")
    began = time.monotonic()
    assert shown(place, payload(place)).startswith("memory: ")
    assert time.monotonic() - began < 5, "what the harness gives it"
    assert not alive(int(trace.read_text()))


@pytest.mark.parametrize("harness", ["claude-code", "cursor"])
def test_its_time_is_well_within_that_of_the_harness(harness: str) -> None:
    assert 0 < load(harness).STATUS_SECONDS <= {"claude-code": 5, "cursor": 2}[harness] * 0.65


def test_where_memory_is_off_only_the_users_own_line_is_shown(place: Place) -> None:
    facts(place)
    own(place, "echo mine")
    assert shown(place, payload(place), OBSERVATIONAL_MEMORY_OFF="1") == "mine\n"
    assert shown(place, payload(place, cursor_version="3.1")) == "mine\n"
    write_state(str(place.notes_folder), State(off=True))
    assert shown(place, payload(place)) == "mine\n"


def test_nothing_that_was_said_gets_into_the_line(place: Place) -> None:
    (place.notes_folder / "facts").write_bytes(b"tokens \x1b[31m5\nnotes -4\nmark 99999999999999999999\npins x\n\xff\n")
    said = shown(place, payload(place, context_window=None))
    assert said == "memory: 0 notes · not observed yet\n"


def test_a_window_that_the_maintainer_does_not_know_yet_is_shown_as_the_harness_tells_it(place: Place) -> None:
    facts(place)
    said = shown(place, payload(place, context_window=window(300_000, 1_000_000)))
    assert said.startswith("memory: 30 % of the window (300k of 1000k) · 34 notes")


def test_an_unknown_session_leaves_nothing_behind(place: Place) -> None:
    before = sorted(place.home.rglob("*"))
    said = shown(place, payload(place, session_id="x", transcript_path="/gone/x.jsonl", context_window=window()))
    assert said == "memory: 40 % of the window (80k of 200k)\n"
    assert sorted(place.home.rglob("*")) == before


def test_of_a_session_that_was_forgotten_nothing_is_kept(place: Place) -> None:
    facts(place)
    assert place.command("forget", SESSION, "--yes").returncode == 0
    before = sorted(place.notes_folder.rglob("*"))
    shown(place, payload(place, context_window=window()))
    assert sorted(place.notes_folder.rglob("*")) == before and not (place.notes_folder / "reported").exists()


def test_nothing_dear_is_loaded_without_a_line_of_the_users(place: Place) -> None:
    loaded = (
        "import sys; bare = set(sys.modules); sys.path.insert(0, sys.argv[1]); sys.argv[:] = sys.argv[2:];"
        "import observational_memory; observational_memory.main();"
        "sys.stderr.write(' '.join(sorted(set(sys.modules) - bare)))"
    )
    facts(place)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", loaded, str(ROOT), str(SCRIPT), "hook", NAME, "statusLine"],
        input=payload(place), capture_output=True, env=place.environment, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(b"memory: ")
    assert not {"json", "re", "typing", "sqlite3", "subprocess", "enum"} & set(done.stderr.decode().split())


def test_the_command_line_of_another_harness_is_served_too(tmp_path: Path) -> None:
    place = Cursor(tmp_path)
    own(place, "echo mine", "cursor")
    given = {"session_id": CONVERSATION, "transcript_path": str(place.transcript), "cwd": str(place.project),
             "model": {"id": "m"}, "context_window": {"context_window_size": 200_000, "used_percentage": 34.5,
                                                      "current_usage": None}}  # fmt: skip
    said = shown(place, json.dumps(given).encode(), "cursor", CURSOR_VERSION="3.1")
    assert said == "mine\nmemory: 34 % of the window (69k of 200k)\n"


def test_tokens_are_as_short_as_a_line_needs() -> None:
    assert [short(n) for n in (0, 950, 6_200, 9_949, 9_950, 166_900)] == ["0", "950", "6.2k", "9.9k", "10k", "167k"]
    assert line(None, None, 0) == ""


def test_the_same_is_shown_without_a_status_line(place: Place) -> None:
    place.hook(NAME, "SessionEnd", given=place.payload("SessionEnd"))
    assert until(lambda: (place.notes_folder / "facts").exists())
    done = place.command("statusline", SESSION[:8])
    assert done.returncode == 0 and b" notes" in done.stdout and done.stdout.startswith(b"memory: "), done
    value = json.loads(place.command("statusline", SESSION[:8], "--json").stdout)
    assert value["notes"] > 0 and value["mark"] > 0 and done.stdout.decode().rstrip("\n")[:30] == value["line"][:30]


@pytest.mark.parametrize("as_json", [False, True])
def test_watching_goes_on_until_it_is_interrupted_plain_where_no_terminal_is(place: Place, as_json: bool) -> None:
    command = [sys.executable, str(SCRIPT), "status", "--watch", "--every", "0.5", *["--json"] * as_json]
    watching = subprocess.Popen(
        command, stdout=subprocess.PIPE, env=place.environment, cwd=place.project, preexec_fn=heed_interrupts
    )
    assert watching.stdout is not None
    lines = [watching.stdout.readline().decode() for _ in range(4)]
    watching.send_signal(2)
    assert watching.wait(30) == 0
    if as_json:
        assert all(json.loads(one)["sessions"][0]["harness"] == NAME for one in lines)
    else:
        assert "\x1b" not in "".join(lines)
        assert lines[0].split("  ")[1:] == lines[2].split("  ")[1:] and " notes" in lines[1] and NAME in lines[3]


def test_watching_clears_a_terminal_between_two_pictures(place: Place) -> None:
    import pty

    master, slave = pty.openpty()
    command = [sys.executable, str(SCRIPT), "status", "--watch", "--every", "0.5"]
    watching = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=place.environment, cwd=place.project,
        preexec_fn=heed_interrupts,
    )  # fmt: skip
    os.close(slave)
    seen, end = b"", time.monotonic() + 60
    while seen.count(b"\x1b[2J") < 2 and time.monotonic() < end:
        seen += os.read(master, 65_536)
    watching.send_signal(2)
    assert watching.wait(30) == 0 and seen.count(b" notes") >= 1
    os.close(master)


@pytest.mark.parametrize("every", ["0", "x", "-1", "nan", "4000"])
def test_an_interval_that_is_none_is_refused(place: Place, every: str) -> None:
    done = place.command("status", "--watch", "--every", every)
    assert done.returncode == 2 and b"must be a number of seconds" in done.stderr
