"""How listings are shortened: files of a folder, paths of a tree, hits of a search.

Invariant: what is folded is counted under its folder or file, and its first and last lines there stay.
"""

from __future__ import annotations

from collections.abc import Callable

from obsmem.core import late
from obsmem.core.reduce_rule import Rule, Words, arguments_of, fold_middle, grouped
from obsmem.core.reduce_sheet import Sheet

ENTRIES_WHOLE = 40
ENTRIES_KEPT = (15, 5)
PATHS_WHOLE = 40
PATHS_KEPT = (3, 1)  # of one folder
HITS_WHOLE = 40
HITS_KEPT = (4, 1)  # of one file
HITS_LIMIT = 150  # kept hits, above which fewer of each file stay
LINES_KEPT = (60, 15)  # of a listing that grouping does not make short enough
HIT_CHARACTERS = 500
HIT_AROUND = 200

_LONG_ENTRY = late.pattern(
    r"[bcdlps-][rwxsStT-]{9}[@+.]?\s+\d+\s.*?\s(?:\d\d:\d\d(?::\S+)?(?: [+-]\d{4})?|\d{4})\s+(\S.*)$"
)
_ENTRY = late.pattern(r"[^\s=(){};:,\"'|<>#*][^=(){};\"|<>]*$")  # names; what else a shell line prints looks otherwise
_FOLDER_HEAD = late.pattern(r"(?:\S.*):$")
_BRANCH = late.pattern(r"((?:[│|]?[   ]{2,4})*)[├└|`+\\][─-]{1,3} ?(.+)$")
_HIT = late.pattern(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,300}?)([:-])(\d+)\2")
_NAMED_HIT = late.pattern(r"([\w.@~+/\\-]*[\w-]\.\w{1,10}|[\w.@~+-]*(?:/[\w.@~+-]+)+):")
_NUMBERED = late.pattern(r"\d+[:-]")
_WORD = late.pattern(r"\w{4,}")
_PATH_LINE = late.pattern(r"(?:\.{1,2}/|/|~/|[A-Za-z]:[\\/])[^:\n\t|]*$|[^\s:|`*#-][^\s:|`*]*$")


def _fold_ls(sheet: Sheet, words: Words) -> None:
    block: list[int] = []
    for index in range(len(sheet.bare) + 1):
        line = sheet.bare[index] if index < len(sheet.bare) else ""
        if _LONG_ENTRY.match(line) or (_ENTRY.match(line) and not _FOLDER_HEAD.match(line) and line[:6] != "total "):
            block.append(index)
            continue
        if len(block) > ENTRIES_WHOLE:
            fold_middle(sheet, block, *ENTRIES_KEPT, lambda at: _kind_of(sheet.bare[at]))
        block = []


def _kind_of(line: str) -> str:
    long = _LONG_ENTRY.match(line)
    name = (long.group(1) if long else line).split(" -> ")[0].rstrip("*")
    if (line.startswith("d") and long) or name.endswith("/"):
        return "more folders"
    stem, dot, ending = name.rpartition(".")
    return f"more *.{ending}" if dot and stem and len(ending) <= 8 and ending.isalnum() else "more without an ending"


def _fold_paths(sheet: Sheet, words: Words) -> None:
    found = [(index, _folder_of(line)) for index, line in enumerate(sheet.bare) if line and _PATH_LINE.match(line)]
    if len(found) <= PATHS_WHOLE:
        return
    groups = grouped(found)
    for folder, indices in groups.items():
        if len(indices) > sum(PATHS_KEPT) + 1:
            fold_middle(sheet, indices, *PATHS_KEPT, f"more in {folder}")
    _thin_out(sheet, [index for index, _ in found], lambda index: f"more below {_top(sheet.bare[index])}")


def _folder_of(path: str) -> str:
    head, slash, _ = path.rstrip("/\\").replace("\\", "/").rpartition("/")
    return f"{head}/" if slash else "./"


def _top(path: str) -> str:
    parts = _folder_of(path).split("/")[:-1]
    depth = 3 if parts[:1] in ([""], ["."], [".."], ["~"]) else 2
    return "/".join(parts[:depth]) + "/"


def _thin_out(sheet: Sheet, indices: list[int], label: Callable[[int], str]) -> None:
    """Where too much is left of a listing, keep its beginning and end."""
    left = [index for index in indices if sheet.is_kept(index)]
    if len(left) > 2 * sum(LINES_KEPT):
        fold_middle(sheet, left, *LINES_KEPT, label)


def _fold_tree(sheet: Sheet, words: Words) -> None:
    parents: list[tuple[int, str]] = []
    found: list[tuple[int, str]] = []
    for index, line in enumerate(sheet.bare):
        branch = _BRANCH.match(line)
        if not branch:
            continue
        depth, name = len(branch.group(1)), branch.group(2)
        while parents and parents[-1][0] >= depth:
            parents.pop()
        found.append((index, "/".join(parent for _, parent in parents) + "/" if parents else "./"))
        parents.append((depth, name.rstrip("/")))
    if len(found) <= PATHS_WHOLE:
        return
    for folder, indices in grouped(found).items():
        leaves = [index for index in indices if not _has_children(sheet, index)]
        if len(leaves) > sum(PATHS_KEPT) + 1:
            fold_middle(sheet, leaves, *PATHS_KEPT, f"more in {folder}")
    folders = dict(found)
    _thin_out(sheet, [index for index, _ in found], lambda index: f"more below {_top(folders[index])}")


def _has_children(sheet: Sheet, index: int) -> bool:
    here = _BRANCH.match(sheet.bare[index])
    below = _BRANCH.match(sheet.bare[index + 1]) if index + 1 < len(sheet.bare) else None
    return bool(here and below and len(below.group(1)) > len(here.group(1)))


def _fold_hits(sheet: Sheet, words: Words) -> None:
    hits = _hits(sheet)
    _cut_hits(sheet, words)
    if len(hits) <= HITS_WHOLE:
        return
    groups = grouped(hits)
    first, last = HITS_KEPT
    if len(groups) == 1 and "" in groups:
        first, last = LINES_KEPT
    while sum(min(len(indices), first + last) for indices in groups.values()) > HITS_LIMIT and first > 1:
        first, last = first // 2, 0
    for path, indices in groups.items():
        if len(indices) > first + last + 1:
            fold_middle(sheet, indices, first, last, f"more in {path}" if path else "more")
    names = dict(hits)
    _thin_out(sheet, [index for index, _ in hits], lambda index: f"more below {_top(names[index])}")


def _hits(sheet: Sheet) -> list[tuple[int, str]]:
    """(line, path) of each hit and each line of its context; the path '' where hits are of one file that is not named."""
    found: list[tuple[int, str]] = []
    path = ""
    for index, line in enumerate(sheet.bare):
        hit = _HIT.match(line)
        named = hit or _NAMED_HIT.match(line)
        if named:
            path = named.group(1)
            found.append((index, path))
        elif line == "--" and path:
            found.append((index, path))
        elif _NUMBERED.match(line):
            found.append((index, ""))
        elif line and _PATH_LINE.match(line) and "/" in line and " " not in line:
            found.append((index, _folder_of(line)))
    return found


def _cut_hits(sheet: Sheet, words: Words) -> None:
    """Leave of a very long line what stands around the words that were looked for."""
    wanted = [word.lower() for argument in arguments_of(words)[:1] for word in _WORD.findall(argument)]
    for index, line in enumerate(sheet.lines):
        if len(line) <= HIT_CHARACTERS:
            continue
        low = line.lower()
        hit = _HIT.match(line)
        start = hit.end() if hit else 0
        places = [place for word in wanted if (place := low.find(word, start)) >= 0]
        middle = min(places) if places else start
        left, right = max(start, middle - HIT_AROUND), max(middle + HIT_AROUND, start + 2 * HIT_AROUND)
        end = len(line.rstrip("\r\n"))
        for begin, stop in ((start, left), (right, end)):
            if stop - begin > HIT_AROUND // 2:
                sheet.cut(index, begin, stop, f"{stop - begin:,} characters")


RULES = (
    Rule(
        "ls",
        ("ls", "eza", "exa", "dir"),
        "of folders with more than 40 entries those between the first 15 and the last 5, counted by ending",
        _fold_ls,
        talk=False,
    ),
    Rule(
        "find",
        ("find", "fd", "fdfind", "git ls-files", "git ls-tree", "locate"),
        "of more than 40 paths those beyond 4 of a folder, counted per folder",
        _fold_paths,
        talk=False,
    ),
    Rule("tree", ("tree",), "of more than 40 branches the leaves beyond 4 of a folder", _fold_tree, talk=False),
    Rule(
        "search",
        ("grep", "egrep", "fgrep", "rg", "ag", "ack", "git grep"),
        "of more than 40 hits those beyond 5 of a file, counted per file; hits longer than 500 characters away from the words",
        _fold_hits,
        talk=False,
    ),
)
