"""Odd surroundings: encodings other than UTF-8, a PATH without Python, homes with spaces and quotes, 64 hooks at once.

Here real interpreters are started, as harnesses start them, since the surroundings act on an interpreter's start.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

from bench import storm
from bench.faults.invariants import check
from bench.faults.kills import THEN, WHOLE, _is_json
from bench.faults.parts import Part
from bench.faults.place import HARNESS, Place
from bench.faults.process import SCRIPT, until_quiet

SECONDS = 120
ENCODINGS: dict[str, dict[str, str]] = {
    "locale C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "locale POSIX, cp932 streams": {"LC_ALL": "POSIX", "PYTHONIOENCODING": "cp932", "PYTHONUTF8": "0"},
    "ascii streams, strict": {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "LC_ALL": "C"},
    "latin-1 streams": {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"},
    "no locale at all": {"LANG": "", "LC_ALL": "", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
NAMES = (
    "Jane Q. O'Brien",
    'with "quotes" and $HOME',
    "ünïcödé 日本語",
    "tab\tand\nnewline",
    "-rf",
    "per%cent#hash?x",
    "back\\slash `x`",
)
PAYLOADS = (
    ("SessionStart", "SessionStart-startup"), ("UserPromptSubmit", "UserPromptSubmit"), ("Stop", "Stop"),
    ("PreCompact", "PreCompact-auto"), ("SessionStart", "SessionStart-compact"), ("SessionEnd", "SessionEnd"),
)  # fmt: skip
COMMANDS = (
    ("status",), ("notes",), ("block",), ("sessions", "--json"), ("search", "日本語"), ("config",), ("hooks", HARNESS), ("show", "5d0c", "0:3"),
)  # fmt: skip


def odd_surroundings(short: bool, chance: random.Random) -> Part:
    """Hooks and commands by real interpreters in each of these surroundings."""
    part = Part("locales, PATH, names")
    for where, name, variables in _surroundings():
        with Place(name) as place:
            place.lines = [line.replace(b"tests", "tests ünï 日本語 🦉".encode()) for line in place.lines]
            place.grow(THEN)
            _hooks(part, place, where, variables)
            place.grow(WHOLE)
            for words in COMMANDS:
                done = _run(place, [sys.executable, SCRIPT, *words], variables, b"")
                good = done.returncode in range(6) and b"Traceback" not in done.stderr
                part.expect(good, f"{where}, {words[0]}", f"status {done.returncode}: {done.stderr[-300:]!r}")
            _launcher(part, place, where, variables)
            until_quiet(place.home)
            place.maintain("--before-compact")
            place.maintain()
            for sentence in check(place):
                part.fault(where, sentence)
    return part


def _surroundings() -> Iterator[tuple[str, str, Mapping[str, str]]]:
    for name, variables in ENCODINGS.items():
        yield name, "home", variables
    for name in NAMES:
        yield f"a home called {name!r}", name, {}
    yield "PATH without python3", "home", {"PATH": "/nonexistent"}
    yield "no PATH", "home", {"PATH": ""}


def _run(
    place: Place, command: list[str], variables: Mapping[str, str], given: bytes
) -> subprocess.CompletedProcess[bytes]:
    environment = {**place.environment, **variables}
    environment.pop("LD_PRELOAD", None)
    return subprocess.run(
        command, input=given, capture_output=True, env=environment, timeout=SECONDS, cwd=place.project
    )


def _hooks(part: Part, place: Place, where: str, variables: Mapping[str, str]) -> None:
    for event, payload in PAYLOADS:
        done = _run(place, place.hook_command(event, "--part", "1/4"), variables, place.payload(payload))
        good = done.returncode == 0 and not done.stderr and (not done.stdout or _is_json(done.stdout))
        part.expect(good, f"{where}, hook {payload}", f"{done.returncode} {done.stdout[:80]!r} {done.stderr[-200:]!r}")
        if payload == "SessionStart-compact":
            value = json.loads(done.stdout or b"{}")
            text = value.get("hookSpecificOutput", {}).get("additionalContext", "")
            part.expect(
                "<observational-memory " in text, f"{where}, {payload}", "no block was given after a compaction"
            )
        until_quiet(place.home)


def _launcher(part: Part, place: Place, where: str, variables: Mapping[str, str]) -> None:
    """The command that stands in the harness's config, run by a shell as the harness does."""
    printed = _run(place, [sys.executable, SCRIPT, "install", HARNESS, "--yes", "--no-mcp"], {}, b"")
    settings = os.path.join(place.folder, ".claude", "settings.json")
    if printed.returncode or not os.path.exists(settings):
        part.expect(
            not printed.returncode, f"{where}, install", f"status {printed.returncode}: {printed.stderr[-200:]!r}"
        )
        return
    with open(settings, encoding="utf-8") as file:
        hooks = json.load(file)["hooks"]
    for event, payload in PAYLOADS:
        command = hooks[event][0]["hooks"][0]["command"]
        shell = shutil.which("sh") or "/bin/sh"
        done = _run(place, [shell, "-c", command], variables, place.payload(payload))
        good = done.returncode == 0 and not done.stderr and (not done.stdout or _is_json(done.stdout))
        part.expect(
            good, f"{where}, installed {payload}", f"{done.returncode} {done.stdout[:60]!r} {done.stderr[-200:]!r}"
        )
        until_quiet(place.home)
    log = os.path.join(place.home, "log.txt")
    with open(log, encoding="utf-8") as file:
        failed = [line for line in file if "Error" in line]
    part.expect(not failed, f"{where}, log", f"{failed[:2]}")


def many_hooks(short: bool, chance: random.Random) -> Part:
    """64 turn-end hooks at once, of one session and of sixteen: ``bench.storm``, counted here."""
    import tempfile

    part = Part("64 hooks at once")
    for sessions in (1, 16):
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            seen = storm.blow(folder, 64, sessions)
        part.tried += seen.hooks
        if seen.failures:
            part.fault(f"{sessions} sessions", f"{seen.failures} failures")
        if seen.most > 2 or seen.most_a_session > 1 or seen.left:
            part.fault(
                f"{sessions} sessions", f"{seen.most} maintainers, {seen.most_a_session} a session, {seen.left} left"
            )
        if seen.read != sessions:
            part.fault(f"{sessions} sessions", f"{seen.read} were read")
    return part
