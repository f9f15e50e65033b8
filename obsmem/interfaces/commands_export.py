"""``export``: a session as plain files, or sessions as a bundle."""

from __future__ import annotations

import argparse

from obsmem.core.errors import UsageError
from obsmem.interfaces.report import many, say, say_json
from obsmem.system.local_time import local_clock
from obsmem.tasks.copies import note_export
from obsmem.tasks.export_folder import export_folder
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store


def run_export(arguments: argparse.Namespace) -> int:
    """``export SESSION --folder DIR``: one page a turn, outputs beside them; again, only what changed."""
    if arguments.bundle:
        from obsmem.interfaces.commands_bundle import run_export_bundle

        return run_export_bundle(arguments)
    if len(arguments.session) > 1:
        raise UsageError("--folder takes one session: export each into a folder of its own, or all with --bundle FILE.")
    with open_store(readonly=True) as store:
        stored = find_session(store, arguments.session[0])
        done = export_folder(store, stored, arguments.folder, local_clock)
        try:
            note_export(store, [stored.session.handle], done.folder)
        except OSError:
            pass  # where the data folder may not be written, forgetting cannot name the place later
    if arguments.json:
        say_json(done._asdict())
        return 0
    below = f", {many(done.subagents, 'sub-agent')}" if done.subagents else ""
    say(
        f"{done.folder}: {many(done.turns, 'turn')}{below}, {many(done.files, 'file')}, {done.written} of them written now."
    )
    say("To send an agent there:")
    say(done.pointer)
    return 0
