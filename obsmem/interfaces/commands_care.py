"""Commands that change the store on purpose: forget, fsck, hooks, index."""

from __future__ import annotations

import argparse

from obsmem.core.errors import NotFound
from obsmem.core.ids import is_entry_id
from obsmem.harnesses import load
from obsmem.interfaces.report import agreed, many, say, say_json, size, warn
from obsmem.system.launcher import quoted, write_launcher
from obsmem.system.paths import data_home
from obsmem.tasks.called import command, installed_script
from obsmem.tasks.copies import copies_of, drop_places
from obsmem.tasks.entries import find_entry
from obsmem.tasks.forget import forget_entry, forget_session, undo_forget
from obsmem.tasks.fsck import check_home
from obsmem.tasks.recount import recount
from obsmem.tasks.remember import descendants
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import open_store
from obsmem.tasks.words import index_all


def run_forget(arguments: argparse.Namespace) -> int:
    """``forget SESSION|ENTRY``: remove it from archive, notes, index and backups, and keep it from coming back."""
    with open_store() as store:
        if arguments.undo:
            harness, _, session_id = arguments.what.partition("/")
            done = undo_forget(store, harness, session_id)
            if not done:
                raise NotFound(
                    f"No session {arguments.what!r} was forgotten. Name it as HARNESS/SESSION-ID, as forgetting it printed."
                )
            if arguments.json:
                say_json({"allowed": arguments.what})
            else:
                say("It may be read again.")
            return 0
        is_entry = is_entry_id(arguments.what)
        stored = None if is_entry else find_session(store, arguments.what)
        what = (
            f"entry {arguments.what}"
            if stored is None
            else f"session {stored.session.handle} ({stored.session.name or stored.session.id})"
        )
        if not arguments.yes and not agreed(f"Remove {what} for good?"):
            warn("Nothing was removed. Run it again with --yes to skip the question.")
            return 1
        concerned = find_entry(store, arguments.what)[0] if stored is None else stored
        copies = copies_of(store, [concerned, *descendants(store, concerned.session.handle)])
        result = forget_entry(store, arguments.what) if stored is None else forget_session(store, stored)
        if stored is not None:
            drop_places(store, stored.session.handle)
    if arguments.json:
        say_json({**result._asdict(), "copies": copies._asdict()})
    else:
        say(
            f"Removed {what}: {many(result.entries, 'entry')}, {size(result.bytes)} of transcript, "
            f"{many(result.notes, 'note')}."
        )
        say("The harness's own transcript is not touched: remove it there if it should be gone from this machine.")
        for sentence in copies.words(command()):
            say(sentence)
        if stored is not None:
            name = f"{stored.session.harness}/{stored.session.id}"
            say(f"It will not be read again, unless '{command()} forget {name} --undo' allows it.")
    return 0


def run_fsck(arguments: argparse.Namespace) -> int:
    """``fsck``: check all three databases; with ``--repair`` mend what can be mended. Exit status 5 if anything stays wrong."""
    findings = check_home(data_home(), repair=arguments.repair)
    if arguments.json:
        say_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            say(f"{finding.where}: {finding.what}" + (" — repaired" if finding.repaired else ""))
        left = sum(not finding.repaired for finding in findings)
        hint = "" if arguments.repair or not left else " Run it with --repair to mend what can be mended."
        say("The store is sound." if not findings else f"{many(len(findings), 'finding')}, {left} left.{hint}")
    return 5 if any(not finding.repaired for finding in findings) else 0


def run_hooks(arguments: argparse.Namespace) -> int:
    """``hooks HARNESS``: write the launcher and print the config to copy into that harness, with this machine's paths; with
    ``--reduce`` what shortens outputs, too."""
    home = data_home()
    module = load(arguments.harness)
    launcher = quoted(write_launcher(home, installed_script()))
    config = module.hook_config(lambda words: f"{launcher} {words}")
    if arguments.reduce:
        config.get("hooks", {}).update(module.reduce_config(lambda words: f"{launcher} {words}").get("hooks", {}))
        if module.SHORTENS:
            warn(f"{arguments.harness}: outputs stay as they are: {module.SHORTENS}.")
    say_json(config)
    return 0


def run_index(arguments: argparse.Namespace) -> int:
    """``index``: fill the full-text index for all sessions now instead of in the background."""
    with open_store() as store:
        added, counted = index_all(store, float("inf")), recount(store, float("inf"))
    if arguments.json:
        say_json({"added": added, "recounted": counted})
    else:
        say(f"Indexed {many(added, 'entry')}.")
        if counted:
            say(f"Counted the requests of {many(counted, 'session')} anew, which an earlier version had read.")
    return 0
