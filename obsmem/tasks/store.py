"""One store: its folder, its three databases, its configuration. What every task is given.

Invariant: opening a store for writing leaves no coverage beyond the archive's last entry (the archive may have been
lost and begun anew; coverage of entries that nobody can read would hide them for ever).
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from obsmem.core.errors import ConfigError
from obsmem.core.mask import mask
from obsmem.store.archive import Archive, StoredSession
from obsmem.store.index import Index
from obsmem.store.memory import MemoryStore
from obsmem.store.schema import is_damage, move_aside
from obsmem.system import config as configuration
from obsmem.system.config import Config
from obsmem.system.files import made_once, make_folder
from obsmem.system.paths import data_home, session_folder

T = TypeVar("T")
CACHED_WORDS, CACHED_LENGTH = 20_000, 300  # texts, and characters of the longest
_PROCESS_KEY = os.urandom(32)
ARCHIVE, MEMORY, INDEX = "archive.db", "memory.db", "index.db"
KEY = "key"  # the file of the local key behind nonces


class Store:
    """The open databases of one data folder. ``index`` is opened when first needed."""

    def __init__(self, home: str, config: Config, *, readonly: bool = False) -> None:
        self.home = home
        self.config = config
        self.readonly = readonly
        if not readonly:
            make_folder(home)
        self.archive = Archive(os.path.join(home, ARCHIVE), readonly=readonly)
        self.memory = MemoryStore(os.path.join(home, MEMORY), readonly=readonly)
        self._index: Index | None = None
        self.secrets = _patterns(config)
        self._masked = lru_cache(CACHED_WORDS)(self._mask)
        if not readonly:
            self._roll_back_coverage()

    @property
    def index(self) -> Index:
        """The derived tables."""
        if self._index is None:
            self._index = Index(os.path.join(self.home, INDEX), readonly=self.readonly)
        return self._index

    def mask(self, text: str) -> str:
        """A text without secrets, the user's own patterns (config: ``mask``) among them. Short ones are remembered."""
        return self._masked(text) if len(text) < CACHED_LENGTH else self._mask(text)

    def _mask(self, text: str) -> str:
        return mask(text, self.secrets)

    def rebuild_index(self) -> None:
        """Put a new, empty index in the place of the old one, which is kept aside as damaged."""
        if self._index is not None:
            self._index.close()
        move_aside(os.path.join(self.home, INDEX))
        self._index = None

    def with_index(self, work: Callable[[], T]) -> T:
        """Do some work with the index; where it turns out to be damaged, do it again with a new one."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if self.readonly or not is_damage(error):
                raise
        self.rebuild_index()
        return work()

    def close(self) -> None:
        """Close all databases."""
        self.archive.close()
        self.memory.close()
        if self._index is not None:
            self._index.close()

    def _roll_back_coverage(self) -> None:
        for handle in self.memory.covered_sessions():
            row = self.archive.connection.execute("SELECT last_seq FROM sessions WHERE handle=?", (handle,)).fetchone()
            last = -1 if row is None else int(row[0])
            if self.memory.covered_to(handle) > last:
                self.memory.roll_back_coverage(handle, last)

    def folder_of(self, stored: StoredSession) -> str:
        """The folder of a session's small files (state, blocks)."""
        session = stored.session
        return session_folder(self.home, session.harness, session.transcript, session.id)

    def key(self) -> bytes:
        """The local key behind nonces: made once, 32 random bytes, never leaves this machine. Where it is not there yet and
        cannot be made (a sandbox), one for this process alone."""
        try:
            return made_once(os.path.join(self.home, KEY), _PROCESS_KEY)
        except OSError:
            return _PROCESS_KEY


def _patterns(config: Config) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(pattern) for pattern in config["mask"])
    except re.error as error:
        where = config.origins["mask"]
        raise ConfigError(
            f"'mask' in {where} holds a regular expression that cannot be read ({error}). Correct it."
        ) from error


@contextmanager
def open_store(home: str = "", config: Config | None = None, *, readonly: bool = False) -> Iterator[Store]:
    """Open the store in a data folder (the user's own by default) and close it afterwards. Raises StoreError."""
    store = Store(home or data_home(), config or configuration.load(), readonly=readonly)
    try:
        yield store
    finally:
        store.close()
