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


# What a worker's failure says about the worker: its answer was no use (ask it again, or another one); it cannot be
# reached or is over its quota (leave it alone for a while); what it was sent does not fit into its window (send less);
# or it is set up wrongly (until somebody mends that).
FAULTS = ("answer", "unavailable", "overflow", "settings")


class WorkerError(ObsmemError):
    """A worker gave no usable answer. Coverage must not advance.

    ``fault`` is one of FAULTS. ``wait`` are the seconds that the other side asked for before it is called again; ``window``
    and ``counted`` the tokens that a refusal named as its limit and as what it was sent; 0 where nothing was said.
    ``answer`` is what the worker said, where its words could not be read.
    """

    exit_code = 6

    def __init__(
        self,
        message: str,
        *,
        retry: bool = False,
        fault: str = "answer",
        wait: float = 0.0,
        window: int = 0,
        counted: int = 0,
        answer: str = "",
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.fault = fault
        self.wait = wait
        self.window = window
        self.counted = counted
        self.answer = answer
