"""The words and options of ``bench``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_benching(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    bench = add(commands, "bench", "commands_bench", "measure on sessions of your own what is known after a compaction")
    bench.add_argument("name", choices=("survival",), help="which bench")
    bench.add_argument("sessions", nargs="*", metavar="SESSION", help="all with a compaction, by default")
    bench.add_argument("--output", default="", metavar="FILE", help="write the figures there, as JSON")
