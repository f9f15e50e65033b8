"""One POST over HTTP: where it may go, and what comes back within a deadline.

Invariants: certificates are always checked; redirects are never followed; a key or a header of the user's goes over
plain http to this machine only, and a prompt to this machine or a private network only; at most ``limit`` bytes are read.
"""

from __future__ import annotations

import ipaddress
import re
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

from obsmem.core.errors import ConfigError

ERROR_LIMIT = 1 << 16  # bytes that are read of an answer which is an error

_VERSION = re.compile(r"v\d+\w*")
_PRINTABLE = re.compile(r"[!-~]+")
_PRIVATE_ENDINGS = (".local", ".lan", ".internal", ".intranet", ".home.arpa", ".localhost", ".test")
_Result = TypeVar("_Result")


class Exchange(NamedTuple):
    """What came back: the status, headers by lower-case name, and the body, at most one byte more than was allowed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WireError(Exception):
    """Nothing came back. ``kind`` is a key of ``http_faults.ROWS``; no words of the other side are in it."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def endpoint(url: str, ending: str, secret: bool) -> str:
    """The whole address of a configured one, which may stop before the version or before the endpoint. ``secret`` says
    that a key or headers go with every request. Raises ConfigError."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError("The worker's 'url' is no address: give one such as http://127.0.0.1:11434/v1.") from None
    if parts.scheme not in ("http", "https") or not host or not _PRINTABLE.fullmatch(url.strip()):
        raise ConfigError("The worker's 'url' is no http address: give one such as http://127.0.0.1:11434/v1.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("The worker's 'url' has a name or password in it: give the key with key_env or key_command.")
    if parts.scheme == "http" and not is_loopback(host):
        if secret:
            raise ConfigError(
                f"The worker's 'url' would send a key or headers unencrypted to {host}: use https, or a server on this machine."
            )
        if not _is_private(host):
            raise ConfigError(f"The worker's 'url' would send your sessions unencrypted to {host}: use https.")
    path = parts.path.rstrip("/")
    if not path.endswith(ending):
        versioned = any(_VERSION.fullmatch(segment) for segment in path.split("/"))
        path += ending if versioned else f"/v1{ending}"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def is_loopback(host: str) -> bool:
    """True for a host that is this machine."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _is_private(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_link_local
    return "." not in host or host.lower().endswith(_PRIVATE_ENDINGS)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return None


def post(url: str, headers: Mapping[str, str], body: bytes, seconds: float, limit: int) -> Exchange:
    """Send a request and read what comes back, an error's answer too. Raises WireError where nothing does."""
    return within(seconds, lambda: _post(url, headers, body, seconds, limit))


def within(seconds: float, call: Callable[[], _Result]) -> _Result:
    """Run a call for at most ``seconds``. Raises WireError (``timeout``) after that; what is abandoned dies with us.

    A socket's own time limit counts from one byte to the next, and looking up a name has none: only a thread that is not
    waited for ends a call whose other side sends a byte now and then.
    """
    done: list[_Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(call())
        except BaseException as error:  # raised again where the call was made
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if failed:
        raise failed[0]
    if not done:
        raise WireError("timeout")
    return done[0]


def _post(url: str, headers: Mapping[str, str], body: bytes, seconds: float, limit: int) -> Exchange:
    from urllib.error import HTTPError
    from urllib.request import Request

    request = Request(url, data=body, headers=dict(headers), method="POST")
    try:
        with _opener(url).open(request, timeout=max(seconds, 0.001)) as response:
            return Exchange(response.status, _lower(response.headers), response.read(limit + 1))
    except HTTPError as error:
        with error:
            return Exchange(error.code, _lower(error.headers), _rest(error))
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise WireError(_kind(error)) from None


def _rest(error: Any) -> bytes:
    """What an error says; a connection that breaks off in it takes nothing from its status."""
    try:
        data: bytes = error.read(ERROR_LIMIT)
        return data
    except (OSError, HTTPException):
        return b""


def _opener(url: str) -> Any:
    """Proxies as the environment has them, except to this machine; none of the handlers that follow a redirect, read
    files, or ask for passwords."""
    import ssl
    import urllib.request as web

    opener = web.OpenerDirector()
    proxies: dict[str, str] | None = {} if is_loopback(urlsplit(url).hostname or "") else None
    for handler in (
        web.ProxyHandler(proxies),
        web.HTTPHandler(),
        web.HTTPSHandler(context=ssl.create_default_context()),
        web.HTTPDefaultErrorHandler(),
        web.HTTPErrorProcessor(),
        web.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()} if headers is not None else {}


def _kind(error: BaseException) -> str:
    """Name what went wrong on the way. Each kind has its row in ``http_faults``."""
    import socket
    import ssl

    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, BaseException) else error
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (ssl.SSLCertVerificationError, "certificate"),
        (TimeoutError, "timeout"),
        (ssl.SSLError, "tls"),
        (socket.gaierror, "name"),
        (ConnectionRefusedError, "refused"),
        (ConnectionError, "broken"),
        (HTTPException, "broken"),
    )
    found = next((kind for kind_of, kind in kinds if isinstance(cause, kind_of)), "")
    # http.client has no class of its own for a proxy that will not let us through.
    return found or ("proxy" if "Tunnel connection failed" in str(cause) else "unreachable")
