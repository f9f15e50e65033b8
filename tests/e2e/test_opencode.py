"""OpenCode itself, offline: what a plugin's words become, shown with a canned plugin and none of our code."""

from __future__ import annotations

import pytest

from . import evidence, programs, wire
from .opencode import OpenCode
from .world import World

pytestmark = pytest.mark.e2e

_PLUGIN = """\
export const Canned = async () => ({
  "experimental.chat.system.transform": async (input, output) => { output.system.push("CANNED NOTES " + input.sessionID) },
  "experimental.session.compacting": async (input, output) => { output.context.push("CANNED CONTEXT") },
})
"""


def test_a_plugin_speaks_to_the_summariser_and_in_every_request_after_it(world: World) -> None:
    """Notes in the system prompt are there before and after a compaction; context reaches the summariser alone."""
    plugin = world.home / "canned.js"
    plugin.write_text(_PLUGIN, encoding="utf-8")
    config = {"permission": {"*": "allow"}, "plugin": [plugin.as_uri()]}
    harness = OpenCode(world, programs.require(programs.OPENCODE), config)
    shell = {"name": "bash", "input": {"command": "echo hi; exit 3", "description": "Fail"}}
    world.script({"tools": [shell]}, {"text": "It failed."})
    assert harness.turn("Run it and see.").status == 0
    assert harness.turn("Go on with it.").status == 0
    assert harness.compact().status == 0
    assert harness.turn("And now the rest.").status == 0
    (summary,) = world.requests("summary")
    assert "CANNED CONTEXT" in "\n".join(wire.texts(summary["body"]))
    notes = f"CANNED NOTES {harness.session}"
    assert all(notes in "\n".join(wire.texts(request["body"])) for request in world.requests("main"))
    after = "\n".join(wire.texts(evidence.first_main_request_after_summary(world)))
    assert "SCRIPTED-SUMMARY" in after
    assert "Run it and see." not in after
