"""What a worker's program may see of our environment: what it needs to run and to reach its model, and nothing else.

Invariant: names are let through one by one. What a harness tells the programs in its sessions (that they are nested,
for one, upon which some refuse to run) never arrives, nor does any credential that is not the program's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from obsmem.system.state import WORKER_VARIABLE

PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    # Without these no program runs on Windows, or finds its user's files there.
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
    "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
)  # fmt: skip
PASSED_PREFIX = "LC_"


def scrubbed(
    names: Iterable[str] = (),
    prefixes: Iterable[str] = (),
    temporary: str = "",
    environment: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """The environment of a worker's program: ``names`` and what begins with ``prefixes`` may pass besides; its temporary
    files go to ``temporary``. It always carries our mark, so that our hooks inside it do nothing."""
    allowed = {*PASSED, *names}
    beginnings = (PASSED_PREFIX, *prefixes)
    passed = {name: value for name, value in environment.items() if name in allowed or name.startswith(beginnings)}
    if temporary:
        passed |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), temporary)
    return {**passed, WORKER_VARIABLE: "1"}
