"""Whether the user's globs keep a transcript or a working folder out of everything. Importable on the hook path."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def is_excluded(globs: Iterable[str], path: str, cwd: str) -> bool:
    """True if one of these globs matches the transcript's path or the working folder (or a folder above it)."""
    globs = tuple(globs)
    if not globs:
        return False
    from fnmatch import fnmatchcase  # loads regular expressions, which most users never need

    candidates = [name for name in (path, cwd, cwd + "/") if name]
    return any(fnmatchcase(name, pattern) for pattern in globs for name in candidates) or any(
        cwd == pattern.rstrip("/*") or cwd.startswith(pattern.rstrip("/*") + "/")
        for pattern in globs
        if cwd and pattern[:1] == "/"
    )
