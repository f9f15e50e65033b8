"""Which programs a shell line runs whose output is seen: without what only stands around them.

Invariant: nothing is executed or expanded, and no line is too broken to be read: a quote that never ends holds the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from obsmem.core import late

DEPTH_LIMIT = 4  # shells inside shells
_MARKER = late.pattern(r"(?:^|[\s;])#[ \t]*whole output\b", 2)  # re.IGNORECASE

_SPACE = late.pattern(r"(?:[ \t]|\\\r?\n)+")
_HEREDOC = late.pattern(r"<<-?[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([\w.-]+))")
_REDIRECT = late.pattern(r"(?:\d*|&)(?:>>|>\||>&|<>|<&|<<<|>|<)")
_OPERATOR = late.pattern(r"\|\||&&|\|&|;;|[;&|\n()]")
_PLAIN = late.pattern(r"[^\s;&|()<>'\"`\\$]+")
_ASSIGNMENT = late.pattern(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_LINES_OF = late.pattern(r"\d+(?:,(?:\d+|\$))?[pq](?:;\d+q)?\Z")
_PYTHON = late.pattern(r"(?:python|pypy)(?:\d(?:\.\d+)?)?\Z|py\Z")

_KEYWORDS = frozenset(["then", "do", "else", "elif", "if", "while", "until", "!", "{", "fi", "done", "}"])
_HEADERS = frozenset(["for", "case", "select", "function"])
# What stands before a program: how many words of its own it takes besides options, and which options take a word.
_WRAPPERS = {
    "time": (0, "fo"), "sudo": (0, "ughpCrtT"), "doas": (0, "uC"), "timeout": (1, "ks"), "gtimeout": (1, "ks"), "nice": (0, "n"),
    "ionice": (0, "cnp"), "env": (0, "uCS"), "nohup": (0, ""), "stdbuf": (0, "ioe"), "command": (0, ""), "exec": (0, "a"),
    "builtin": (0, ""), "setsid": (0, ""), "unbuffer": (0, ""), "caffeinate": (0, ""), "taskset": (1, ""), "chronic": (0, ""),
    "xvfb-run": (0, ""), "npx": (0, "p"), "bunx": (0, ""), "uvx": (0, ""), "xargs": (0, "IPndLs"), "rtk": (0, ""), "dotenv": (0, "e"),
}  # fmt: skip
_RUNNERS: dict[tuple[str, ...], str] = {
    ("uv", "run"): "pP", ("poetry", "run"): "", ("pipenv", "run"): "", ("pdm", "run"): "", ("hatch", "run"): "", ("rye", "run"): "",
    ("pnpm", "exec"): "", ("pnpm", "dlx"): "", ("yarn", "exec"): "", ("yarn", "dlx"): "", ("npm", "exec"): "", ("bun", "x"): "",
    ("bundle", "exec"): "", ("mise", "exec"): "", ("mise", "x"): "", ("conda", "run"): "np", ("rustup", "run"): "",
    ("rtk", "proxy"): "",
}  # fmt: skip
_LONG_WITH_WORD = frozenset(
    [
        "--with",
        "--extra",
        "--group",
        "--python",
        "--package",
        "--directory",
        "--project",
        "--env-file",
        "--user",
        "--signal",
        "--kill-after",
        "--adjustment",
        "--filter",
        "--prefix",
        "--cwd",
        "--git-dir",
        "--work-tree",
        "--manifest-path",
        "--color",
        "--max-procs",
        "--max-args",
    ]
)
_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "ksh", "fish"])
_SILENT = frozenset(
    [
        "cd",
        "pushd",
        "popd",
        "export",
        "set",
        "unset",
        "mkdir",
        "rmdir",
        "rm",
        "touch",
        "cp",
        "mv",
        "ln",
        "chmod",
        "chown",
        "true",
        ":",
        "sleep",
        "trap",
        "wait",
        "exit",
        "alias",
        "umask",
        "shift",
        "return",
        "source",
        ".",
        "test",
        "[",
        "[[",
        "break",
        "continue",
        "local",
        "declare",
        "readonly",
        "typeset",
        "shopt",
        "kill",
        "echo",
        "printf",
        "read",
        "let",
        "eval",
    ]
)
# Filters that leave the form of the lines as it is.
_PASSES = frozenset(
    ["head", "tail", "tee", "cat", "less", "more", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "ag", "sponge", "pv"]
)
_READERS = frozenset(
    ["cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "gawk", "cut", "grep", "egrep", "rg"]
)
_GLOBAL_WITH_WORD = {
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")),
    "go": frozenset(("-C",)),
    "npm": frozenset(("--prefix", "-w", "--workspace")),
    "pnpm": frozenset(("--filter", "-F", "-C", "--dir")),
    "yarn": frozenset(("--cwd",)),
    "cargo": frozenset(("--color", "--config", "-Z", "-C")),
    "docker": frozenset(("-H", "--context", "--config")),
}


class _Simple(NamedTuple):
    """One program with its words, and the file that its output goes to ('' for the screen)."""

    words: tuple[str, ...]
    target: str = ""


def effective_commands(command: str) -> list[str]:
    """The programs whose output a shell line shows, in order, each with its words on one line: ``cd x && FOO=1 timeout 9 git
    -C y diff | head`` gives ``git diff``. Empty where nothing is run that prints."""
    return [" ".join(words) for words in effective_words(command)]


def effective_words(command: str) -> list[tuple[str, ...]]:
    """As ``effective_commands``, each as its words without quotes."""
    return list(_effective(command, 0))


def is_bypassed(command: str) -> bool:
    """True if the command's author wants its output whole this once: a comment ``# whole output`` says so."""
    return _MARKER.search(command) is not None


def arguments(words: Sequence[str]) -> list[str]:
    """The words after the program's name that are no options."""
    return [word for word in words[1:] if not word.startswith("-")]


def _effective(command: str, depth: int) -> Iterator[tuple[str, ...]]:
    written: dict[str, tuple[str, ...]] = {}
    for pipeline in _pipelines(command):
        shown: tuple[str, ...] = ()
        for number, simple in enumerate(pipeline):
            words = _unwrap(simple.words)
            passes = number > 0 and simple.words[:1] != ("xargs",) and _passes(words)
            if words and not (shown and passes):
                shown = words
            if simple.target:
                written[simple.target] = shown
            if words[:1] == ("tee",):
                written.update(dict.fromkeys(arguments(words), shown))
        if not shown or pipeline[-1].target:
            continue
        inner = _inner_line(shown)
        if inner and depth < DEPTH_LIMIT:
            yield from _effective(inner, depth + 1)
        elif shown[0] and shown[0] not in _SILENT:
            yield _what_was_written(shown, written)


def _what_was_written(words: tuple[str, ...], written: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Who wrote the file that is read here, if an earlier part of the same line did; else the reader itself."""
    if words[0] in _READERS:
        for word in words[1:]:
            if written.get(word):
                return written[word]
    return words


def _passes(words: tuple[str, ...]) -> bool:
    if not words:
        return False
    if words[0] == "sed":
        scripts = arguments(words)
        return len(scripts) == 1 and _LINES_OF.match(scripts[0]) is not None
    if words[0] in ("grep", "egrep", "rg") and any(
        word in ("-o", "-c", "--only-matching", "--count") for word in words
    ):
        return False
    return words[0] in _PASSES


def _inner_line(words: tuple[str, ...]) -> str:
    """The line that ``bash -c LINE`` runs; '' for anything else."""
    if words[0] in _SHELLS:
        for number, word in enumerate(words[1:-1], 1):
            if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
                return words[number + 1]
    return ""


def _unwrap(words: tuple[str, ...]) -> tuple[str, ...]:
    """The program itself: without assignments, keywords and programs that run another one."""
    for _ in range(16):
        if not words:
            return ()
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
            continue
        name = words[0].replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe") or words[0]
        words = (name, *words[1:])
        if name in _HEADERS:
            return ()
        if name in _KEYWORDS:
            words = words[1:]
        elif words[:2] in _RUNNERS:
            words = _after_options(words[2:], _RUNNERS[words[:2]])
        elif name in _WRAPPERS:
            own, with_word = _WRAPPERS[name]
            words = _after_options(words[1:], with_word)[own:]
        elif _PYTHON.match(name):
            rest = _after_options(words[1:], "WX", stop="m")
            if rest[:1] != ("-m",) or len(rest) < 2:
                return words
            words = rest[1:]
        else:
            return _without_global_options(words)
    return words


def _after_options(words: tuple[str, ...], with_word: str, stop: str = "") -> tuple[str, ...]:
    """What follows the options of a wrapper. Those in ``with_word`` (letters) take the next word along."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        if word == "--":
            return words[at + 1 :]
        if stop and word == f"-{stop}":
            break
        short = len(word) == 2 and word[1] in with_word
        at += 2 if short or word in _LONG_WITH_WORD else 1
    return words[at:]


def _without_global_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """``git -C x --no-pager diff`` → ``git diff``; ``cargo +nightly test`` → ``cargo test``."""
    with_word = _GLOBAL_WITH_WORD.get(words[0])
    if with_word is None:
        return words
    at = 1
    while at < len(words) and words[at][:1] in ("-", "+"):
        at += 2 if words[at] in with_word else 1
    return (words[0], *words[at:])


def _pipelines(command: str) -> Iterator[list[_Simple]]:
    """The pipelines of a line, in order. Parentheses only group."""
    pipeline: list[_Simple] = []
    words: list[str] = []
    target = ""
    for kind, text in _tokens(command):
        if kind == "word":
            words.append(text)
        elif kind == "target":
            target = text
        else:
            if words or target:
                pipeline.append(_Simple(tuple(words), target))
            words, target = [], ""
            if text not in ("|", "|&") and pipeline:
                yield pipeline
                pipeline = []
    if words or target:
        pipeline.append(_Simple(tuple(words), target))
    if pipeline:
        yield pipeline


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(word, its text without quotes), (target, file that standard output goes to) and (end, operator)."""
    at, ends = 0, []
    while at < len(text):
        space = _SPACE.match(text, at)
        if space:
            at = space.end()
            continue
        if text[at] == "#":  # a word never begins with it
            at = (text.find("\n", at) + 1 or len(text) + 1) - 1
            continue
        heredoc = _HEREDOC.match(text, at)
        if heredoc and not text.startswith("<<<", at):
            ends.append(heredoc.group(1) or heredoc.group(2) or heredoc.group(3) or "")
            at = heredoc.end()
            continue
        redirect = _REDIRECT.match(text, at)
        if redirect:
            at, name = _redirected(text, redirect.end())
            sign = redirect.group()
            if (
                ">" in sign
                and sign[0] not in "02345678<"
                and not name.isdigit()
                and name not in ("-", "/dev/stderr", "/dev/stdout")
            ):
                yield "target", name or "?"
            continue
        operator = _OPERATOR.match(text, at)
        if operator:
            at = operator.end()
            if operator.group() == "\n" and ends:
                at = _after_heredocs(text, at, ends)
                ends = []
            yield "end", operator.group()
            continue
        at, word = _word(text, at)
        yield "word", word


def _redirected(text: str, at: int) -> tuple[int, str]:
    if space := _SPACE.match(text, at):
        at = space.end()
    if at >= len(text) or _OPERATOR.match(text, at):
        return at, ""
    return _word(text, at)


def _after_heredocs(text: str, at: int, ends: Sequence[str]) -> int:
    for end in ends:
        while at < len(text):
            stop = text.find("\n", at)
            line = text[at : stop if stop >= 0 else len(text)]
            at = stop + 1 if stop >= 0 else len(text)
            if line.strip() == end:
                break
    return at


def _word(text: str, at: int) -> tuple[int, str]:
    """A word from ``at`` on: where it ends, and its text without quotes."""
    parts: list[str] = []
    start = at
    while at < len(text):
        if plain := _PLAIN.match(text, at):
            parts.append(plain.group())
            at = plain.end()
            continue
        sign = text[at]
        if sign in "'\"`":
            stop = _closing(text, at + 1, sign)
            parts.append(text[at + 1 : stop])
            at = stop + 1
        elif sign == "\\":
            parts.append(text[at + 1 : at + 2])
            at += 2
        elif sign == "$":
            stop = _closing_parenthesis(text, at + 2) if text.startswith("$(", at) else at + 1
            parts.append(text[at:stop])
            at = stop
        else:
            break
    if at == start:  # a sign that begins nothing known
        return at + 1, text[at]
    return min(at, len(text)), "".join(parts)


def _closing(text: str, at: int, quote: str) -> int:
    while at < len(text):
        if text[at] == quote:
            return at
        at += 2 if text[at] == "\\" and quote != "'" else 1
    return len(text)


def _closing_parenthesis(text: str, at: int) -> int:
    """Behind the parenthesis that closes the one before ``at``."""
    depth = 1
    while at < len(text):
        sign = text[at]
        if sign in "'\"`":
            at = _closing(text, at + 1, sign)
        elif sign == "\\":
            at += 1
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(text)
