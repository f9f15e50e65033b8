"""Fixtures of the end-to-end tests: a closed world, and our own hook config in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .world import World, open_world


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A world of its own for each test. ``OBSMEM_E2E_KEEP`` leaves its folder in place afterwards."""
    with open_world(request.node.name) as opened:
        yield opened
