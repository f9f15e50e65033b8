"""The locked-down programs, with fakes that print what the real ones were seen to print."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.answers import SCHEMAS
from obsmem.core.errors import WorkerError
from obsmem.core.model import Memory, Reply, Request
from obsmem.workers import command, command_presets
from obsmem.workers.base import SYSTEM
from obsmem.workers.command_base import json_lines

WORDS = sorted(command_presets.PRESETS)
ASK = Request("drop", "abcd", Memory(), prompt="SECRET prompt", schema=SCHEMAS["drop"])
IDS = {"ids": ["abc"]}
MODELS = {
    "models": [{"slug": "m", "tool_mode": "code_mode_only", "shell_type": "unified_exec", "base_instructions": "x"}]
}
# Notes each start, tells its version and its flags, and then says what the test wrote into ``says``.
FAKE = """\
#!{python}
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
says = json.load(open(os.path.join(here, "says.json")))
words = sys.argv[1:]
with open(os.path.join(here, "log"), "a") as log:
    log.write(json.dumps([words, dict(os.environ), os.getcwd(), os.listdir()]) + "\\n")
if words == ["--version"]:
    print(says["version"])
elif words[-1:] == ["--help"]:
    print(says["help"])
elif words[:1] == ["debug"]:
    print(says["debug"])
else:
    assert sys.stdin.read() == "SECRET prompt"
    if "--output-last-message" in words and "answer" in says:
        open(words[words.index("--output-last-message") + 1], "w").write(says["answer"])
    for path in says.get("replace", []):
        path = os.path.join(os.environ["CODEX_HOME"], path)
        os.unlink(path)
        open(path, "w").write("renewed")
    sys.stdout.write(says["out"])
    sys.stderr.write(says.get("err", ""))
    sys.exit(says.get("status", 0))
"""

CLAUDE_INIT = {
    "type": "system",
    "subtype": "init",
    "tools": ["StructuredOutput"],
    "mcp_servers": [],
    "slash_commands": [],
}
CLAUDE_SAID = {"type": "assistant", "message": {"model": "claude-haiku", "content": []}}
CLAUDE_DONE = {
    "type": "result", "subtype": "success", "is_error": False, "api_error_status": None, "result": json.dumps(IDS),
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 7},
    "structured_output": IDS, "terminal_reason": "completed",
}  # fmt: skip
CODEX_SAID = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": json.dumps(IDS)}}
CODEX_DONE = {"type": "turn.completed", "usage": {"input_tokens": 113, "cached_input_tokens": 9, "output_tokens": 7}}
OPEN_SAID = {"type": "text", "part": {"type": "text", "text": json.dumps(IDS)}}
OPEN_DONE = {
    "type": "step_finish",
    "part": {"tokens": {"input": 13, "output": 5, "reasoning": 2, "cache": {"write": 40, "read": 60}}},
}


def lines(*events: Any) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


GOOD = {
    "claude": json.dumps([CLAUDE_INIT, CLAUDE_SAID, CLAUDE_DONE]),
    "codex": lines({"type": "thread.started"}, CODEX_SAID, CODEX_DONE),
    "opencode": "a notice\n" + lines({"type": "step_start", "part": {}}, OPEN_SAID, OPEN_DONE),
}
DEBUG = {"claude": "", "codex": json.dumps(MODELS), "opencode": json.dumps({"tools": {"bash": False}})}


class Fake:
    """One fake program in a folder of its own."""

    def __init__(self, folder: Path, word: str) -> None:
        self.word, self.folder = word, folder
        self.preset = command_presets.load(word)
        self.path = folder / f"fake-{word}"
        self.path.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
        self.path.chmod(0o755)
        flags = " ".join([*self.preset.LOCKS, *self.preset.OPTIONAL])
        self.says(version=f"{word} 1.2.3", help=flags, debug=DEBUG[word], out=GOOD[word])

    def says(self, **words: Any) -> None:
        path = self.folder / "says.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, **words}))

    def ask(self, **options: Any) -> Reply:
        options = {"kind": "command", "preset": self.word, "program": str(self.path), **options}
        return command.make(options).ask(ASK)

    def fails(self, **words: Any) -> WorkerError:
        self.says(**words)
        with pytest.raises(WorkerError) as caught:
            self.ask()
        assert "SECRET" not in str(caught.value)
        return caught.value

    def starts(self) -> list[tuple[list[str], dict[str, str], str, list[str]]]:
        return [tuple(json.loads(line)) for line in (self.folder / "log").read_text().splitlines()]

    def called(self) -> tuple[list[str], dict[str, str]]:
        """Arguments and environment of the last start."""
        return self.starts()[-1][:2]


@pytest.fixture
def fake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    (tmp_path / "fake").mkdir()
    return Fake(tmp_path / "fake", request.param)


each = pytest.mark.parametrize("fake", WORDS, indirect=True)


def only(word: str) -> Any:
    return pytest.mark.parametrize("fake", [word], indirect=True)


@each
def test_an_answer_comes_with_its_usage(fake: Fake) -> None:
    reply = fake.ask()
    assert reply.items == ({"note_id": "abc"},)
    assert (reply.worker, reply.tokens_in, reply.tokens_out) == (f"command:{fake.word}", 113, 7)
    assert reply.model == ("claude-haiku" if fake.word == "claude" else "")


@each
def test_it_starts_in_an_empty_folder_which_goes_and_without_foreign_variables(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_THREAD_ID", "OPENCODE_PID", "OTHER_KEY", "MY_KEY"):
        monkeypatch.setenv(name, "x")
    own = {"claude": "ANTHROPIC_AUTH_TOKEN", "codex": "CODEX_API_KEY", "opencode": "OPENCODE_API_KEY"}
    for name in own.values():
        monkeypatch.setenv(name, "x")
    fake.ask(environment=["MY_KEY"])
    for words, environment, folder, held in fake.starts():
        assert (held, environment["OBSERVATIONAL_MEMORY_WORKER"], environment["MY_KEY"]) == ([], "1", "x")
        assert (
            not {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_THREAD_ID", "OPENCODE_PID", "OTHER_KEY"}
            & environment.keys()
        )
        assert {name for name in own.values() if name in environment} == {own[fake.word]}
        assert "SECRET" not in " ".join(words)
        assert not os.path.exists(folder)
    assert list((tmp_path / "temporary").iterdir()) == []


@each
def test_every_lock_is_passed_and_none_is_dropped(fake: Fake) -> None:
    fake.ask(model="p/m")
    words, _ = fake.called()
    assert [flag for flag in fake.preset.LOCKS if flag not in words] == []
    assert words[words.index("--model") + 1] == "p/m"
    assert [flag for flag in fake.preset.OPTIONAL if flag not in words] == []


@each
def test_a_version_without_a_lock_is_refused_and_never_started(fake: Fake) -> None:
    lacking = fake.preset.LOCKS[1]
    error = fake.fails(help=" ".join(flag for flag in fake.preset.LOCKS if flag != lacking))
    assert (error.fault, error.retry) == ("settings", False)
    assert lacking in str(error) and "1.2.3" in str(error)
    assert {words[-1] for words, *_ in fake.starts()} == {"--version", "--help"}


@each
def test_a_flag_that_only_helps_may_be_missing_and_that_is_kept(fake: Fake) -> None:
    fake.says(help=" ".join(fake.preset.LOCKS))
    assert fake.ask().items
    words, _ = fake.called()
    assert not set(fake.preset.OPTIONAL) & set(words)
    (kept,) = Path(os.environ["OBSERVATIONAL_MEMORY_HOME"], "workers").iterdir()
    assert json.loads(kept.read_text())["dropped"] == list(fake.preset.OPTIONAL)


@each
def test_a_version_is_asked_once(fake: Fake) -> None:
    fake.ask()
    first = len(fake.starts())
    fake.ask()
    assert len(fake.starts()) == first + 1
    os.utime(fake.path, (1, 1))
    fake.ask()
    assert len(fake.starts()) == 2 * first + 1


@each
@pytest.mark.parametrize("status", [0, 1])
def test_a_program_that_says_nothing_is_a_failure(fake: Fake, status: int) -> None:
    assert fake.fails(out="", status=status).fault == ("unavailable" if status else "answer")


@each
@pytest.mark.parametrize("out", ["SECRET garbage", "{}", "[]", '{"type": "result"}', "null\n3\n"])
def test_a_program_that_prints_garbage_is_a_failure(fake: Fake, out: str) -> None:
    assert fake.fails(out=out).fault in ("answer", "unavailable", "settings")


@each
def test_a_version_that_cannot_be_asked_is_refused(fake: Fake) -> None:
    fake.path.write_text(f"#!{sys.executable}\nraise SystemExit(3)\n")
    with pytest.raises(WorkerError, match="cannot be locked down") as caught:
        fake.ask()
    assert caught.value.fault == "settings"


CODEX_TOOL = {"type": "item.completed", "item": {"type": "command_execution"}}
BROKEN_LOCKS = [
    ("claude", json.dumps([{**CLAUDE_INIT, "tools": ["Bash"]}, CLAUDE_DONE])),
    ("claude", json.dumps([{**CLAUDE_INIT, "mcp_servers": [{"name": "x"}]}, CLAUDE_DONE])),
    ("claude", json.dumps([{**CLAUDE_INIT, "slash_commands": ["x"]}, CLAUDE_DONE])),
    ("claude", json.dumps(CLAUDE_DONE)),
    ("codex", lines(CODEX_TOOL, CODEX_SAID, CODEX_DONE)),
    ("opencode", lines({"type": "tool_use", "part": {}}, OPEN_SAID, OPEN_DONE)),
]


@pytest.mark.parametrize(("fake", "out"), BROKEN_LOCKS, indirect=["fake"])
def test_an_answer_behind_a_broken_lock_is_thrown_away(fake: Fake, out: str) -> None:
    error = fake.fails(out=out)
    assert error.fault == "settings"
    assert "not locked down" in str(error)


@only("opencode")
def test_an_agent_that_still_has_tools_is_refused(fake: Fake) -> None:
    assert fake.fails(debug=json.dumps({"tools": {"bash": True}})).fault == "settings"
    assert fake.fails(debug="no json").fault == "settings"


def claude(result: str, **more: Any) -> str:
    event = {**CLAUDE_DONE, "is_error": True, "result": result, "structured_output": None, **more}
    return json.dumps([CLAUDE_INIT, event])


def codex(message: str) -> str:
    return lines({"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}})


def opencode(name: str, **data: Any) -> str:
    return lines({"type": "error", "error": {"name": name, "data": data}})


TOO_LONG = "This model's maximum context length is 8192 tokens, however you requested 9000 tokens"
FAILURES: list[tuple[str, str, str, float, tuple[int, int]]] = [
    ("claude", claude("You've hit your session limit · resets in 2h", api_error_status=429), "unavailable", 7200, (0, 0)),
    ("claude", claude("API Error: Repeated 529 Overloaded errors"), "unavailable", 0, (0, 0)),
    ("claude", claude("API Error: Connection error."), "unavailable", 0, (0, 0)),
    ("claude", claude("Credit balance is too low", api_error_status=400), "settings", 0, (0, 0)),
    ("claude", claude("Not logged in · Please run /login"), "settings", 0, (0, 0)),
    ("claude", claude("There's an issue with the selected model (x).", api_error_status=404), "settings", 0, (0, 0)),
    ("claude", claude("", subtype="error_max_structured_output_retries"), "answer", 0, (0, 0)),
    (
        "claude",
        claude("Prompt is too long · the request is ~210000 tokens (limit 200000) but", terminal_reason="prompt_too_long"),
        "overflow",
        0,
        (200_000, 210_000),
    ),
    ("codex", codex("You've hit your usage limit. Please try again in 3 days 4 hours."), "unavailable", 273_600, (0, 0)),
    ("codex", codex("stream disconnected before completion"), "unavailable", 0, (0, 0)),
    ("codex", codex("unexpected status 401 Unauthorized: Missing bearer"), "settings", 0, (0, 0)),
    ("codex", codex("The model `x` does not exist or you do not have access to it."), "settings", 0, (0, 0)),
    ("codex", codex("Your input exceeds the context window of this model."), "overflow", 0, (0, 0)),
    ("opencode", opencode("APIError", message="slow", statusCode=429, responseHeaders={"retry-after": "17"}), "unavailable", 17, (0, 0)),
    ("opencode", opencode("APIError", message="Incorrect API key provided", statusCode=401), "settings", 0, (0, 0)),
    ("opencode", opencode("ProviderModelNotFoundError"), "settings", 0, (0, 0)),
    ("opencode", opencode("MessageOutputLengthError"), "answer", 0, (0, 0)),
    ("opencode", opencode("ContextOverflowError", message=TOO_LONG), "overflow", 0, (8192, 9000)),
    ("opencode", opencode("UnknownError", message="SECRET"), "unavailable", 0, (0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("fake", "out", "fault", "wait", "numbers"), FAILURES, indirect=["fake"])
def test_a_failure_is_told_by_its_words(
    fake: Fake, out: str, fault: str, wait: float, numbers: tuple[int, int]
) -> None:
    error = fake.fails(out=out, status=1)
    assert (error.fault, error.wait, (error.window, error.counted)) == (fault, wait, numbers)
    assert error.retry == (fault != "settings")


@pytest.mark.parametrize(
    ("fake", "err"),
    [("claude", "error: unknown option '--x'"), ("codex", "error: unexpected argument '--x'"), ("opencode", "Unknown argument: x")],
    indirect=["fake"],
)  # fmt: skip
def test_a_flag_that_is_refused_makes_the_version_be_asked_again(fake: Fake, err: str) -> None:
    assert fake.fails(out="", err=err, status=1).fault == "settings"
    before = len(fake.starts())
    fake.says(out=GOOD[fake.word], err="", status=0)
    assert fake.ask().items
    assert len(fake.starts()) > before + 1


@only("claude")
def test_a_schema_goes_along_and_plain_words_are_read_where_it_was_not_kept_to(fake: Fake) -> None:
    event = {key: value for key, value in CLAUDE_DONE.items() if key != "structured_output"}
    fake.says(out=json.dumps([CLAUDE_INIT, {**event, "result": "```json\n" + json.dumps(IDS) + "\n```"}]))
    assert fake.ask().items == ({"note_id": "abc"},)
    words, _ = fake.called()
    assert json.loads(words[words.index("--json-schema") + 1]) == ASK.schema
    assert words[words.index("--system-prompt") + 1] == SYSTEM
    assert words[words.index("--tools") + 1] == words[words.index("--setting-sources") + 1] == ""


@only("codex")
def test_a_renewed_login_is_kept_and_the_rest_of_the_users_home_is_not_there(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "codex"
    home.mkdir()
    (home / "auth.json").write_text("old")
    provider = '[model_providers.p]\nenv_key = "P_KEY"\nbase_url = "http://127.0.0.1:1/v1"\n'
    (home / "config.toml").write_text(
        f'model_provider = "p"\nnotify = ["SECRET"]\n{provider}[mcp_servers.x]\ncommand = "x"\n'
    )
    monkeypatch.setenv("CODEX_HOME", str(home))
    monkeypatch.setenv("P_KEY", "x")
    fake.says(replace=["auth.json"], answer=json.dumps({"ids": ["of the file"]}))
    assert fake.ask().items == ({"note_id": "of the file"},)
    words, environment = fake.called()
    assert environment["CODEX_HOME"] != str(home)
    assert (home / "auth.json").read_text() == "renewed"
    assert environment["P_KEY"] == "x"
    assert sorted(path.name for path in home.iterdir()) == ["auth.json", "config.toml"]
    assert words[-1] == "-" and "features.hooks=false" in words


def test_codex_takes_over_whom_to_ask_and_describes_models_without_tools(tmp_path: Path) -> None:
    preset: Any = command_presets.load("codex")
    (tmp_path / "config.toml").write_text('model = "m"\nnotify = ["x"]\n[mcp_servers.x]\ncommand = "x"\n')
    expected = {"model": "m"} if sys.version_info >= (3, 11) else {}
    assert preset._kept(str(tmp_path / "config.toml")) == expected
    (model,) = preset.facts(lambda *_: json.dumps(MODELS))["models"]
    assert model == {"slug": "m", "tool_mode": None, "shell_type": "disabled", "base_instructions": SYSTEM}


def test_opencode_takes_over_whom_to_ask_and_nothing_else(tmp_path: Path) -> None:
    preset: Any = command_presets.load("opencode")
    folder = tmp_path / "opencode"
    folder.mkdir()
    provider = '{"p": {"options": {"apiKey": "{file:./key}", "other": "{file:~/key} {env:P_KEY}"}}}'
    (folder / "opencode.jsonc").write_text(
        f'{{"provider": {provider}, // mine\n"mcp": {{"x": {{}}}}, "plugin": ["x"]}}'
    )
    kept, names = preset._kept({"XDG_CONFIG_HOME": str(tmp_path)})
    assert kept == {
        "provider": {"p": {"options": {"apiKey": f"{{file:{folder}/key}}", "other": "{file:~/key} {env:P_KEY}"}}}
    }
    assert names == ["P_KEY"]


def test_presets_are_called_one_at_a_time_unless_told_otherwise() -> None:
    for word in WORDS:
        made = command.make({"kind": "command", "preset": word})
        assert (made.alone, made.NAME, made.model) == (True, f"command:{word}", "")
        assert command.make({"kind": "command", "preset": word, "alone": False}).alone is False


def test_events_are_parted_by_newlines_alone() -> None:
    """Within an answer other characters that end a line elsewhere may stand as they are."""
    events = [{"text": "one\u2028two\x85three"}, {"text": "four"}]
    printed = "warning\r\n" + "\r\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    assert json_lines(printed) == events
