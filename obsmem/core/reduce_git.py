"""How the output of git is shortened: long lists of files, context and generated files in diffs, old commits in logs.

Invariant: of a diff every changed line of a file that people write stays; of a log every commit's hash and subject that is
not counted in a mark.
"""

from __future__ import annotations

from obsmem.core import late
from obsmem.core.reduce_rule import Rule, Words, fold_middle
from obsmem.core.reduce_sheet import Sheet

UNTRACKED_KEPT = 12
CHANGED_KEPT = 60
CONTEXT_KEPT = 3  # unchanged lines at each end of a long run
CONTEXT_FOLDED = 4  # so many between them at least are folded
DELETED_KEPT = 3
COMMITS_WHOLE = 8
COMMITS_KEPT = (30, 5)
STAT_KEPT = (15, 3)

_SHORT = late.pattern(r"(\?\?|!!|[ MADRCUT?!]{2}) \S")
_HINT = late.pattern(r"\s+\(use \"git |no changes added to commit|nothing added to commit but untracked")
_LISTED = late.pattern(r"\t(?:(?:modified|new file|deleted|renamed|copied|typechange|both \w+):\s+)?\S")
_DIFF = late.pattern(r"diff --(?:git|cc|combined) ")
_HUNK = late.pattern(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_GENERATED = late.pattern(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock|poetry\.lock|uv\.lock|Pipfile\.lock"
    r"|pdm\.lock|composer\.lock|Gemfile\.lock|go\.sum|flake\.lock|mix\.lock|Podfile\.lock|packages\.lock\.json)$"
    r"|\.min\.(?:js|css)$|\.(?:map|svg|snap|lockb)$|(?:^|/)(?:dist|vendor|node_modules)/"
)
_COMMIT = late.pattern(r"[*|/\\_ ]*commit [0-9a-f]{7,64}\b")
_ONELINE = late.pattern(r"[*|/\\_ ]*[0-9a-f]{7,40}(?: |$)")
_COMMIT_HEAD = late.pattern(r"[*|/\\_ ]*(?:Author|AuthorDate|Commit|CommitDate|Date|Merge|gpg|Refs):? ")
_STAT = late.pattern(r" \S.* \| +(?:\d+ [+-]*|\d+|Bin .*)$")
_NUMSTAT = late.pattern(r"(?:\d+|-)\t(?:\d+|-)\t\S")


def _fold_status(sheet: Sheet, words: Words) -> None:
    untracked: list[int] = []
    changed: list[int] = []
    section = ""
    for index, line in enumerate(sheet.bare):
        short = _SHORT.match(line)
        if short:
            (untracked if short.group(1) in ("??", "!!") else changed).append(index)
        elif _LISTED.match(line):
            (untracked if section.startswith(("Untracked", "Ignored")) else changed).append(index)
        elif _HINT.match(line):
            sheet.fold(index, "hints", 0)
        elif line.strip():
            section = line
    for found, kept, what in ((untracked, UNTRACKED_KEPT, "untracked"), (changed, CHANGED_KEPT, "changed")):
        if len(found) > kept + 6:
            fold_middle(sheet, found, kept - 2, 2, lambda index, what=what: f"{what} in {_folder(sheet.bare[index])}")  # type: ignore[misc]


def _folder(line: str) -> str:
    path = line.strip().split(" ")[-1].strip('"')
    head, slash, _ = path.rstrip("/").rpartition("/")
    return f"{head}/" if slash else "./"


def _fold_diff(sheet: Sheet, words: Words) -> None:
    path, gone, left = "", False, (0, 0)
    body: list[int] = []
    for index, line in enumerate(sheet.bare):
        if left != (0, 0):
            left = _count_down(left, line)
            body.append(index)
            continue
        _fold_hunk(sheet, body, path, gone)
        body = []
        hunk = _HUNK.match(line)
        if hunk and path:
            if _GENERATED.search(path):
                sheet.fold(index, f"changed lines of {path}", 0)
            left = (int(hunk.group(1) or 1), int(hunk.group(2) or 1))
        elif _DIFF.match(line):
            path, gone = line.split(" ", 2)[2].rpartition(" b/")[2], False
        elif line.startswith("deleted file mode"):
            gone = True
    _fold_hunk(sheet, body, path, gone)


def _count_down(left: tuple[int, int], line: str) -> tuple[int, int]:
    """How many old and new lines a hunk still holds after this one."""
    old, new = left
    sign = line[:1]
    if sign == "\\":
        return left
    return max(0, old - (sign != "+")), max(0, new - (sign != "-"))


def _fold_hunk(sheet: Sheet, body: list[int], path: str, gone: bool) -> None:
    if not body:
        return
    if _GENERATED.search(path):
        for index in body:
            sheet.fold(index, f"changed lines of {path}", sheet.bare[index][:1] in ("+", "-"))
        return
    if gone:
        for index in body[DELETED_KEPT:]:
            sheet.fold(index, f"deleted lines of {path}")
        return
    run: list[int] = []
    for index in [*body, -1]:
        if index >= 0 and sheet.bare[index][:1] in (" ", ""):
            run.append(index)
        else:
            if len(run) >= 2 * CONTEXT_KEPT + CONTEXT_FOLDED:
                fold_middle(sheet, run, CONTEXT_KEPT, CONTEXT_KEPT, "unchanged lines")
            run = []


def _fold_log(sheet: Sheet, words: Words) -> None:
    commits = [index for index, line in enumerate(sheet.bare) if _COMMIT.match(line)]
    if len(commits) <= COMMITS_WHOLE:
        lines = [index for index, line in enumerate(sheet.bare) if _ONELINE.match(line)]
        if not commits and len(lines) > sum(COMMITS_KEPT) + 10:
            fold_middle(sheet, lines, *COMMITS_KEPT, "more commits")
        return
    for number, start in enumerate(commits):
        if number >= COMMITS_WHOLE:
            end = commits[number + 1] if number + 1 < len(commits) else len(sheet.bare)
            _fold_commit(sheet, start + 1, end)


def _fold_commit(sheet: Sheet, start: int, end: int) -> None:
    """Leave the subject of a commit: the first indented line behind its heads."""
    subject = -1
    for index in range(start, end):
        line = sheet.bare[index].lstrip("*|/\\_ ") if subject < 0 else sheet.bare[index]
        if _DIFF.match(sheet.bare[index]):
            return
        if subject < 0 and line and not _COMMIT_HEAD.match(sheet.bare[index]):
            subject = index
        elif _STAT.match(sheet.bare[index]) or _NUMSTAT.match(sheet.bare[index]):
            continue
        else:
            sheet.fold(index, "more lines of the commits above", quiet=True)


def _fold_stat(sheet: Sheet, words: Words) -> None:
    run: list[int] = []
    for index in range(len(sheet.bare) + 1):
        line = sheet.bare[index] if index < len(sheet.bare) else ""
        if _STAT.match(line) or _NUMSTAT.match(line):
            run.append(index)
            continue
        if len(run) > sum(STAT_KEPT) + 6:
            fold_middle(sheet, run, *STAT_KEPT, lambda at: f"more in {_stat_folder(sheet.bare[at])}")
        run = []


def _stat_folder(line: str) -> str:
    path = line.split("|")[0].strip() if "|" in line else line.rpartition("\t")[2]
    head, slash, _ = path.rpartition("/")
    return f"{head}/" if slash else "./"


RULES = (
    Rule(
        "git-status",
        ("git status",),
        "untracked files beyond 12 and changed ones beyond 60, counted per folder; hints",
        _fold_status,
        talk=False,
    ),
    Rule(
        "git-stat",
        ("git diff", "git show", "git log", "git pull", "git merge", "git whatchanged", "git stash"),
        "lines of a list of changed files beyond 18, counted per folder",
        _fold_stat,
        talk=False,
    ),
    Rule(
        "git-diff",
        ("git diff", "git show", "git log", "git format-patch", "git stash show", "gh pr diff", "diff"),
        "the inside of long unchanged stretches; what changed in lock files, bundles and snapshots; the rest of deleted files",
        _fold_diff,
        talk=False,
    ),
    Rule(
        "git-log",
        ("git log", "git reflog", "git rev-list", "git shortlog"),
        "from the 9th commit on all but hash and subject; of one-line logs those between the first 30 and the last 5",
        _fold_log,
        talk=False,
    ),
)
