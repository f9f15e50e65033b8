"""Shortening what a shell command printed, before a model reads it: which rules apply, and what none of them may touch.

Pure and deterministic; the standard library alone, so that a hook can load it. Invariant: what is kept is a line of the
original, byte for byte and in order; exit codes stay; of a failed command every error line stays with its surroundings, and
every path. Whoever calls this has the whole output safe somewhere, and says where in a ``footer``.
"""

from __future__ import annotations

from typing import NamedTuple

from obsmem.core.reduce_builds import RULES as _BUILDS
from obsmem.core.reduce_commands import arguments, effective_commands, effective_words, is_bypassed
from obsmem.core.reduce_data import RULES as _DATA
from obsmem.core.reduce_data import is_data
from obsmem.core.reduce_git import RULES as _GIT
from obsmem.core.reduce_listings import RULES as _LISTINGS
from obsmem.core.reduce_plain import RULES as _PLAIN
from obsmem.core.reduce_rule import Rule, Words
from obsmem.core.reduce_sheet import LEAST_SHARE, SURROUNDINGS, Sheet, error_lines, exit_lines, warning_lines
from obsmem.core.reduce_tests import RULES as _TESTS

__all__ = ["ALL_RULES", "MARKER", "Reduced", "Rules", "effective_commands", "footer", "is_bypassed", "reduce"]

MINIMUM_BYTES = 2_000  # shorter outputs are left alone unless Rules say else
MARKER = "# whole output"
LAST_KEPT = 2  # lines at the end that say how it went

ALL_RULES: tuple[Rule, ...] = (*_GIT, *_TESTS, *_BUILDS, *_LISTINGS, *_DATA, *_PLAIN)
"""Every rule, in the order in which they are tried. A line that one has folded is no other's."""

_READERS = frozenset(
    [
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "bat",
        "nl",
        "sed",
        "awk",
        "gawk",
        "cut",
        "od",
        "xxd",
        "hexdump",
        "strings",
        "diff3",
    ]
)
_SEARCHES = frozenset(["grep", "egrep", "rg"])
_EVERY_LINE = frozenset(("", ".", "^", ".*", "$"))
_SAVED = (".log", ".out", ".err")


class Rules(NamedTuple):
    """What the user decided. ``minimum`` in bytes: what is shorter is left alone. ``off`` are names of rules that do not apply.
    ``excluded`` are patterns (``*``, ``?``) of commands whose output stays whole, matched with the whole line and with each
    program in it."""

    minimum: int = MINIMUM_BYTES
    off: frozenset[str] = frozenset()
    excluded: tuple[str, ...] = ()


DEFAULTS = Rules()


class Reduced(NamedTuple):
    """A shortened output. ``rule`` names the rules that folded something, joined by ``+``; sizes are UTF-8 bytes of the text
    alone; ``folded_lines`` counts lines that are gone whole (cuts inside of lines are not among them)."""

    text: str
    rule: str
    whole_bytes: int
    kept_bytes: int
    folded_lines: int


def reduce(command: str, output: str, exit_code: int | None, rules: Rules = DEFAULTS) -> Reduced | None:
    """Shorten the output of a command. None where it is to stay as it is: too short, switched off, nothing to fold, or less
    than a fifth to gain. ``exit_code`` None says that nobody knows it; a failure is then told by the output."""
    whole = _size(output)
    if whole < rules.minimum or is_bypassed(command):
        return None
    programs = effective_words(command)
    if is_excluded(command, programs, rules.excluded):
        return None
    chosen = _choose(programs, output, rules.off)
    if not chosen:
        return None
    sheet = _prepare(output, command, exit_code, programs, chosen)
    for rule, words in chosen:
        sheet.rule = rule.name
        rule.fold(sheet, words)
    if sheet.failed:
        sheet.keep_paths()
    text = sheet.render()
    kept = _size(text)
    if kept > (1 - LEAST_SHARE) * whole:
        return None
    return Reduced(text, "+".join(sheet.rules), whole, kept, sheet.folded_lines)


def footer(reduced: Reduced, name: str, command: str) -> str:
    """The lines that end a shortened output: what was done, and how to get the rest. ``name`` is the whole output's id,
    ``command`` what prints it when the id is put behind it."""
    saved = round(100 * (1 - reduced.kept_bytes / reduced.whole_bytes)) if reduced.whole_bytes else 0
    return (
        f"\n[observational-memory: shortened {reduced.whole_bytes:,} → {reduced.kept_bytes:,} bytes (−{saved} %, {reduced.rule}); id {name}. "
        f"Whole: `{command} {name}`, or run it again with `{MARKER}` behind it.]\n"
    )


def is_excluded(command: str, programs: list[Words], patterns: tuple[str, ...]) -> bool:
    """True if the user wants the output of such a command whole."""
    if not patterns:
        return False
    from fnmatch import fnmatchcase

    lines = [command.strip(), *(" ".join(words) for words in programs)]
    return any(fnmatchcase(line, pattern) for line in lines for pattern in patterns)


def _choose(programs: list[Words], output: str, off: frozenset[str]) -> list[tuple[Rule, Words]]:
    """The rules that apply, each with the command whose output it reads, in the order of the table."""
    reading = any(_reads_file(words) for words in programs)
    named: dict[str, Words] = {}
    unknown: list[Words] = [] if programs else [()]
    data = reading
    for words in programs:
        if _reads_file(words):
            continue
        own = [rule for rule in ALL_RULES if rule.reads(words)]
        for rule in own:
            named.setdefault(rule.name, words)
        data = data or any(not rule.talk for rule in own)
        if not own or any(rule.sign for rule in own):
            unknown.append(words)
    chosen = []
    for rule in ALL_RULES:
        if rule.name in off:
            continue
        if rule.name in named:
            chosen.append((rule, named[rule.name]))
        elif "*" in rule.commands:
            if rule.name == "logs" or not (reading or (data and rule.name == "repeats")):
                chosen.append((rule, programs[0] if programs else ()))
        elif rule.sign and unknown and not reading and rule.sign.search(output):
            chosen.append((rule, unknown[0]))
    return chosen


def _reads_file(words: Words) -> bool:
    """True for a command that shows what is in a file, which is left as it is: it was asked for."""
    name = words[0]
    rest = arguments(words)
    if name in _READERS:
        return not any(word.endswith(_SAVED) for word in rest)
    if name == "git":
        return rest[:1] in (["cat-file"], ["blame"]) or (rest[:1] == ["show"] and any(":" in word for word in rest[1:]))
    return name in _SEARCHES and bool(rest) and rest[0] in _EVERY_LINE


def _prepare(
    output: str, command: str, exit_code: int | None, programs: list[Words], chosen: list[tuple[Rule, Words]]
) -> Sheet:
    """The output with everything guarded that no rule may touch."""
    sheet = Sheet(output, failed=False)
    harmless = [pattern for rule, _ in chosen for pattern in rule.harmless]

    def harmful(index: int) -> bool:
        return not any(one.match(sheet.said[index]) or one.match(sheet.bare[index]) for one in harmless)

    errors = [index for index in error_lines(sheet.bare) if harmful(index)]
    data = (bool(programs) and all(_is_data(words) for words in programs)) or is_data(output)
    unsure = exit_code is None or (not data and _hides_failure(command))
    sheet.failed = exit_code not in (None, 0) or (unsure and bool(errors))
    if sheet.failed or not data:
        sheet.guard(exit_lines(sheet.bare))
        sheet.guard(errors, SURROUNDINGS)
        sheet.guard(filter(harmful, warning_lines(sheet.bare)))
        said = [index for index, line in enumerate(sheet.bare) if line.strip()]
        sheet.keep(said[:1] + said[-LAST_KEPT:])
    return sheet


def _is_data(words: Words) -> bool:
    return _reads_file(words) or any(rule.reads(words) and not rule.talk for rule in ALL_RULES)


def _hides_failure(command: str) -> bool:
    """True if the exit code may be another program's than that which printed: behind a pipe, or before a further command."""
    return "|" in command or ";" in command or "\n" in command.strip()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
