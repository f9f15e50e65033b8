"""What a failed call means: one table of kinds of failure, what each says about the worker, and what to do.

Pure. Invariant: a message is made of our own words, numbers, and names of errors; never of what the server wrote, which
may hold the prompt or the key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from obsmem.core.errors import WorkerError
from obsmem.core.refusals import read_refusal


class Row(NamedTuple):
    """``again``: the same call may be made again a moment later. ``fault`` is one of FAULTS."""

    fault: str
    again: bool
    what: str
    remedy: str


# Kind of failure -> what it means.
ROWS: Mapping[str, Row] = {
    "refused": Row("unavailable", False, "nothing listens at its address", "Start the server, or correct 'url'"),
    "name": Row("unavailable", False, "its host's name is unknown here", "Check the network, or correct 'url'"),
    "unreachable": Row("unavailable", False, "its host cannot be reached", "Check the network, or correct 'url'"),
    "proxy": Row(
        "unavailable", False, "the proxy lets nothing through to it", "Check the proxy variables, or no_proxy"
    ),
    "timeout": Row("unavailable", False, "the time ran out", "Raise 'timeout_seconds', or take a faster model"),
    "broken": Row("unavailable", True, "the connection broke off", "It will be asked again later"),
    "tls": Row(
        "unavailable", False, "no encrypted connection came about", "Check whether 'url' should begin with http"
    ),
    "certificate": Row(
        "settings", False, "its certificate is not trusted", "Correct 'url', or let SSL_CERT_FILE name its authority"
    ),
    "redirect": Row("settings", False, "its address redirects elsewhere", "Put the address that answers into 'url'"),
    "key": Row("settings", False, "its key was not accepted", "Check what 'key_env' or 'key_command' gives"),
    "forbidden": Row("settings", False, "the key may not do this", "Allow the model for this key, or take another"),
    "model": Row("settings", False, "it has no such model", "Correct 'model', or fetch it"),
    "missing": Row("settings", False, "its address has no such API", "Correct 'url' or 'api'"),
    "request": Row(
        "settings", False, "it does not take such a request", "Check 'api', 'model', 'answer_tokens' and 'structured'"
    ),
    "structured": Row("settings", False, "it takes no schema", "Set 'structured' to auto or off"),
    "content": Row("answer", False, "its rules do not allow this content", "Another worker may take it"),
    "quota": Row("unavailable", False, "its quota or credit is used up", "Add credit, or wait until it is renewed"),
    "rate": Row("unavailable", True, "it is asked too often", "It will be asked again later"),
    "overloaded": Row("unavailable", True, "it is overloaded or still loading", "It will be asked again later"),
    "server": Row("unavailable", True, "it has a fault of its own", "It will be asked again later"),
    "overflow": Row("overflow", False, "the prompt does not fit into its window", "Less will be sent"),
}

_BY_STATUS = {
    401: "key", 402: "quota", 403: "forbidden", 404: "missing", 405: "missing", 407: "proxy", 408: "overloaded",
    409: "overloaded", 410: "model", 413: "overflow", 425: "overloaded", 429: "rate", 501: "request", 503: "overloaded",
    504: "overloaded", 529: "overloaded",
}  # fmt: skip
# The names that errors have in an answer whose status says nothing.
_BY_NAME = {
    "overloaded_error": 529, "rate_limit_error": 429, "authentication_error": 401, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "timeout_error": 504, "billing_error": 402,
    "invalid_request_error": 400, "insufficient_quota": 402,
}  # fmt: skip
_MAY_BE_TOO_LONG = (400, 413, 422, 429, 500)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|credit|balance|funds)|credit balance|exceeded your current quota|billing_\w+", re.I
)
_CONTENT = re.compile(r"content[_ ](?:filter|policy|management)|responsible_?ai|invalid_prompt|data_inspection", re.I)
_NO_MODEL = re.compile(
    r"model_not_found|model\b.{0,120}?(?:not found|not exist|does ?n.t exist|not a valid)|"
    r"(?:unknown|invalid|no such) model\b",
    re.I | re.DOTALL,
)
_STRUCTURED = re.compile(r"response_format|output_config|output_format|json_schema|structured|schema|grammar", re.I)
_KEPT = ("message", "detail", "type", "code", "param", "n_ctx", "n_prompt_tokens")
_NAME = re.compile(r"[a-z][a-z_]{2,40}")


class Failure(NamedTuple):
    """A failed call: its kind (a key of ROWS), status (0 where nothing came back), the error's name, what was asked for
    and counted, and the text that the server gave, for reading only."""

    kind: str
    status: int = 0
    name: str = ""
    wait: float = 0.0
    window: int = 0
    counted: int = 0
    said: str = ""


def fail(failure: Failure, worker: str, remedies: Mapping[str, str] = {}) -> WorkerError:
    """The error to raise for a failure. ``remedies`` (by kind) are what else to do where the settings are not a worker's."""
    row = ROWS[failure.kind]
    facts = [f"HTTP {failure.status}"] if failure.status else []
    facts += [failure.name] if failure.name else []
    facts += [f"window {failure.window}"] if failure.window else []
    facts += [f"counted {failure.counted}"] if failure.counted else []
    facts += [f"wait {math.ceil(failure.wait)} s"] if failure.wait else []
    seen = f" ({', '.join(facts)})" if facts else ""
    return WorkerError(
        f"The worker {worker} gave no answer: {row.what}{seen}. {remedies.get(failure.kind, row.remedy)}.",
        retry=row.again,
        fault=row.fault,
        wait=failure.wait,
        window=failure.window,
        counted=failure.counted,
    )


def judge(status: int, headers: Mapping[str, str], data: bytes, now: float) -> Failure | None:
    """What an answer means that is a failure; None for one that is none. ``now`` in seconds since the epoch."""
    error = _error(data)
    if 200 <= status < 300:
        if error is None:
            return None
        status = _hidden_status(error)
    said = _said(error, data)
    name = _named(error)
    wait = retry_after(headers, now)
    if status in _MAY_BE_TOO_LONG:
        refusal = read_refusal(said)
        if refusal:
            return Failure("overflow", status, name, 0.0, *refusal, said)
    return Failure(_kind(status, said), status, name, wait, said=said)


def _kind(status: int, said: str) -> str:
    if 300 <= status < 400:
        return "redirect"
    if status in (400, 403, 429) and _QUOTA.search(said):
        return "quota"
    if status in (400, 403, 422) and _CONTENT.search(said):
        return "content"
    if status in (400, 404, 422) and _NO_MODEL.search(said):
        return "model"
    return _BY_STATUS.get(status, "request" if status < 500 else "server")


def _error(data: bytes) -> Any:
    """The error in an answer: an object, or a text; None where it holds none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[0]  # one server puts its error into a list
    return (value.get("error") or None) if isinstance(value, dict) else None


def _hidden_status(error: Any) -> int:
    """The status of an error that came as a success."""
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return next(
        (_BY_NAME[name] for name in (fields.get("type"), code) if isinstance(name, str) and name in _BY_NAME), 500
    )


def _said(error: Any, data: bytes) -> str:
    """The error's own words and numbers, without what else a server sends along, such as the request itself."""
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        try:
            error = json.loads(data)
        except (ValueError, RecursionError):
            error = None
        if not isinstance(error, dict):
            return data[:2_000].decode("utf-8", "replace")
    kept: dict[str, Any] = {name: error[name] for name in _KEPT if isinstance(error.get(name), (str, int))}
    details = error.get("detail")
    if isinstance(details, list):  # what a field has wrong; the field's value stands beside it
        kept["detail"] = [[item.get("loc"), item.get("msg")] for item in details if isinstance(item, dict)]
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):  # what the server behind a router said
        kept["raw"] = metadata["raw"]
    return json.dumps(kept)


def _named(error: Any) -> str:
    """The name of an error, where it is one word of small letters, which a key or a piece of a prompt is not."""
    fields = error if isinstance(error, dict) else {}
    names = [fields.get("code"), fields.get("type")]
    return next((name for name in names if isinstance(name, str) and _NAME.fullmatch(name)), "")


def names_structure(said: str) -> bool:
    """True if an error is about the schema that was sent."""
    return bool(_STRUCTURED.search(said))


def retry_after(headers: Mapping[str, str], now: float) -> float:
    """The seconds that a server asks to be left alone; 0 where it says nothing that can be read."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds or not text:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0 else 0.0
