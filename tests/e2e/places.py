"""Places that are read-only or full: mounts that only the programs of one world see.

Owns the mount namespace and the process that keeps it. Invariant: nothing is mounted where the rest of the machine
could see it, and the namespace is gone with its world.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from .world import World


@contextmanager
def mounted(world: World, script: str) -> Iterator[None]:
    """Run the programs of ``world`` where ``script`` (sh; ``$1`` is the data folder) has mounted something.

    Skips the test where this machine lets nobody mount.
    """
    keep = [*world.prefix, "unshare", "--mount", "sh", "-ec", script + "\necho ready\nexec sleep 600"]
    arguments = [*keep, "sh", str(world.memory)]
    try:
        keeper = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        pytest.skip("no unshare on this machine")
    assert keeper.stdout is not None
    before: Sequence[str] = world.prefix
    try:
        if keeper.stdout.readline() != b"ready\n":
            pytest.skip("this machine lets nobody mount")
        # Whoever enters a mount namespace stands at its root, and has to go back to the project.
        enter = ["nsenter", "--mount", "--target", str(keeper.pid), "sh", "-c", 'cd "$0" && exec "$@"']
        world.prefix = [*before, *enter, str(world.project)]
        yield
    finally:
        world.prefix = list(before)
        keeper.kill()
        keeper.wait()
        keeper.stdout.close()
