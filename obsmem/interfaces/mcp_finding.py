"""The tools that find things: search, file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.finds import Hit, Query, SearchMode
from obsmem.core.tokens import estimate
from obsmem.harnesses import REGISTRY
from obsmem.interfaces import mcp_frame as frame
from obsmem.interfaces.commands_look import story_lines
from obsmem.interfaces.mcp_frame import DEFAULT_TOKENS, INTRODUCTION, WHO
from obsmem.interfaces.mcp_scope import Scope
from obsmem.interfaces.search_apart import find
from obsmem.system.local_time import local_clock
from obsmem.tasks.file_story import tell_file
from obsmem.tasks.here import live_from
from obsmem.tasks.search_scope import read_bounds

Given = Mapping[str, Any]
DEFAULT_HITS = 8
MARGIN = 40  # tokens for what stands below the hits


def search(scope: Scope, given: Given) -> str:
    """Entries and notes, best first, each with its id."""
    hits = find(scope.store, _query(scope, given))
    allowed = [hit for hit in hits.hits if scope.allows_handle(hit.session)]
    below = [frame.plain(hits.message)] if hits.message else []
    if not allowed and given.get("more"):
        goes_on = [f"more: {hits.more}"] if hits.more else []
        return "\n".join(["Nothing more was found.", *below, *goes_on])
    if not allowed:
        return "\n".join(
            ["Nothing was found here. Other words, or mode 'exact' for a piece of one, may find it.", *below]
        )
    room = int(given.get("max_tokens") or DEFAULT_TOKENS) - estimate(INTRODUCTION) - MARGIN
    below += [f"more: {hits.more}"] if hits.more else []
    listed, count = _listed(scope, allowed, room - estimate("\n".join(below)))
    left = [hit.id for hit in allowed[count:]]
    below = [f"also found: {' '.join(left[:10])}"] * bool(left) + below
    return "\n".join([INTRODUCTION, listed, *below])


def _listed(scope: Scope, hits: list[Hit], room: int) -> tuple[str, int]:
    lines = []
    for hit in hits:
        words = frame.inside(frame.words_of(scope.store, f"{hit.snippet} {hit.later}".rstrip()))
        lines.append(f"{_heading(hit)}\n{words}")
    return frame.lines(scope.store.key(), lines, room, who="see each", about="search")


def _heading(hit: Hit) -> str:
    tool = frame.plain(hit.tool) if hit.kind in ("tool_call", "tool_result") else ""
    equal = f"(+{hit.also} equal)" if hit.also else ""
    when = local_clock(hit.at) if hit.at else ""
    words = [f"[{hit.id}]", when, WHO.get(hit.speaker, hit.speaker), hit.kind, tool, hit.harness, equal]
    return " ".join(word for word in words if word)


def file(scope: Scope, given: Given) -> str:
    """What was done with a file, what was said about it, and whether it is still the same."""
    try:
        story = tell_file(scope.store, str(given["path"]), scope.here)
    except NotFound as error:
        raise NotFound(
            f"No session here touched {given['path']!r}. 'search' with this path looks in what was said."
        ) from error
    lines = [frame.inside(frame.words_of(scope.store, line)).strip() for line in story_lines(story)]
    room = int(given.get("max_tokens") or DEFAULT_TOKENS) - estimate(INTRODUCTION) - MARGIN
    told, count = frame.lines(scope.store.key(), lines, room, who="see each", about="file")
    left = [f"({len(lines) - count} more lines: ask with a larger max_tokens)"] if count < len(lines) else []
    return "\n".join([INTRODUCTION, told, *left])


def _query(scope: Scope, given: Given) -> Query:
    harness = str(given.get("harness", ""))
    if harness and harness not in REGISTRY:
        raise UsageError(f"{harness!r} is no harness: there are {', '.join(REGISTRY)}.")
    since, until = read_bounds(str(given.get("since", "")), str(given.get("until", "")))
    sessions = (scope.session(str(given["session"])).session.handle,) if given.get("session") else ()
    own = scope.here.session
    return Query(
        text=str(given["query"]),
        mode=cast("SearchMode", given.get("mode") or "words"),
        sessions=sessions,
        harness=harness,
        workspace="" if scope.everywhere else scope.here.workspace,
        kinds=tuple(given.get("kinds", ())),
        tools=tuple(given.get("tools", ())),
        path=str(given.get("path", "")),
        since=since,
        until=until,
        live=(own.session.handle, live_from(scope.store, own)) if own else None,
        limit=int(given.get("limit", DEFAULT_HITS)),
        after=str(given.get("more", "")),
    )
