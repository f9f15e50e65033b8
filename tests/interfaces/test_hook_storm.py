"""Many hooks at the same moment: none fails, at most one maintainer a session and two in all, none is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.storm import blow

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are counted in /proc")


@pytest.mark.parametrize(("hooks", "sessions"), [(24, 1), (24, 6)])
def test_a_storm_of_hooks_starts_two_maintainers_and_forgets_no_session(
    hooks: int, sessions: int, tmp_path: Path
) -> None:
    storm = blow(str(tmp_path), hooks, sessions)
    assert storm.failures == 0, (tmp_path / "home" / "log.txt").read_text(encoding="utf-8")
    assert storm.most <= 2 and storm.most_a_session <= 1
    assert storm.left == 0 and storm.read == sessions
