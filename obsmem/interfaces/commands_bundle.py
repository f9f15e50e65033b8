"""Sessions between machines: ``export --bundle``, ``import``, ``remote``."""

from __future__ import annotations

import argparse
import os

from obsmem.core.errors import NotFound, UsageError
from obsmem.interfaces.report import agreed, counts, many, say, say_json, size, warn
from obsmem.system.files import write_atomic
from obsmem.tasks.bundle import export_bundle, secrets_in
from obsmem.tasks.bundle_import import Imported, import_path
from obsmem.tasks.copies import note_export
from obsmem.tasks.fingerprint import fingerprint
from obsmem.tasks.remote import add_remote, pull, push, remove_remote, see_remote
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import Store, open_store


def run_export_bundle(arguments: argparse.Namespace) -> int:
    """``export SESSION… --bundle FILE``: masked, unless ``--raw`` was asked for and agreed to."""
    with open_store() as store:
        sessions = list({one.no: one for one in (find_session(store, name) for name in arguments.session)}.values())
        if arguments.raw:
            found = secrets_in(store, sessions)
            holds = f"It holds secrets: {counts(found)}." if found else "No secret was recognised in it."
            if not arguments.yes and not agreed(f"{holds} Leave everything in?"):
                warn(f"{holds} Nothing was written: leave --raw out to mask them, or add --yes to leave them in.")
                return 1
            warn(holds)
        data = export_bundle(store, sessions, raw=arguments.raw)
        path = os.path.abspath(arguments.bundle)
        write_atomic(path, data)
        note_export(store, [one.session.handle for one in sessions], path)
    if arguments.json:
        say_json({"path": path, "sessions": len(sessions), "bytes": len(data), "masked": not arguments.raw})
    else:
        secrets = "secrets left in" if arguments.raw else "secrets masked"
        say(f"{path}: {many(len(sessions), 'session')}, {size(len(data))}, {secrets}.")
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    """``import FILE|FOLDER``: the union of what is here and what comes."""
    if not os.path.exists(arguments.path):
        raise NotFound(f"There is no file or folder {arguments.path!r}: name a bundle, or a folder of them.")
    with open_store() as store:
        _tell(store, import_path(store, arguments.path, arguments.workspace), arguments.json)
    return 0


def _tell(store: Store, done: Imported, json: bool) -> None:
    if json:
        say_json({**done._asdict(), "fingerprint": fingerprint(store)})
        return
    for name, why in done.left_out:
        warn(f"{name} was left out: {why}.")
    say(
        f"{many(done.sessions, 'new session')}, {many(done.entries, 'new entry')}, {done.memory} new of notes and the like."
    )
    say(
        f"What this store shares has the fingerprint {fingerprint(store)[:16]}; a store that holds the same has the same."
    )


def run_remote(arguments: argparse.Namespace) -> int:
    """``remote add URL | status | push [SESSION…] | pull | remove``."""
    with open_store() as store:
        action, values = arguments.action, arguments.value
        if (action == "add") != (len(values) == 1) and action != "push":
            raise UsageError("'remote add' takes one address; status, pull and remove take none.")
        result: dict[str, object]
        if action == "add":
            add_remote(store, values[0])
            result, said = {"added": values[0]}, "Set. 'observational-memory remote push' sends what is here, masked."
        elif action == "remove":
            known = remove_remote(store)
            result, said = (
                {"removed": known},
                "Taken away; what the repository holds stays there." if known else "There was none.",
            )
        elif action == "pull":
            _tell(store, pull(store, arguments.workspace), arguments.json)
            return 0
        elif action == "push":
            chosen = [find_session(store, name) for name in values] or store.archive.sessions()
            sent = push(store, [one for one in chosen if one.session.role != "worker"])
            result = sent._asdict()
            gone = f" {many(sent.removed, 'session')} forgotten here went from there, too." if sent.removed else ""
            said = f"{many(sent.sessions, 'session')}, {sent.changed} of them changed and sent.{gone}"
        else:
            seen = see_remote(store)
            result = {**seen._asdict(), "fingerprint": fingerprint(store)}
            lines = [
                f"{name}{' (this store)' if name == seen.store else ''}: {many(n, 'session')}"
                for name, n in seen.bundles.items()
            ]
            said = "\n".join([seen.url, *lines])
    if arguments.json:
        say_json(result)
    else:
        for line in said.split("\n"):
            say(line)
    return 0
