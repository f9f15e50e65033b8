"""The words and options of the command that writes a session down as a page: report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_reporting(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    report = add(
        commands, "report", "commands_report", "write a session down as one page of HTML that needs no network"
    )
    report.add_argument(
        "session", nargs="?", default="", metavar="SESSION", help="the one that asks, or the newest, by default"
    )
    report.add_argument(
        "-o", "--output", default="", metavar="FILE", help="where to (observational-memory-HANDLE.html in this folder)"
    )
    report.add_argument("--open", action="store_true", help="show it in the browser, too")
