"""The status line from install to uninstall, as a person types the commands and as the harness runs the line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from obsmem.core import jsonc
from tests.interfaces.test_commands_install import POSIX, Run
from tests.interfaces.test_commands_install import user as user

OWN = '{\n  // mine\n  "statusLine": {"type": "command", "command": "printf \'%s\' \\"mine ✓\\"", "padding": 0},\n}\n'
PAYLOAD = {
    "session_id": "s1",
    "transcript_path": "/gone/s1.jsonl",
    "cwd": "/gone",
    "model": {"id": "m"},
    "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": 50_000, "output_tokens": 0}},
}


def shown(settings: Path) -> str:
    """What the harness shows: it runs the command with the shell."""
    command = jsonc.load(settings.read_text(encoding="utf-8"))["statusLine"]["command"]
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps(PAYLOAD).encode(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@POSIX
def test_it_is_shown_behind_the_users_own_until_it_is_uninstalled(user: Path, run: Run) -> None:
    settings = user / ".claude" / "settings.json"
    settings.write_text(OWN, encoding="utf-8")
    done = run("install", "--yes", "--statusline")
    assert done.status == 0 and "the status line is on" in done.out, done
    assert shown(settings) == "mine ✓\nmemory: 25 % of the window (50k of 200k)\n"
    again = run("install", "--yes", "--json")
    assert again.status == 0 and json.loads(again.out)["harnesses"][0]["status_line"] is True
    assert "mine" in shown(settings)
    assert run("uninstall", "--yes").status == 0
    assert settings.read_text(encoding="utf-8") == OWN


@POSIX
def test_it_can_be_taken_out_alone(user: Path, run: Run) -> None:
    settings = user / ".claude" / "settings.json"
    assert run("install", "--yes", "--statusline").status == 0
    assert shown(settings) == "memory: 25 % of the window (50k of 200k)\n"
    assert run("install", "--yes", "--no-statusline").status == 0
    left = jsonc.load(settings.read_text(encoding="utf-8"))
    assert "statusLine" not in left and left["hooks"]


@POSIX
def test_the_file_of_a_command_line_that_has_none_goes_again(user: Path, run: Run) -> None:
    settings = user / ".cursor" / "cli-config.json"
    done = run("install", "--yes", "--statusline", "cursor")
    assert done.status == 0 and shown(settings).startswith("memory: 25 %"), done
    out = run("install", "--yes", "--no-statusline", "cursor")
    assert out.status == 0 and f"everything of ours goes out of {settings}" in out.out, out
    assert not settings.exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [(("codex",), "codex can show none"), (("codex", "opencode"), "can show none"), (("--project", "claude-code"), "not into a project's")],
)  # fmt: skip
def test_where_there_is_no_place_for_it_that_is_said(user: Path, run: Run, words: tuple[str, ...], why: str) -> None:
    done = run("install", "--yes", "--statusline", *words)
    assert done.status != 0 and why in done.err, done
    assert not (user / ".codex").exists()


@POSIX
def test_a_dry_run_shows_it_and_writes_nothing(user: Path, run: Run) -> None:
    settings = user / ".claude" / "settings.json"
    settings.write_text(OWN, encoding="utf-8")
    done = run("install", "--dry-run", "--statusline")
    assert done.status == 0 and "statusLine" in done.out
    assert settings.read_text(encoding="utf-8") == OWN
