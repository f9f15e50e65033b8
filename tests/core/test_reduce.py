"""The engine of shortening: what no rule may touch, when nothing is done, and what stands below."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from obsmem.core.reduce import ALL_RULES, MARKER, Reduced, Rules, footer, reduce

ROOT = Path(__file__).resolve().parents[2]
STEPS = "".join(f"   Compiling crate{number} v1.{number}.0\n" for number in range(120))


def shorten(command: str, output: str, exit_code: int | None = 0, rules: Rules | None = None) -> str:
    reduced = reduce(command, output, exit_code, rules or Rules())
    assert reduced is not None
    assert reduced.whole_bytes == len(output.encode("utf-8"))
    assert reduced.kept_bytes == len(reduced.text.encode("utf-8"))
    return reduced.text


def test_steps_become_a_mark_that_counts_them() -> None:
    text = shorten("cargo build", STEPS + "    Finished dev profile in 3s\n")
    assert "[… 118 steps …]\n" in text
    assert text.startswith("   Compiling crate0 v1.0.0\n")
    assert text.endswith("    Finished dev profile in 3s\n")


def test_an_error_of_a_failed_command_stays_with_its_surroundings() -> None:
    error = "error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:3:5\n"
    text = shorten("cargo build", STEPS + error + STEPS, 101)
    before = "".join(STEPS.splitlines(keepends=True)[-3:])
    after = "".join(STEPS.splitlines(keepends=True)[:3])
    assert before + error + after in text


@pytest.mark.parametrize("command", ["make 2>&1 | tail -500", "make; echo done", "make || true"])
def test_an_exit_code_that_proves_nothing_is_not_believed(command: str) -> None:
    middle = "src/a.c:3:1: error: expected ';' before '}'\n"
    compilers = "".join(f"cc -c src/{number}.c -o obj/{number}.o\n" for number in range(100))
    reduced = reduce(command, compilers + middle + compilers, 0)
    assert reduced is None or middle in reduced.text


def test_a_path_of_a_failed_command_is_never_lost() -> None:
    output = "".join(f"[{number}/200] Building CXX object src/{number % 5}.cpp.o\n" for number in range(200))
    text = shorten("ninja", output + "ninja: build stopped: subcommand failed.\n", 1)
    assert all(f"src/{number}.cpp.o" in text for number in range(5))
    assert len(text) < len(output) / 3


def test_what_says_how_it_ended_stays_in_any_case() -> None:
    output = STEPS + "EXIT_CODE=0\n" + STEPS
    assert "EXIT_CODE=0\n" in shorten("cargo build; echo EXIT_CODE=$?", output)


def test_warnings_stay_where_a_command_went_well() -> None:
    warning = "warning: unused variable: `x`\n"
    assert warning in shorten("cargo build", STEPS + warning + STEPS)


def test_a_name_with_an_error_word_is_no_error() -> None:
    output = "".join(f"test tests::error_{number}_is_fatal ... ok\n" for number in range(90))
    text = shorten("cargo test", f"running 90 tests\n{output}\ntest result: ok. 90 passed; 0 failed\n")
    assert "[… 89 passing tests …]\n" in text


@pytest.mark.parametrize(
    ("command", "output", "rules"),
    [
        ("cargo build", STEPS[:1_500], Rules()),
        ("cargo build", STEPS, Rules(minimum=10_000)),
        (f"cargo build {MARKER}", STEPS, Rules()),
        ("cargo build", STEPS, Rules(excluded=("cargo *",))),
        ("cd x && RUSTFLAGS=-g cargo build", STEPS, Rules(excluded=("cargo b*",))),
        ("cargo build", STEPS, Rules(off=frozenset(rule.name for rule in ALL_RULES))),
        ("cargo build", STEPS, Rules(off=frozenset(("builds", "repeats")))),
        ("cat src/lib.rs", STEPS, Rules()),
        ("sed -n '1,400p' build.txt", STEPS, Rules()),
        ("git show HEAD:log.txt", STEPS, Rules()),
        ("rg -n '' log.txt", STEPS, Rules()),
        ("frobnicate", "".join(f"{number * number} {number * 7919 % 1000}\n" for number in range(500)), Rules()),
    ],
)
def test_an_output_stays_as_it_is(command: str, output: str, rules: Rules) -> None:
    assert reduce(command, output, 0, rules) is None


def test_less_than_a_fifth_to_gain_is_not_taken() -> None:
    chance = random.Random(3)
    talk = "".join(f"{''.join(chance.choices('abcdefgh ', k=40))}\n" for number in range(100))
    assert reduce("frobnicate", talk + 8 * "the same again and again\n", 0) is None


def test_the_footer_says_what_was_done_and_how_to_get_the_rest() -> None:
    text = footer(
        Reduced("x", "search+long-lines", 34_185, 9_120, 412), "7c2e.812", "observational-memory recall --raw"
    )
    assert "34,185 → 9,120 bytes" in text
    assert "`observational-memory recall --raw 7c2e.812`" in text
    assert MARKER in text
    assert text.startswith("\n")
    assert text.count("\n") == 2


def test_the_same_output_is_shortened_in_the_same_way() -> None:
    first = reduce("cargo build", STEPS, 0)
    assert first == reduce("cargo build", STEPS, 0)


def test_bytes_that_are_no_text_are_kept() -> None:
    output = STEPS + "caf\udce9 \udcff\x00\n"
    reduced = reduce("cargo build", output, 0)
    assert reduced is not None
    assert reduced.text.endswith("caf\udce9 \udcff\x00\n")


def test_names_of_rules_are_their_own() -> None:
    names = [rule.name for rule in ALL_RULES]
    assert len(set(names)) == len(names)


def test_nothing_heavy_is_loaded() -> None:
    script = (
        "import sys; bare = set(sys.modules); import obsmem.core.reduce; new = set(sys.modules) - bare;"
        "print(sorted(name for name in new if name.split('.')[0] in"
        " ('json', 'sqlite3', 'subprocess', 'pathlib', 'hashlib', 'fnmatch', 'datetime', 'yaml', 'logging')))"
    )
    run = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {script}"], capture_output=True, text=True, timeout=60)  # fmt: skip
    assert run.stdout.strip() == "[]", run.stderr


SOURCES = sorted(ROOT.glob("obsmem/*/*.py")) + sorted(ROOT.glob("tests/*/*.py")) + sorted(ROOT.glob("*.md"))


@pytest.mark.parametrize("command", ["frobnicate", "npm run show", "make show", "git diff", "rg -n foo", "find ."])
def test_what_looks_like_nothing_that_is_known_stays(command: str) -> None:
    shortened = [path.name for path in SOURCES if reduce(command, path.read_text(encoding="utf-8"), 0) is not None]
    assert shortened == []


@pytest.mark.parametrize("unit", ["\n", " ", ".", "a-", "a.", "/", "[", "\r", "=", "x\n", "\x1b[1m", "E ", "1:"])
@pytest.mark.parametrize("exit_code", [0, 1])
def test_an_output_of_one_thing_is_read_in_its_time(unit: str, exit_code: int) -> None:
    # Nothing is timed: what grows with the square of the length would not end.
    output = unit * (60_000 // len(unit)) + "\nsrc/a.py: error: it broke\n"
    for command in ("pytest", "frobnicate"):
        reduced = reduce(command, output, exit_code)
        assert reduced is None or reduced.text.endswith("src/a.py: error: it broke\n")
