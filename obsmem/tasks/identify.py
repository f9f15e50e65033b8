"""Learning whose records a source holds, and whether they may be read at all.

Invariant: a source that was read under one session stays with it, whatever its later records say.
"""

from __future__ import annotations

import hashlib
import os

from obsmem.core.model import Session
from obsmem.harnesses.base import Harness, Source
from obsmem.system.excluded import is_excluded
from obsmem.tasks.store import Store

IDENTITY_RECORDS = 200  # records looked at to learn which session a source holds


def identify(module: Harness, harness: str, source: Source) -> tuple[Session, str]:
    """Learn from its first records which session a source holds, and the id of the session that it came from."""
    reader = module.reader(source, None, lambda: ())
    for count, raw in enumerate(module.records(source, 0, 0)):
        reader.read(raw)
        if count >= IDENTITY_RECORDS or (reader.session.id and reader.session.started_at and count >= 20):
            break
    session = reader.session
    id_ = session.id or _nameless(source)
    return session._replace(harness=harness, id=id_, transcript=source.path), reader.parent_id


def _nameless(source: Source) -> str:
    """The id of a session whose records name none."""
    stem = os.path.basename(source.path).split(".")[0]
    return source.session_id or stem or hashlib.sha256(source.path.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def first_named(store: Store, session: Session, source: Source) -> Session:
    """A file that was read before it said whose it is stays with the session that it was given then."""
    found = store.archive.by_id(session.harness, _nameless(source))
    if found is None or found.session.id == session.id:
        return session
    read = any(row.path == source.path and row.offset for row in store.archive.sources(found.no))
    return session._replace(id=found.session.id) if read else session


def has_begun(module: Harness, source: Source) -> bool:
    """True if a source holds a whole record."""
    raw = next(iter(module.records(source, 0, 0)), None)
    if raw is None or raw.complete:
        return raw is not None
    return bool(module.reader(source, None, lambda: ()).read(raw).entries)


def refused(store: Store, session: Session, source: Source) -> str:
    """Why a session may not be read: worker | excluded; '' where it may."""
    if session.role == "worker":
        return "worker"
    if excluded(store, source.path, session.cwd):
        return "excluded"
    return ""


def excluded(store: Store, path: str, cwd: str) -> bool:
    """True if a glob of ``exclude`` matches the transcript's path or the working folder (or a folder above it)."""
    return is_excluded(store.config["exclude"], path, cwd)
