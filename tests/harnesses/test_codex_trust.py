"""What Codex will do with a handler is read from its config as Codex itself reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.harnesses.codex_trust import fingerprint, states

STOP = {"type": "command", "command": "/tmp/x/launch hook codex Stop", "timeout": 10}
START = {"type": "command", "command": "/tmp/x/launch hook codex SessionStart --part 1/4", "timeout": 10}
# As Codex 0.171.0 reports them for these handlers (hooks/list of its app server).
STOP_HASH = "sha256:059e9cb5ea90b9af9daf44a9adc1bc26897ffdb3ed2852f409a589b63ab16b99"
START_HASH = "sha256:ab0c47811856a0fef136504c86db9ff1dfff213ed9a215edea55fd8f3dba6df1"


def test_fingerprints_are_those_of_the_program() -> None:
    assert fingerprint("stop", None, STOP) == STOP_HASH
    assert fingerprint("session_start", "compact", START) == START_HASH


def test_a_limit_of_what_a_handler_says_counts_where_the_event_can_say_something() -> None:
    handler = {"type": "command", "command": "true", "timeout": 30, "additionalContextLimit": 9}
    start = "sha256:d576b46c26cdedcea70ee9536476a9c5825ac614a63197c5226128be84ebd869"
    assert fingerprint("session_start", None, handler) == start  # as the program reports it
    unlimited = {**handler, "additionalContextLimit": 0}
    assert fingerprint("stop", None, unlimited).startswith("sha256:4e5beff43739")
    assert fingerprint("stop", None, handler) == fingerprint("stop", None, unlimited)


@pytest.mark.parametrize(
    ("section", "state"),
    [
        ("", "untrusted"),
        ('[hooks.state."{path}:stop:0:0"]\ntrusted_hash = "{hash}"\n', "trusted"),
        (
            "[hooks.state.'{path}:stop:0:0']\n  trusted_hash='{hash}'  # mine\n[other]\ntrusted_hash = \"x\"\n",
            "trusted",
        ),
        ('[hooks.state."{path}:stop:0:0"]\ntrusted_hash = "sha256:00"\n', "changed"),
        ('[hooks.state."{path}:stop:0:1"]\ntrusted_hash = "{hash}"\n', "untrusted"),
        ('[hooks.state."/elsewhere/hooks.json:stop:0:0"]\ntrusted_hash = "{hash}"\n', "untrusted"),
        ('[hooks.state."{path}:stop:0:0"]\nenabled = false\ntrusted_hash = "{hash}"\n', "disabled"),
        ('model = "x"\n[hooks.state."{path}:stop:0:0"]\n', "untrusted"),
    ],
)
def test_a_handler_is_trusted_only_by_its_own_hash_at_its_own_place(tmp_path: Path, section: str, state: str) -> None:
    hooks = tmp_path / "hooks.json"
    hooks.write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/tmp/x/launch hook codex Stop", "timeout": 10}]}]}}',
        encoding="utf-8",
    )
    config = tmp_path / "config.toml"
    config.write_text(section.replace("{path}", str(hooks)).replace("{hash}", STOP_HASH), encoding="utf-8")
    assert states(str(hooks), str(config)) == [(STOP["command"], state)]


def test_without_a_config_nothing_is_trusted_and_without_hooks_nothing_is_said(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks.json"
    assert states(str(hooks), str(tmp_path / "config.toml")) == []
    hooks.write_text(
        '{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}, 3, {"hooks": 1}], "Odd": 1}}', encoding="utf-8"
    )
    assert states(str(hooks), str(tmp_path / "config.toml")) == [("x", "untrusted")]
    for text in ("[]", "{", '{"hooks": []}'):
        hooks.write_text(text, encoding="utf-8")
        assert states(str(hooks), str(tmp_path / "config.toml")) == []
