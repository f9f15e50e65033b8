"""Which repository a folder is a clone of, as every machine names it: ``host/owner/repo``. No git process is started."""

from __future__ import annotations

import os
import re

_SECTION = re.compile(r'\s*\[remote "([^"]+)"\]')
_URL = re.compile(r"\s*url\s*=\s*(\S+)")
_SCP = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!//)(.+)")
LIMIT = 1 << 20  # bytes of a git config that are read


def alias_of(workspace: str) -> str:
    """The name of the repository whose git folder ``workspace`` is, by its remote ``origin`` (else the first); '' for none."""
    path = os.path.join(workspace, "config")
    if not workspace or not os.path.isfile(path):
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LIMIT)
    except OSError:
        return ""
    found: dict[str, str] = {}
    section = ""
    for line in text.split("\n"):
        match = _SECTION.match(line)
        if match or line.lstrip().startswith("["):
            section = match.group(1) if match else ""
        elif section and (url := _URL.match(line)):
            found.setdefault(section, url.group(1))
    return alias(found.get("origin") or next(iter(found.values()), ""))


def alias(url: str) -> str:
    """``host/owner/repo`` of an address that git takes, without user, port and ending; '' for a path on this machine."""
    if "://" in url:
        host, _, path = url.split("://", 1)[1].partition("/")
        host = host.rpartition("@")[2].partition(":")[0]
    elif match := _SCP.fullmatch(url):
        host, path = match.groups()
    else:
        return ""
    path = path.strip("/").removesuffix(".git")
    return f"{host}/{path}".casefold() if host and path and len(host) > 1 else ""
