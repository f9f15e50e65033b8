"""What every kind of worker has in common: one call, one answer, one kind of failure.

Invariant: an answer that is not whole is raised as WorkerError, never returned; an empty answer is deliberate.
"""

from __future__ import annotations

from typing import Protocol

from obsmem.core.model import Reply, Request


class Worker(Protocol):
    """What answers requests. A module or an object with these two names will do."""

    NAME: str

    def ask(self, request: Request) -> Reply:
        """Answer one request with proposals. Raises WorkerError where no usable answer can be had."""
