"""What a command was and how it ended, from its line and its output.

Invariant: every string given back stands verbatim in the command or in its output, clipped but never reworded. A
success is taken at its word unless a test runner's own summary says that something failed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core import late

COMMAND_LIMIT = 400
LINE_LIMIT = 300
BODY_LIMIT = 80  # characters of a here-document's first line
ERROR_LIMIT = 3
FAILING_LIMIT = 12
OUTPUT_LIMIT = 200_000

_CHANGE_FOLDER = late.pattern(r"(?:cd|pushd) +(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+) *(?:&&|;|\n)\s*(?=\S)")
_HEREDOC = late.pattern(r"<<-?\s*[\"']?\w+[\"']?")
_SPACE = late.pattern(r"\s+")
_SEGMENTS = late.pattern(r"&&|\|\||[;|\n]")
_QUOTED = late.pattern(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_ENVIRONMENT = late.pattern(r"^(?:\w+=\$\( *|\w+=\S* +|(?:sudo|time|command|env|timeout +\S+|then|do|else|if) +)*")
_NOISE_WORDS_TEXT = (
    "ls cat pwd echo cd head tail grep egrep rg ag find fd sleep which whereis type wc tree stat file sed awk sort uniq cut tr jq date"
    " true printf less more env printenv du df whoami hostname uname ps basename dirname realpath readlink column nl xargs for while done"
    " fi then do clear history test [ diff cmp md5sum sha256sum"
)
_NOISE_WORDS = frozenset(_NOISE_WORDS_TEXT.split())
_NOISE_GIT_TEXT = (
    "status log diff show branch remote rev-parse fetch ls-files ls-tree ls-remote blame config describe reflog cat-file grep shortlog"
    " merge-base for-each-ref show-ref rev-list worktree"
)
_NOISE_GIT = frozenset(_NOISE_GIT_TEXT.split())
_WRITES = late.pattern(r"(?<![0-9&>])>>?\s*(?!/dev/null|&)[\w./~$\"'-]|\bsed\s+(?:-\w+\s+)*-i|\btee\s")


class Outcome(NamedTuple):
    """How a command ended. ``ok`` None = not known; ``errors`` the deciding lines; ``failing`` names of tests."""

    ok: bool | None
    exit: int | None
    errors: tuple[str, ...]
    failing: tuple[str, ...]
    summary: str


def normalise(command: str) -> str:
    """One line that names a command: no leading ``cd x &&``, single spaces, the body of a heredoc left out with a mark, but
    for its first line.

    Environment prefixes stay: ``CI=1 make`` is not ``make``.
    """
    text = command.strip()
    while True:
        match = _CHANGE_FOLDER.match(text)
        if match is None:
            break
        text = text[match.end() :]
    told = _without_body(text)
    if told == text and "\n" in text and len(text) > COMMAND_LIMIT:
        told = text.split("\n", 1)[0].rstrip()
    if told != text:
        return _clip(_SPACE.sub(" ", told), COMMAND_LIMIT) + " […]"
    return _clip(_SPACE.sub(" ", text), COMMAND_LIMIT)


def as_typed(command: str, folder: str) -> str:
    """A command in one line as it was typed, without ``cd`` into the ``folder`` that it runs in anyway; of one with a
    here-document up to the first line of it."""
    text = command.strip()
    match = _CHANGE_FOLDER.match(text)
    if match is not None and folder and folder.rstrip("/\\") in match.group().replace("&", " ").split():
        text = text[match.end() :]
    return _clip(_SPACE.sub(" ", _without_body(text)), COMMAND_LIMIT)


def _without_body(text: str) -> str:
    """A command up to the first line of its first here-document, which tells it from others that begin alike."""
    opened = _HEREDOC.search(text)
    end = text.find("\n", opened.end()) if opened else -1
    if end < 0:
        return text
    last = text.find("\n", end + 1)
    return text if last < 0 else text[: min(last, end + BODY_LIMIT)].rstrip()


def further_trouble(output: str, told: Sequence[str]) -> dict[str, str]:
    """The ``first`` and the ``last`` line of a failed command's output that name trouble, where ``told`` has them not."""
    lines = [match.group().strip()[:LINE_LIMIT] for match in _DECIDING[-1].finditer(output[:OUTPUT_LIMIT])]
    lines = [line for line in lines if line and not _EXIT_LINE.match(line)]
    found: dict[str, str] = {}
    for place, line in (("first", lines[:1]), ("last", lines[-1:])):
        known = (*told, *found.values())
        if line and not any(line[0] in one or one in line[0] for one in known):
            found[place] = line[0]
    return found


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 4] + " […]"


def is_noise(command: str) -> bool:
    """True if every part of the command only looks around (ls, cat, git status…) and writes nothing."""
    bare = _QUOTED.sub("''", command.split("<<", 1)[0])
    if _WRITES.search(bare):
        return False
    for segment in _SEGMENTS.split(bare):
        words = _ENVIRONMENT.sub("", segment.strip(), count=1).split()
        if not words:
            continue
        name = words[0].rsplit("/", 1)[-1]
        if name == "git":
            rest = [word for word in words[1:] if not word.startswith("-")]
            if words[1:2] == ["-C"]:
                rest = rest[1:]
            if rest and rest[0] in _NOISE_GIT:
                continue
            return False
        if name not in _NOISE_WORDS:
            return False
    return True


_FAILED_SUMMARY = late.pattern(
    r"^(?:=+ *)?((?:\d+ \w+, )*\d+ (?:failed|errors?)\b[^\n]* in [\d.]+s[^\n=]*)"  # pytest
    r"|^(FAILED \((?:failures|errors|unexpected)[^\n]*\))"  # unittest
    r"|^(FAIL\t[^\n]+|--- FAIL: [^\n]+)"  # go test
    r"|^(test result: FAILED\.[^\n]*|error: could not compile [^\n]*|error: test failed[^\n]*)"  # cargo
    r"|^ *(Tests:? +(?:\d+ \w+(?:, | \| ))*\d+ failed[^\n]*)"  # jest, vitest
    r"|^ *([1-9]\d* failing\b[^\n]*)"  # mocha
    r"|^(\d+ examples?, [1-9]\d* failures?[^\n]*)"  # rspec
    r"|^(Found [1-9]\d* errors?[^\n]*)"  # mypy, ruff, tsc
    r"|^ *(✖ \d+ problems? \([1-9]\d* errors?[^\n]*)"  # eslint
    r"|^(BUILD FAILED[^\n]*)"
    r"|^DONE ([^\n]*\d+ failures?[^\n]*)",  # gotestsum
    re.MULTILINE,
)
_PASSED_SUMMARY = late.pattern(
    r"^(?:=+ *)?(\d+ passed\b[^\n]* in [\d.]+s[^\n=]*)"
    r"|^(Ran \d+ tests? in [^\n]+)"
    r"|^(test result: ok\.[^\n]*)"
    r"|^ *(Tests:? +\d+ passed[^\n]*)"
    r"|^ *(\d+ passing\b[^\n]*)"
    r"|^(\d+ examples?, 0 failures[^\n]*)"
    r"|^(Success: no issues found[^\n]*|All checks passed![^\n]*|BUILD SUCCESSFUL[^\n]*|Found 0 errors[^\n]*|0 issues\.)"
    r"|^(DONE \d+ tests[^\n]*)"
    r"|^(ok  ?\t(?![^\n]*\[no test)\S+[^\n]*|PASS$)",
    re.MULTILINE,
)
# What must stand in an output before the summaries are worth a search.
_RUNNER_HINT = late.pattern(
    r"passed|failed|FAIL|passing|failing|Ran \d|examples?,|Found \d|test result|ok  ?\t|PASS|could not compile|problems? \(|BUILD |no issues|0 issues|DONE \d"
)

_FAILING = late.pattern(
    r"^(?:FAILED|ERROR) ([^\s:]+\.py\S*(?: ?\[[^\n\]]*\])?)"  # pytest
    r"|^(?:FAIL|ERROR): (\w+ \([\w.]+\)|\w+)\s*$"  # unittest
    r"|^ *--- FAIL: (\S+)"  # go test
    r"|^test (\S+) \.\.\. FAILED"  # cargo
    r"|^ *● ([^\n]+)"  # jest
    r"|^ *(?:FAIL|❯|×) +(\S+\.(?:test|spec)\.\w+ > [^\n]+)"  # vitest
    r"|^ *[✕✗✘] ([^\n]+?)(?: \(\d+ m?s\))?$"
    r"|^rspec (\S+) #[^\n]*"
    r"|^ +\d+\) ([^\n]+)",  # mocha
    re.MULTILINE,
)

_TRACEBACK = "Traceback (most recent call last)"
_LAST_OF_TRACEBACK = late.pattern(
    r"^(?:\w+[\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Fault)?)(?::[^\n]*)?$", re.MULTILINE
)
# Deciding lines, the most telling kind first. The first kind that matches gives the lines.
_DECIDING: tuple[re.Pattern[str], ...] = (
    late.pattern(r"^E   +\S[^\n]*", re.MULTILINE),  # pytest
    late.pattern(
        r"^(?:\[[\w:.-]+\] )?[^\s:\[][^:\n]*:\d+(?::\d+)?: (?:fatal )?error\b[^\n]*|^[^\n]*\(\d+,\d+\): error [^\n]*|^[^\n]* error TS\d+[^\n]*"
        r"|^error(?:\[E\d+\])?: [^\n]*|^(?:\[[\w:.-]+\] )?(?:\./)?[\w./-]+\.(?:go|rs|zig|swift|java|kt|c|cc|cpp|h|ts|tsx|js):\d+:\d+: [^\n]*",
        re.MULTILINE,
    ),
    late.pattern(r"^thread '[^\n]*' panicked at[^\n]*|^panic: [^\n]*|^fatal error: [^\n]*", re.MULTILINE),
    late.pattern(
        r"^ +\w+_test\.go:\d+: ?\S[^\n]*|^ +Error:? +\S[^\n]*|^ *(?:Assertion|Type|Reference|Syntax)Error\b[^\n]*",
        re.MULTILINE,
    ),
    late.pattern(r"^(?:fatal|error|Error|ERROR|npm ERR!|CONFLICT)\b[^\n]*", re.MULTILINE),
    late.pattern(
        r"^[^\n]*\b(?:errors?|fatal|fail(?:ed|ure|s)?|exception|panic(?:ked)?|denied|not found|no such file|undefined|cannot|can't|unable|refused"
        r"|timed? ?out|conflicts?|unknown|invalid|unexpected|unrecognized|usage:|killed|rejected|missing|not a|does not)\b[^\n]*",
        re.MULTILINE | re.IGNORECASE,
    ),
)
_EXIT_LINE = late.pattern(
    r"^(?:FAIL|FAILED|ERROR|Error:?)\s*$|^(?:Error: )?(?:Exit code|exit status|exited with(?: code)?):? *-?\d+\s*$",
    re.IGNORECASE,
)
_COLOUR = late.pattern(r"\x1b\[[0-9;?]*[A-Za-z]")


# A pipe's exit code is its last program's; nothing but the output can show how the first one ended.
_PIPED = late.pattern(r"(?<!\|)\|(?!\|)|;\s*(?:echo|true)\b|\|\| *(?:true|echo|:)")


def read_piped_outcome(command: str, output: str, ok: bool | None, exit_code: int | None) -> Outcome:
    """As ``read_outcome``; a success that a pipe may hide a failure behind, and that no summary shows, is not known."""
    outcome = read_outcome(output, ok, exit_code)
    if outcome.ok and not outcome.summary and _PIPED.search(_QUOTED.sub("''", command)) and not is_noise(command):
        return outcome._replace(ok=None)
    return outcome


def read_outcome(output: str, ok: bool | None, exit_code: int | None) -> Outcome:
    """Read how a command ended. A pipe's exit code 0 proves nothing against a runner's own "3 failed"."""
    text = output if len(output) <= OUTPUT_LIMIT else output[: OUTPUT_LIMIT // 2] + "\n" + output[-OUTPUT_LIMIT // 2 :]
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if "\r" in text:  # a progress line overwrites itself; each state of it is a line here
        text = text.replace("\r", "\n")
    if ok is None and exit_code is not None:
        ok = exit_code == 0
    elif ok is None and text:
        ok = True
    summary = ""
    if _RUNNER_HINT.search(text):
        failed = _last(_FAILED_SUMMARY, text)
        if failed:
            ok, summary = False, failed
        else:
            summary = _last(_PASSED_SUMMARY, text)
    if ok is not False:
        return Outcome(ok, exit_code, (), (), summary)
    return Outcome(False, exit_code, _deciding_lines(text), _failing_tests(text, summary), summary)


def _last(pattern: re.Pattern[str], text: str) -> str:
    """The last match: a runner sums up at its end."""
    found = ""
    for match in pattern.finditer(text):
        found = next(group for group in match.groups() if group is not None)
    return found.strip(" =")[:LINE_LIMIT]


def _deciding_lines(text: str) -> tuple[str, ...]:
    """At most three lines, verbatim, that say what went wrong; the first other line where none does."""
    lines: dict[str, None] = {}
    start = text.rfind(_TRACEBACK)
    if start >= 0:
        match = _LAST_OF_TRACEBACK.search(text, start + len(_TRACEBACK) + 1)
        if match:
            lines[match.group().strip()[:LINE_LIMIT]] = None
    for pattern in _DECIDING:
        if lines:
            break
        for match in pattern.finditer(text):
            line = match.group().strip()
            if line and not _EXIT_LINE.match(line):
                lines[line[:LINE_LIMIT]] = None
            if len(lines) == ERROR_LIMIT:
                break
    if not lines:
        for line in text[:4000].split("\n"):
            if line.strip() and not _EXIT_LINE.match(line.strip()):
                return (line.strip()[:LINE_LIMIT],)
    return tuple(lines)


def _failing_tests(text: str, summary: str) -> tuple[str, ...]:
    """Names of failing tests. Numbered lines count only under mocha's summary, which nothing else resembles."""
    names: dict[str, None] = {}
    mocha = summary.endswith("failing")
    for match in _FAILING.finditer(text):
        if match.lastindex == 9 and not mocha:
            continue
        name = match.group(match.lastindex or 0).strip().rstrip(":")
        if len(name) <= 200:
            names[name] = None
    tests = list(names)
    # A go test that fails only by its subtests is said by them.
    tests = [name for name in tests if not any(other.startswith(name + "/") for other in tests)]
    return tuple(tests[:FAILING_LIMIT])


_COMMIT = late.pattern(r"^\[([\w./+-]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] ([^\n]+)", re.MULTILINE)
_REFERENCE = late.pattern(r"https://[\w.-]+/[^\s/]+/[^\s/]+/(?:pull|issues|merge_requests|-/merge_requests)/\d+")
_CHANGES_REFERENCE = late.pattern(
    r"\b(?:gh|glab|hub) [\w-]+ (?:create|new|merge|comment|edit|close|reopen|review)\b|\bgit push\b"
)
_DETACHED = late.pattern(r"^\[detached HEAD ([0-9a-f]{7,40})\] ([^\n]+)", re.MULTILINE)


def commits_in(command: str, output: str) -> list[tuple[str, str, str]]:
    """(hash, message, branch) of the commits that a command reports to have made."""
    if "git" not in command or "[" not in output:
        return []
    made = [(hash_, message.strip()[:LINE_LIMIT], branch) for branch, hash_, message in _COMMIT.findall(output)]
    made += [(hash_, message.strip()[:LINE_LIMIT], "") for hash_, message in _DETACHED.findall(output)]
    return made


def references_in(command: str, output: str) -> list[str]:
    """Addresses of pull requests and issues that a command which creates or changes one printed."""
    if "/pull/" not in output and "issues/" not in output and "merge_requests/" not in output:
        return []
    if not _CHANGES_REFERENCE.search(command):
        return []
    return list(dict.fromkeys(_REFERENCE.findall(output)))[:5]


_REMOVAL = late.pattern(r"(?:^|&&|;|\n)\s*(?:git +)?(rm|mv) +((?:-[\w-]+ +)*)([^;&|\n<>]+)")
_GLOB = late.pattern(r"[*?$`{}()\[\]]")


def removed_paths(command: str) -> list[str]:
    """The files that a plain ``rm`` or ``mv`` takes away; folders, globs and temporary files are left out."""
    paths: list[str] = []
    for name, flags, words in _REMOVAL.findall(command):
        if "r" in flags.lower():
            continue
        named = [word.strip("\"'") for word in words.split() if not word.startswith(("-", "2>"))]
        named = named[:1] if name == "mv" and len(named) == 2 else named if name == "rm" else []
        for path in named:
            if "." in path.rsplit("/", 1)[-1] and not _GLOB.search(path) and not path.startswith(("/tmp/", "/var/")):
                paths.append(path)
    return paths[:20]
