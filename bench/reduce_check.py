"""What a shortened output has lost, by expressions of its own: nothing here is shared with the rules that shorten.

Invariant: this module imports nothing of the program, so that no mistake of a rule can hide behind the same mistake here.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

AROUND = 2  # lines on each side that an error must keep

_ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_ERROR = re.compile(
    r"\b(?:errors?|fatal|panic(?:ked)?|exceptions?|traceback|fail(?:s|ed|ures?|ing)?|denied|no such file|not found|cannot|can't"
    r"|unable to|undefined|unresolved|refused|segmentation fault|assert(?:ion)?(?:error)?|aborted|killed|timed out|conflict|invalid"
    r"|unexpected|missing|unknown)\b|\w(?:Error|Exception)\b|^E {2,}\S|^\s*[✕✗✖×]|\bE[0-9]{4}\b|\bTS[0-9]{4}\b",
    re.IGNORECASE,
)
_NONE_OF = re.compile(r"\b(?:0|no) (?:failed|failures?|failing|errors?)\b", re.IGNORECASE)
# Lines in which a runner says that something went well, or that it goes on; error words in them are names.
_FINE = re.compile(
    r"\.\.\. (?:ok|ignored|skipped\b.*)$|^(?:\S+ )?\s*[✓✔√]|\bPASSED\b|^\s*--- (?:PASS|SKIP): |^\s*=== (?:RUN|PAUSE|CONT|NAME)\b|^ok\s|^PASS\b|^\s+PASS \["
    r"|^[^\n]{0,60}?(?:Compiling|Checking|Downloading|Downloaded|Fresh|Locking|Adding|Building|Installed|Documenting) \S+ v?\d"
    r"|^(?:Collecting|Requirement already satisfied|Using cached|Unpacking|Setting up|Selecting previously|Preparing to unpack|go: downloading) |^\?\s"
    r'|"Action":"(?:run|pass|output|pause|cont|skip)"'
)
_SUMMARY_FAILED = re.compile(
    r"^(?!\S+:\d+[:-])(?:=+ )?(?:.*\b[1-9]\d* failed\b.*|FAILED \(.*|FAIL\s.*|--- FAIL.*|test result: FAILED.*|error: could not compile.*|.*\b[1-9]\d* failing\b.*)$",
    re.MULTILINE,
)
_TEST_NAMES = (
    re.compile(r"^(?:FAILED|ERROR) (\S+::\S+)", re.MULTILINE),
    re.compile(r"^(\S+::\S+) (?:FAILED|ERROR)\b", re.MULTILINE),
    re.compile(r"^_{3,} (\S[^\n]*?) _{3,}$", re.MULTILINE),
    re.compile(r"^(?:FAIL|ERROR): (test\w*)", re.MULTILINE),
    re.compile(r"^\s*--- FAIL: (\S+)", re.MULTILINE),
    re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE),
    re.compile(r"^---- (\S+) stdout ----", re.MULTILINE),
    re.compile(r"^\s*(?:●|✕|✗|×) (\S[^\n]*?)(?: \(?\d+ ?ms\)?)?$", re.MULTILINE),
    re.compile(r"^FAIL[ \t]+(\S+)", re.MULTILINE),
    re.compile(r"^not ok \d+ -? ?(\S[^\n]*)", re.MULTILINE),
)
_PATH = re.compile(r"(?<![\w/.-])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\]?[\w@.+-]+)(?:[/\\][\w@.+-]+)+|\b[\w-]+\.(?:py|rs|go|tsx?|jsx?|c|h|cc|cpp|java|rb|toml|ya?ml|json|md|lock|sh|txt|log)\b")  # fmt: skip
_EXIT = re.compile(
    r"exit(?:ed)?[ _-]?(?:code|status)?(?: with)?(?: code| status)?[ :=]*\(?-?\d+|\b(?:rc|status|EXIT)[=:] ?-?\d+",
    re.IGNORECASE,
)
_MARK = re.compile(r"\[… [^\n]*? …\]")
_INLINE = re.compile(r"\[… [\d,]+ [^\n]*? …\]")


class Losses(NamedTuple):
    """What is no longer there. ``failed`` is True for a command that failed as far as one can see; ``invented`` are lines that
    the whole output does not have in this order."""

    failed: bool
    errors: tuple[str, ...] = ()
    surroundings: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    exits: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()


def losses(output: str, shortened: str, exit_code: int | None) -> Losses:
    """Compare an output with what became of it."""
    lines = _lines(output)
    kept = Counter(_lines(shortened))
    wrong = [index for index, line in enumerate(lines) if _is_error(line)]
    failed = exit_code not in (None, 0) or (exit_code is None and bool(wrong)) or bool(_SUMMARY_FAILED.search(output))
    near = sorted({i for at in wrong for i in range(max(0, at - AROUND), min(len(lines), at + AROUND + 1))})
    return Losses(
        failed,
        _gone([lines[index] for index in wrong], kept),
        _gone([lines[index] for index in near], kept),
        tuple(sorted(_names(output) - _names(shortened))),
        tuple(sorted(_paths(output) - _paths(shortened))),
        _gone(_EXIT.findall(output), Counter(_EXIT.findall(shortened))),
        _invented(lines, shortened),
    )


def _is_error(line: str) -> bool:
    return _ERROR.search(_NONE_OF.sub("", line)) is not None and _FINE.search(line) is None


def _names(text: str) -> set[str]:
    return {name for pattern in _TEST_NAMES for name in pattern.findall(_plain(text))}


def _paths(text: str) -> set[str]:
    """Paths; what has no letter in it is a date or a fraction."""
    return {path for path in _PATH.findall(_plain(text)) if re.search(r"[^\W\d_]", path)}


def _plain(text: str) -> str:
    return _ANSI.sub("", text)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in re.split(r"[\r\n]+", _plain(text)) if line.strip()]


def _gone(wanted: list[str], kept: Counter[str]) -> tuple[str, ...]:
    return tuple((Counter(wanted) - kept).elements())


def _invented(lines: list[str], shortened: str) -> tuple[str, ...]:
    """Lines, and pieces around marks inside of lines, that do not follow one another in the whole output."""
    invented, at = [], 0
    for line in _lines(shortened):
        if _MARK.fullmatch(line):
            continue
        pieces = [piece.strip() for piece in _INLINE.split(line)]
        found = next((index for index in range(at, len(lines)) if _holds(lines[index], pieces)), None)
        if found is None:
            invented.append(line)
        else:
            at = found + 1
    return tuple(invented)


def _holds(line: str, pieces: list[str]) -> bool:
    if len(pieces) == 1:
        return line == pieces[0]
    at = 0
    for piece in pieces:
        at = line.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True
