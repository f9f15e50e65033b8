"""Registering what shortens outputs: only where it is asked for, kept from then on, and gone without a trace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from obsmem.system.paths import data_home
from obsmem.tasks.doctor_reduce import check_shortening
from obsmem.tasks.finding import GOOD, WARNING
from obsmem.tasks.install import carry_out, plan_install, shortens, uninstall

BEFORE = '{\n  // mine\n  "hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "mine"}]}]}\n}\n'


@pytest.fixture
def settings() -> Path:
    path = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(BEFORE, encoding="utf-8")
    return path


def test_it_is_registered_only_where_it_is_asked_for_and_stays_then(settings: Path) -> None:
    home = data_home()
    carry_out(home, plan_install(home, "claude-code"))
    assert not shortens(home, "claude-code")
    carry_out(home, plan_install(home, "claude-code", reduce=True))
    assert shortens(home, "claude-code")
    carry_out(home, plan_install(home, "claude-code"))
    assert shortens(home, "claude-code")
    text = settings.read_text(encoding="utf-8")
    assert text.count("hook claude-code PostToolUse") == 1
    assert '"command": "mine"' in text
    uninstall(home, "claude-code")
    assert settings.read_text(encoding="utf-8") == BEFORE


def test_where_nothing_can_be_replaced_nothing_is_registered(settings: Path) -> None:
    home = data_home()
    for harness in ("codex", "cursor"):
        plan = plan_install(home, harness, reduce=True)
        assert json.dumps(plan.config) == json.dumps(plan_install(home, harness).config)
        assert not shortens(home, harness)


def test_doctor_says_where_it_is_on_and_what_is_missing(settings: Path, tmp_path: Path) -> None:
    home = data_home()
    (check,) = check_shortening(home, str(tmp_path))
    assert (check.level, check.what) == (GOOD, "off")
    Path(os.environ["OBSERVATIONAL_MEMORY_CONFIG"]).write_text("reduce: on\n", encoding="utf-8")
    found = {check.what.partition(":")[0]: check for check in check_shortening(home, str(tmp_path))}
    assert found["claude-code"].level == WARNING
    assert "--reduce" in found["claude-code"].remedy
    carry_out(home, plan_install(home, "claude-code", reduce=True))
    found = {check.what.partition(":")[0]: check for check in check_shortening(home, str(tmp_path))}
    assert found["claude-code"].what == "claude-code: on"
