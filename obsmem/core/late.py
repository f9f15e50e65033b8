"""Regular expressions that are compiled when they are first used, and digests without the library that is slow to load.

A command that is called a hundred times in a session should not wait for what it does not need: compiling the expressions
of a whole program takes longer than most answers. Invariant: what comes out is what ``re`` and ``hashlib`` would give.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, AnyStr, cast

LARGE = 1 << 19  # bytes that OpenSSL digests so much faster that loading it pays


class _Late:
    """Stands for an expression. What is asked of it once is its own from then on, at no cost."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = (text, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression as ``re.compile`` makes it. What is wrong in it shows at its first use."""
    return cast("re.Pattern[AnyStr]", _Late(text, int(flags)))


# Where the interpreter has them without OpenSSL; the names differ by version.
_OWN = {"sha256": ("_sha2", "_sha256"), "blake2b": ("_blake2",)}


@cache
def _own(name: str) -> Callable[..., Any]:
    for module in _OWN[name]:
        try:
            return cast("Callable[..., Any]", getattr(import_module(module), name))
        except ImportError:
            continue
    return cast("Callable[..., Any]", getattr(import_module("hashlib"), name))


def sha256(data: bytes) -> bytes:
    """The SHA-256 digest of some bytes."""
    if len(data) >= LARGE or "hashlib" in sys.modules:
        import hashlib

        return hashlib.sha256(data).digest()
    return cast(bytes, _own("sha256")(data).digest())


def blake2b(data: bytes, size: int) -> bytes:
    """The BLAKE2b digest of some bytes, ``size`` bytes long."""
    return cast(bytes, _own("blake2b")(data, digest_size=size).digest())
