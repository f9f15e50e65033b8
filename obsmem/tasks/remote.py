"""Bundles in a git repository of the user's: each store writes into a folder of its own, so nothing ever conflicts.

Invariants: only what was asked for is sent, and only masked; a session that has not changed makes no change there; what
other stores wrote is only ever read.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from obsmem.core.errors import NotFound, UsageError
from obsmem.store.archive import StoredSession
from obsmem.store.archive_rows import session_hash
from obsmem.system.files import make_folder, read_bytes, remove, write_atomic
from obsmem.system.git import GitFailed, check_address, git
from obsmem.system.lock import hold
from obsmem.system.paths import safe_name
from obsmem.tasks.bundle import export_bundle, store_id
from obsmem.tasks.bundle_format import ENDING, unpack
from obsmem.tasks.bundle_import import MOST_FILE, Imported, import_path
from obsmem.tasks.store import Store

ADDRESS, CLONE, MACHINES, BRANCH = "remote-url", "remote", "machines", "main"
TRIES = 3  # of a push that another machine's came before
LOCK_SECONDS = 10.0


class Pushed(NamedTuple):
    """How many sessions were looked at, how many files changed by it, and how many went since their session was forgotten
    here."""

    sessions: int
    changed: int
    removed: int = 0


class Remote(NamedTuple):
    """The repository's address, this store's folder in it, and how many bundles each store has there as last fetched."""

    url: str
    store: str
    bundles: dict[str, int]


def add_remote(store: Store, url: str) -> None:
    """Use a repository from now on. Raises UsageError or GitFailed; nothing is kept then."""
    url = check_address(os.path.abspath(url) if os.path.isdir(url) else url)
    if _address(store):
        raise UsageError("There is a remote already: take it away with 'observational-memory remote remove' first.")
    with hold(store.home, "remote", seconds=LOCK_SECONDS):
        folder = _clone(store)
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        try:
            git(folder, "init", "-q")
            git(folder, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
            git(folder, "remote", "add", "origin", url)
            _fetch(folder)
        except GitFailed:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        write_atomic(os.path.join(store.home, ADDRESS), url.encode("utf-8") + b"\n")


def remove_remote(store: Store) -> bool:
    """Use no repository any more; what it holds stays there. False where there was none."""
    known = bool(_address(store))
    remove(os.path.join(store.home, ADDRESS))
    shutil.rmtree(_clone(store), ignore_errors=True)
    return known


def see_remote(store: Store) -> Remote:
    """What is known of the repository. Raises NotFound."""
    folder = _ready(store)
    machines = os.path.join(folder, MACHINES)
    found = {
        name: sum(one.endswith(ENDING) for one in os.listdir(os.path.join(machines, name)))
        for name in (sorted(os.listdir(machines)) if os.path.isdir(machines) else [])
        if os.path.isdir(os.path.join(machines, name))
    }
    return Remote(_address(store), store_id(store), found)


def push(store: Store, sessions: list[StoredSession]) -> Pushed:
    """Write a bundle of each session, take those away that were forgotten here, and send that. Raises NotFound or
    GitFailed."""
    folder = _ready(store)
    with hold(store.home, "remote", seconds=LOCK_SECONDS):
        _fetch(folder)
        own = os.path.join(folder, MACHINES, store_id(store))
        make_folder(own)
        changed = 0
        for stored in sessions:
            path = sent_file(store, stored)
            data = export_bundle(store, [stored])
            if read_bytes(path, len(data) + 1) != data:
                write_atomic(path, data)
                changed += 1
        removed = _remove_forgotten(store, own)
        git(folder, "add", "--all", "--", f"{MACHINES}/{store_id(store)}")
        if git(folder, "status", "--porcelain", "--", MACHINES).strip():
            git(folder, "commit", "-q", "-m", f"Sessions of {store_id(store)}")
        if sessions or removed:
            _send(folder)
    return Pushed(len(sessions), changed, removed)


def sent_file(store: Store, stored: StoredSession) -> str:
    """Where the bundle of a session stands in this store's folder of the repository, if it was sent."""
    name = safe_name(f"{stored.session.harness}-{stored.session.handle}") + ENDING
    return os.path.join(_clone(store), MACHINES, store_id(store), name)


def sent_to(store: Store) -> str:
    """The address of the repository; '' for none."""
    return _address(store)


def _remove_forgotten(store: Store, own: str) -> int:
    """Take away the bundles of sessions that were forgotten here. One whose session is merely missing stays: a store that
    was lost must not empty its copy."""
    kept = {os.path.basename(sent_file(store, stored)) for stored in store.archive.sessions()}
    removed = 0
    for name in os.listdir(own):
        path = os.path.join(own, name)
        if name.endswith(ENDING) and name not in kept and _is_forgotten(store, path):
            remove(path)
            removed += 1
    return removed


def _is_forgotten(store: Store, path: str) -> bool:
    """True if every session of a bundle was forgotten here."""
    try:
        heads = [one for one in unpack(read_bytes(path, MOST_FILE), path) if one["line"] == "session"]
    except UsageError:
        return False  # it is not ours to judge
    return bool(heads) and all(store.archive.is_forgotten(session_hash(one["harness"], one["id"])) for one in heads)


def pull(store: Store, workspace: str = "") -> Imported:
    """Fetch, and take in what other stores sent. Raises NotFound, UsageError or GitFailed."""
    folder = _ready(store)
    with hold(store.home, "remote", seconds=LOCK_SECONDS):
        _fetch(folder)
        done = Imported()
        machines = os.path.join(folder, MACHINES)
        for name in sorted(os.listdir(machines)) if os.path.isdir(machines) else []:
            path = os.path.join(machines, name)
            if name != store_id(store) and os.path.isdir(path) and not os.path.islink(path) and os.listdir(path):
                done = done.plus(import_path(store, path, workspace))
    return done


def _address(store: Store) -> str:
    return read_bytes(os.path.join(store.home, ADDRESS), 4096).decode("utf-8", "replace").strip()


def _clone(store: Store) -> str:
    return os.path.join(store.home, CLONE)


def _ready(store: Store) -> str:
    if not _address(store) or not os.path.isdir(_clone(store)):
        raise NotFound("No remote is set: name a git repository of yours with 'observational-memory remote add URL'.")
    return _clone(store)


def _fetch(folder: str) -> None:
    """Bring the clone to what the repository holds, with our own commits that it does not have on top."""
    git(folder, "fetch", "-q", "--no-tags", "--no-recurse-submodules", "origin")
    if not git(folder, "branch", "-r", "--list", f"origin/{BRANCH}").strip():
        return  # an empty repository
    try:
        git(folder, "rev-parse", "--verify", "-q", "HEAD")
    except GitFailed:
        git(folder, "reset", "-q", "--hard", f"origin/{BRANCH}")
        return
    git(folder, "rebase", "-q", f"origin/{BRANCH}")


def _send(folder: str) -> None:
    for attempt in range(TRIES):
        try:
            git(folder, "push", "-q", "origin", f"HEAD:refs/heads/{BRANCH}")
            return
        except GitFailed:
            if attempt + 1 == TRIES:
                raise
            _fetch(folder)
