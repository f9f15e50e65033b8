"""A server that turns texts into vectors: an OpenAI-compatible embeddings endpoint, of a company or on this machine.

Invariants: as for any http worker, nothing is sent to an address that the configuration does not name, a call ends at its
deadline, and no message holds a key or a text; vectors are of unit length, little-endian float32.
"""

from __future__ import annotations

import array
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from obsmem.core.errors import ConfigError, WorkerError
from obsmem.workers import http_faults, http_key, http_wire
from obsmem.workers.http_faults import Failure

ENDING = "/embeddings"
ANSWER_LIMIT = 64 << 20  # bytes
LONGEST_VECTOR = 8_192  # numbers
# What to do about failures for which a worker has settings that 'embeddings' does not.
_REMEDIES = {
    "timeout": "Take a faster server or 'model': how long it is waited for is fixed",
    "key": "Check what 'key_env' gives",
    "missing": "Correct 'url'",
    "request": "Check 'url' and 'model'",
    "structured": "Check 'url' and 'model'",
}


class Embedded(NamedTuple):
    """Vectors in the order of the texts, and the tokens that the server counted (0 where it does not say)."""

    vectors: tuple[bytes, ...]
    tokens: int


class Embedder:
    """One model of one server. ``options`` are those of the config key ``embeddings``. Raises ConfigError."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.model = str(options["model"])
        self.NAME = f"embeddings:{self.model}"
        self._key_env = str(options.get("key_env") or "")
        try:
            self._url = http_wire.endpoint(str(options["url"]), ENDING, bool(self._key_env))
        except ConfigError as error:
            raise ConfigError(str(error).replace("The worker's 'url'", "The 'url' of 'embeddings'")) from None

    def embed(self, texts: Sequence[str], seconds: float) -> Embedded:
        """The vectors of some texts, none of them empty. Raises WorkerError where not all of them come in time."""
        deadline = time.monotonic() + seconds
        headers = {"content-type": "application/json"}
        if self._key_env:
            headers["authorization"] = f"Bearer {http_key.from_environment(self._key_env, self.NAME)}"
        body = json.dumps({"model": self.model, "input": list(texts), "encoding_format": "float"}).encode()
        try:
            answer = http_wire.post(self._url, headers, body, deadline - time.monotonic(), ANSWER_LIMIT)
        except http_wire.WireError as error:
            raise http_faults.fail(Failure(error.kind), self.NAME, _REMEDIES) from None
        failure = http_faults.judge(answer.status, answer.headers, answer.body, time.time())
        if failure is not None:
            raise http_faults.fail(failure, self.NAME, _REMEDIES)
        return self._read(answer.body, len(texts))

    def _read(self, body: bytes, count: int) -> Embedded:
        try:
            value = json.loads(body)
            rows = sorted(value["data"], key=lambda row: int(row.get("index", 0)))
            vectors = tuple(_unit(row["embedding"]) for row in rows)
            used = value.get("usage") or {}
            tokens = int(used.get("total_tokens") or used.get("prompt_tokens") or 0)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            vectors, tokens = (), 0
        if len(vectors) != count or len({len(vector) for vector in vectors}) > 1:
            raise WorkerError(
                f"{self.NAME} sent something else than {count} vectors of one length: none were kept. Check 'url' and "
                "'model' of 'embeddings'.",
                fault="answer",
            )
        return Embedded(vectors, tokens)


def _unit(numbers: Any) -> bytes:
    """A vector of length 1. Raises ValueError for one that has no direction."""
    vector = array.array("f", [float(number) for number in numbers])
    length = math.sqrt(sum(number * number for number in vector))
    if not 0 < len(vector) <= LONGEST_VECTOR or not math.isfinite(length) or length == 0:
        raise ValueError("no vector")
    return pack([number / length for number in vector])


def pack(numbers: Sequence[float]) -> bytes:
    """Numbers as they are kept."""
    vector = array.array("f", numbers)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector.tobytes()


def unpack(data: bytes) -> array.array[float]:
    """Numbers as they were kept."""
    vector = array.array("f")
    vector.frombytes(data)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector
