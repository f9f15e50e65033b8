"""The command ``fork``: goes on with a session in another harness, or from an earlier point of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from obsmem.interfaces.report import many, say, say_json, warn
from obsmem.system.local_time import local_clock
from obsmem.tasks.fork import Fork, Forked, fork
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store


def run_fork(arguments: argparse.Namespace) -> int:
    """``fork SESSION --to HARNESS``: write a session of that harness, and print how to go on with it."""
    wish = Fork(arguments.to, arguments.at, arguments.folder, arguments.budget)
    with open_store() as store:
        stored = find_session(store, arguments.session)
        done = fork(store, stored, wish, local_clock, trial=arguments.dry_run)
    if arguments.json:
        say_json(as_value(done))
        return 0
    _show(done)
    return 0


def as_value(done: Forked) -> dict[str, Any]:
    """A fork as JSON."""
    fitted, written = done.fitted, done.written
    return {
        "from": {**done.draft.of._asdict()},
        "folder": done.draft.folder,
        "budget": done.budget,
        "tokens": fitted.tokens,
        "clipped": fitted.clipped,
        "whole": fitted.whole._asdict(),
        "kept": fitted.kept._asdict(),
        "path": written.path if written else "",
        "session": written.session if written else "",
        "handle": done.session.session.handle if done.session else "",
        "commands": list(written.offers) if written else [],
        "checked": list(done.checked),
        "unchecked": list(done.unchecked),
        "troubles": list(done.troubles),
    }


def _show(done: Forked) -> None:
    fitted, of = done.fitted, done.draft.of
    whole, kept = fitted.whole, fitted.kept
    taken = "would be taken" if done.written is None else "taken"
    say(f"From {of.handle} ({of.harness}), up to entry {of.handle}.{of.seq}, {taken} along:")
    say(f"  turns       {kept.turns} of {whole.turns}")
    say(f"  tool calls  {kept.calls} of {whole.calls}")
    say(f"  characters  {kept.characters:,} of {whole.characters:,}, about {fitted.tokens:,} of {done.budget:,} tokens")
    if fitted.clipped:
        say(f"  {many(fitted.clipped, 'long text')} clipped, each with the id of the entry that has the rest")
    say("Secrets are masked; what the model only thought is left out. Notes and citations come along.")
    if done.written is None:
        return
    say("")
    if done.session is None:
        say("This harness takes no session of another one. Written is a file that its first prompt names:")
    else:
        alone = f" alone ({'; '.join(done.unchecked)})" if done.unchecked else ""
        say(f"Written as session {done.session.session.handle}, read back by {_listed(done.checked)}{alone}. To go on:")
    for line in done.written.offers:
        say(f"  {line}")
    for trouble in done.troubles:
        warn(trouble)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
