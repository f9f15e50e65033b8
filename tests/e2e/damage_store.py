"""What can be wrong with a store that a hook finds. Each returns words of what a command then says about it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from .world import World

STORE = ("archive.db", "memory.db", "index.db")


def scribble(world: World) -> str:
    """Put something else in the place of every database."""
    for name in STORE:
        (world.memory / name).write_bytes(b"This is no database. " * 4000)
    return "cannot be used"


def make_newer(world: World) -> str:
    """Make it the store of a version to come."""
    with closing(sqlite3.connect(world.memory / "archive.db")) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES('m999_from_the_future', 0)")
    return "newer version"
