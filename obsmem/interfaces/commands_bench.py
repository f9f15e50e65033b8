"""The command that runs a bench on sessions of the user's own: bench."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from obsmem.core.errors import NotFound
from obsmem.tasks.called import installed_script
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store


def run_bench(arguments: argparse.Namespace) -> int:
    """``bench survival [SESSION…]``: what is known after the compactions that really happened in these sessions."""
    root = os.path.dirname(installed_script())
    if not os.path.isfile(os.path.join(root, "bench", arguments.name, "__main__.py")):
        raise NotFound(
            f"There are no benches in {root}: they come with a clone of the project, not with an installation."
        )
    with open_store(readonly=True) as store:
        named = [find_session(store, name) for name in arguments.sessions]
        chosen = named or [one for one in store.archive.sessions() if store.archive.boundaries(one.no)]
        paths = [one.session.transcript for one in chosen if os.path.isfile(one.session.transcript)]
    if not paths:
        raise NotFound(
            "None of these sessions has a transcript with a compaction that is still there. 'ingest' takes some in."
        )
    words = [sys.executable, "-m", f"bench.{arguments.name}", *paths, "--half", "both"]
    if arguments.output:
        words += ["--out", os.path.abspath(arguments.output)]
    # For as long as the user likes: it reads those files and writes nothing else.
    return subprocess.call(words, cwd=root)
