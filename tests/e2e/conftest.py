"""Fixtures of the end-to-end tests: a closed world, and our own hook config in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import installed, leftovers, programs
from .world import World, open_world


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A world of its own for each test. ``OBSMEM_E2E_KEEP`` leaves its folder in place afterwards."""
    with open_world(request.node.name) as opened:
        yield opened


@pytest.fixture
def tidy(world: World) -> Iterator[None]:
    """After the test no process of ours is left in its world, and no file in a place that is not ours."""
    yield
    installed.wait_until_quiet(world)
    assert leftovers.strange_files(world) == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say last, where nobody misses it, which programs were not run at all."""
    for program, why in programs.not_run.items():
        terminalreporter.section(f"NOT RUN: {program}", red=True, bold=True)
        terminalreporter.line(why)
