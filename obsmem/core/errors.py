"""Everything that can be raised on purpose. A command turns these into one sentence and an exit code.

    ObsmemError               exit 1
    ├── UsageError            exit 2   the call's words are off
    ├── NotFound              exit 3   nothing has that name or id
    ├── SourceMissing         exit 4   a note is known, an entry behind it is not
    ├── StoreError            exit 5   the store cannot be used
    │   └── StoreTooNew               written by a newer version
    ├── ConfigError           exit 2   the config file is wrong
    └── WorkerError           exit 6   a worker failed; ``retry`` says whether asking again may help

Each message is a sentence of three parts: what happened, why, what to do next.
"""

from __future__ import annotations


class ObsmemError(Exception):
    """Root of all deliberate failures."""

    exit_code = 1


class UsageError(ObsmemError):
    """The call's words are off."""

    exit_code = 2


class ConfigError(ObsmemError):
    """The config file is wrong; the message names the key and the file."""

    exit_code = 2


class NotFound(ObsmemError):
    """Nothing has that name or id."""

    exit_code = 3


class SourceMissing(ObsmemError):
    """A note is known, but an entry behind it is not."""

    exit_code = 4


class StoreError(ObsmemError):
    """The store cannot be opened, read or written."""

    exit_code = 5


class StoreTooNew(StoreError):
    """The store was written by a newer version of this program."""


class WorkerError(ObsmemError):
    """A worker gave no usable answer. Coverage must not advance."""

    exit_code = 6

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
