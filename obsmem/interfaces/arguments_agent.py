"""The arguments of the command that serves an agent: mcp."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Add = Callable[["argparse._SubParsersAction[argparse.ArgumentParser]", str, str, str], argparse.ArgumentParser]


def add_serving(commands: argparse._SubParsersAction[argparse.ArgumentParser], add: Add) -> None:
    """Add the parser of this command."""
    serve = add(commands, "mcp", "mcp", "serve the record to an agent as tools, over standard input and output")
    serve.add_argument(
        "--call", default="", metavar="TOOL", help="run one tool, its arguments as JSON on standard input, and end"
    )
