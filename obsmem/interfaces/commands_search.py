"""The command that finds things: search. It writes nothing."""

from __future__ import annotations

import argparse
import shlex

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.finds import Hit, Hits, Query, SearchMode
from obsmem.harnesses import REGISTRY
from obsmem.interfaces.report import say, say_json, warn
from obsmem.interfaces.search_apart import find
from obsmem.system.local_time import local_clock
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.here import Here, find_here, live_from
from obsmem.tasks.search_scope import read_bounds
from obsmem.tasks.sessions import find_session
from obsmem.tasks.store import Store, open_store

SPOKE = {"human": "user"}


def run_search(arguments: argparse.Namespace) -> int:
    """``search WORDS…``: entries and notes that hold them, best first, each with the command that shows it whole."""
    with open_store(readonly=True) as store:
        here = find_here(store)
        query, said = _query(store, arguments, here)
        hits = find(store, query)
    hits = hits._replace(message=" ".join(part for part in (said, hits.message) if part))
    if arguments.json:
        say_json({**hits._asdict(), "hits": [hit._asdict() for hit in hits.hits]})
    else:
        _print(hits, arguments, query)
    return 0 if hits.hits else NotFound.exit_code


def _query(store: Store, arguments: argparse.Namespace, here: Here) -> tuple[Query, str]:
    """What the words and options ask for, and a sentence where something else was taken than was said."""
    if arguments.harness and arguments.harness not in REGISTRY:
        raise UsageError(f"{arguments.harness!r} is no harness: there are {', '.join(REGISTRY)}.")
    mode: SearchMode = "exact" if arguments.exact else "regex" if arguments.regex else "words"
    workspace, said = _workspace(store, arguments, here)
    since, until = read_bounds(arguments.since, arguments.until)
    query = Query(
        text=_text(arguments.words, mode),
        mode=mode,
        sessions=tuple(find_session(store, name).session.handle for name in arguments.session),
        harness=arguments.harness,
        workspace=workspace,
        kinds=tuple(arguments.kind),
        tools=tuple(arguments.tool),
        path=arguments.path,
        since=since,
        until=until,
        live=(here.session.session.handle, live_from(store, here.session)) if here.session else None,
        own=arguments.own,
        limit=arguments.limit,
        after=arguments.after,
    )
    return query, said


def _text(words: list[str], mode: SearchMode) -> str:
    """The words as one text. Of several, one with blanks in it is a phrase: the shell took its quotation marks."""
    if mode != "words" or len(words) < 2:
        return " ".join(words)
    return " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)


def _workspace(store: Store, arguments: argparse.Namespace, here: Here) -> tuple[str, str]:
    if arguments.everywhere or (arguments.session and not arguments.here):
        return "", ""
    if arguments.here or any(one.session.workspace == here.workspace for one in store.archive.sessions()):
        return here.workspace, ""
    return "", "No session of this folder is in the store, so all of them were searched."


def _print(hits: Hits, arguments: argparse.Namespace, query: Query) -> None:
    recall = recall_command()
    for hit in hits.hits:
        say(_heading(hit))
        say(f"  {hit.snippet} {hit.later}".rstrip())
        say(f"  {recall} {hit.id}")
    if hits.message:
        warn(hits.message)
    if not hits.hits:
        warn(_nothing(query))
    if hits.more:
        words = " ".join(shlex.quote(word) for word in arguments.words)
        warn(f"More: the same search ({words}) with --after {hits.more}")


def _heading(hit: Hit) -> str:
    who = SPOKE.get(hit.speaker, hit.speaker)
    what = {"note": "note", "thinking": "thinking", "summary": "summary"}.get(hit.kind, "")
    tool = hit.tool if hit.kind in ("tool_call", "tool_result") else ""
    equal = f"(+{hit.also} equal)" if hit.also else ""
    words = [f"[{hit.id}]", local_clock(hit.at), who, what, tool, hit.harness, equal]
    return " ".join(word for word in words if word)


def _nothing(query: Query) -> str:
    if query.after:
        return "Nothing more was found."
    tries = []
    if query.mode == "words":
        tries.append("--exact finds pieces of words")
    if query.workspace:
        tries.append("--everywhere looks in all workspaces")
    if query.kinds or query.tools or query.path or query.since or query.until or query.harness:
        tries.append("fewer options find more")
    hint = "; ".join(tries) + "." if tries else f"'{command()} sessions' lists what there is."
    return f"Nothing was found. {hint}"
