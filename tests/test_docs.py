"""README, SPEC, CONTRIBUTING and ``hooks/`` say what the code does, and leave nothing of it out.

``python -m tests.test_docs`` writes the computed tables of SPEC.md and the files in ``hooks/`` anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import obsmem
from obsmem.core import errors, mask, tokens
from obsmem.harnesses import REGISTRY, SESSION_VARIABLES, TURN_ENDS, base, claude_code_agent, load, skills
from obsmem.interfaces import hook
from obsmem.system import (
    blockfile,
    config,
    environment,
    factsfile,
    focus,
    indexfile,
    launcher,
    leftovers,
    log,
    notice,
    paths,
    process,
    raw_files,
    seats,
    shortening,
    state,
    warningfile,
)
from obsmem.tasks import config_files, left_behind, reasons, rule_files, skill_files, store
from obsmem.tasks.ask import make_worker
from tests import docs_tables
from tests.docs_tables import ROOT, SPAN, SPEC

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DOCUMENTS = (README, SPEC, CONTRIBUTING, ROOT / "CHANGELOG.md", ROOT / "hooks" / "README.md")
PLACEHOLDER = "/path/to/.venv/bin/python -I -S /path/to/observational_memory.py"
HOOK_FILES = {
    "claude-code": ROOT / "hooks/claude-code/settings.json",
    "codex": ROOT / "hooks/codex/hooks.json",
    "cursor": ROOT / "hooks/cursor/hooks.json",
}
# The plugin's hooks run from wherever it was cloned to, under the python3 that is there.
PLUGIN_COMMAND = 'python3 -I -S "${CLAUDE_PLUGIN_ROOT}/observational_memory.py"'
PLUGIN_FILE = ROOT / "hooks/claude-code/hooks.json"
PLUGIN_COMMANDS = ROOT / "hooks/claude-code/commands"
PLUGIN_SERVER = {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/observational_memory.py", "mcp"]}
# What the small files and folders of a store are called, with what names them in the code.
PLACES = (
    store.ARCHIVE, store.MEMORY, store.INDEX, "backups", "sessions", "locks", seats.WAITING, "key", process.INTERPRETER_FILE, launcher.LAUNCHER,
    launcher.RECALL, launcher.SERVER, skill_files.RECORD, config_files.FOLDER, rule_files.RECORD, environment.ENVIRONMENT, notice.WELCOME, notice.LACKS_PACKAGES,
    notice.TROUBLE, notice.TROUBLE_TOLD,
    state.OFF_FILE, "log.txt", indexfile.FOLDER, shortening.SETTINGS_FILE, shortening.VIEW_FOLDER, leftovers.MARK, left_behind.MARK,
)  # fmt: skip
SESSION_FILES = (
    state.STATE_FILE,
    blockfile.NEXT,
    blockfile.CURRENT,
    blockfile.KEPT,
    focus.FOCUS_FILE,
    state.WARNING_FILE,
    state.SEEN_FILE,
    shortening.JOURNAL_FILE,
    shortening.FORGOTTEN_FILE,
    raw_files.FOLDER + "/<id>",
    warningfile.GIVEN,
    factsfile.FACTS_FILE,
    factsfile.REPORT_FILE,
    reasons.PREFIX + "<delivery>",
    reasons.HANDOFF,
    blockfile.DUE,
    blockfile.MAKING,
    blockfile.RESUME,
    blockfile.RETRY,
    blockfile.RETRIED,
    state.OPEN_FILE,
    blockfile.GIVEN + "<occasion>-<part>",
    indexfile.KEPT,
    indexfile.GIVEN + "<ms>",
)
VARIABLES = (
    paths.HOME_VARIABLE, config.CONFIG_VARIABLE, config.ENVIRONMENT_PREFIX + "<KEY>", state.OFF_VARIABLE, state.WORKER_VARIABLE,
)  # fmt: skip


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """What stands under a heading, up to the next heading of its level."""
    match = re.search(rf"^(#+) {re.escape(title)}\n", text, re.MULTILINE)
    assert match, f"no section {title!r}"
    following = re.search(rf"^#{{1,{len(match.group(1))}}} ", text[match.end() :], re.MULTILINE)
    return text[match.end() : match.end() + following.start() if following else len(text)]


def rows(text: str, head: str) -> list[list[str]]:
    """The cells of the first table whose head begins with ``head``, without backticks."""
    lines = text[text.index(f"| {head} |") :].split("\n")[2:]
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        found.append([cell.strip().replace("`", "").replace("\\|", "|") for cell in cells])
    return found


def spans(text: str) -> list[str]:
    """Everything that stands in backticks or in a code block."""
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    return [*blocks, *re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))]


def hook_text(harness: str) -> str:
    written = load(harness).hook_config(lambda words: f"{PLACEHOLDER} {words}")
    return json.dumps(written, indent=2) + "\n"


def plugin_text() -> str:
    written = load("claude-code").hook_config(lambda words: f"{PLUGIN_COMMAND} {words}")
    about = "Takes notes as a session runs, and gives them back after a compaction."
    return json.dumps({"description": about, **written}, indent=2) + "\n"


def plugin_commands() -> dict[str, str]:
    """Name and text of each slash command of the plugin."""
    command = 'python3 "${CLAUDE_PLUGIN_ROOT}/observational_memory.py"'
    texts = skills.skills(command, f"{command} recall")
    return {f"{one.name}.md": claude_code_agent.command_text(one, "") for one in texts}


# --- what is computed


@pytest.mark.parametrize("name", docs_tables.TABLES)
def test_a_computed_table_of_spec_is_what_the_code_gives(name: str) -> None:
    text = read(SPEC)
    (body,) = (match.group("body") for match in SPAN.finditer(text) if match.group("name") == name)
    assert body == docs_tables.TABLES[name](body), "run: python -m tests.test_docs"


def test_every_number_says_what_it_bounds() -> None:
    silent = [row[0] for row in rows(read(SPEC), "module") if not row[2]]
    assert not silent, "write the last column of SPEC, 'Limits and numbers'"


@pytest.mark.parametrize("harness", HOOK_FILES)
def test_a_hook_file_is_what_the_module_gives(harness: str) -> None:
    assert read(HOOK_FILES[harness]) == hook_text(harness), "run: python -m tests.test_docs"


def test_the_hooks_of_the_plugin_are_what_the_module_gives() -> None:
    assert read(PLUGIN_FILE) == plugin_text(), "run: python -m tests.test_docs"


def test_the_commands_of_the_plugin_are_those_that_install_makes() -> None:
    there = {path.name: read(path) for path in PLUGIN_COMMANDS.iterdir()}
    assert there == plugin_commands(), "run: python -m tests.test_docs"


def test_the_plugin_and_its_marketplace_name_what_is_here() -> None:
    plugin = json.loads(read(ROOT / ".claude-plugin/plugin.json"))
    market = json.loads(read(ROOT / ".claude-plugin/marketplace.json"))
    (offered,) = market["plugins"]
    assert (ROOT / plugin["hooks"]).resolve() == PLUGIN_FILE.resolve()
    assert (ROOT / plugin["commands"]).resolve() == PLUGIN_COMMANDS.resolve()
    assert plugin["mcpServers"] == {paths.APP: PLUGIN_SERVER}
    assert (ROOT / offered["source"] / ".claude-plugin/plugin.json").exists() and market["owner"]["name"]
    assert offered["name"] == plugin["name"] and f"{plugin['name']}@" == load("claude-code").PLUGIN  # type: ignore[attr-defined]
    assert offered["version"] == plugin["version"] == obsmem.__version__


# --- both ways: the code's names stand in SPEC, and SPEC's in the code


def test_every_ignored_key_stands_in_spec() -> None:
    text = read(SPEC)
    for harness in REGISTRY:
        listed = {key for row in rows(section(text, harness), "ignored keys") for key in row[0].split()}
        assert listed == set(load(harness).IGNORED_KEYS)


def test_every_command_and_option_stands_in_spec() -> None:
    listed = {row[0]: set(row[1].split()) for row in rows(section(read(SPEC), "Commands"), "command")}
    parsers = docs_tables.parsers()
    assert listed.keys() == parsers.keys()
    for name, parser in parsers.items():
        options = {option for action in parser._actions for option in action.option_strings}
        assert {word for word in listed[name] if word.startswith("-")} == options - {"-h", "--help", "--json"}


def test_every_command_that_a_document_calls_exists() -> None:
    known = {*docs_tables.parsers(), "hook"}
    called = re.compile(r"(?<![<\[])observational(?:_memory\.py|-memory) ([a-z]+)(?![\w.-])")
    for path in DOCUMENTS:
        names = {name for span in spans(read(path)) for name in called.findall(span)}
        assert names <= known, path


def test_every_option_that_a_document_names_exists() -> None:
    known = {
        option
        for parser in docs_tables.parsers().values()
        for action in parser._actions
        for option in action.option_strings
    }
    known |= {"--part", "--version"}
    foreign = {"--fork", "--format"}  # options of harnesses
    for path in (README, SPEC):
        named = {word for span in spans(read(path)) for word in re.findall(r"(?<![\w-])--[a-z][\w-]*", span)}
        assert named - foreign <= known, path


def test_every_configuration_key_stands_in_spec() -> None:
    listed = {row[0]: json.loads(row[1]) for row in rows(section(read(SPEC), "Configuration"), "key")}
    assert listed == {key: default for key, (default, _, _) in config.KEYS.items()}


def test_every_configuration_in_the_readme_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", read(README), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        (tmp_path / "config.yaml").write_text(example, encoding="utf-8")
        monkeypatch.setenv("OBSERVATIONAL_MEMORY_CONFIG", str(tmp_path / "config.yaml"))
        for item in config.load()["workers"]:
            assert item == "extractive" or make_worker(item).NAME


def test_every_event_stands_in_spec_with_its_kind_and_limits() -> None:
    listed = {(row[0], row[1]): (row[2], row[6], row[7]) for row in rows(section(read(SPEC), "Hooks"), "harness")}
    expected = {}
    for harness in REGISTRY:
        module = load(harness)
        limits = registered(module.hook_config(str)) | registered(module.reduce_config(str))
        for event, kind in load(harness).EVENTS.items():
            expected[harness, event] = (kind, limits.get(event, "–"), str(hook.LIMITS.get(kind, 5)))
    assert listed == expected


def registered(written: dict[str, Any]) -> dict[str, str]:
    """Event -> time limit of the handlers that a hook config registers."""
    limits = {}
    for event, groups in written.get("hooks", {}).items():
        handlers = [handler for group in groups for handler in group.get("hooks", [group])]
        (limits[event],) = {str(handler["timeout"]) for handler in handlers}
    return limits


def test_the_turn_ends_of_spec_are_those_of_the_registry() -> None:
    listed = {row[0]: row[1] for row in rows(section(read(SPEC), "Hooks"), "harness") if row[2] == "turn_end"}
    assert listed == {harness: end[0] for harness, end in TURN_ENDS.items()}


def test_every_place_and_variable_stands_in_spec() -> None:
    text = section(read(SPEC), "Files and places")
    assert {row[0] for row in rows(text, "place in the data folder")} == set(PLACES)
    assert {row[0] for row in rows(text, "file of a session's folder")} == set(SESSION_FILES)
    outside = {config.FILE_NAME, config.PROJECT_FILE, state.PROJECT_OFF_FILE}
    assert {row[0] for row in rows(text, "outside the data folder")} == outside
    assert {row[0] for row in rows(text, "variable")} == set(VARIABLES)
    assert log.log_path("").endswith("log.txt")


def test_every_place_of_a_store_is_one_that_spec_names(tmp_path: Path) -> None:
    home = tmp_path / "home"
    demo = ROOT / "fixtures/demo/claude-code/session.jsonl"
    command = [sys.executable, str(ROOT / "observational_memory.py")]
    environment = {**os.environ, paths.HOME_VARIABLE: str(home), config.CONFIG_VARIABLE: str(tmp_path / "none.yaml")}
    for words in (["maintain", "claude-code", "--transcript", str(demo)], ["hooks", "claude-code"]):
        subprocess.run([*command, *words], env=environment, check=True, capture_output=True)
    made = {path.name.removesuffix("-journal").removesuffix("-wal").removesuffix("-shm") for path in home.iterdir()}
    assert {name.removesuffix(".cmd") for name in made} <= set(PLACES)
    (session,) = (home / "sessions" / "claude-code").iterdir()
    names = {path.name for path in session.iterdir() if not path.name.startswith(reasons.PREFIX)}
    assert names <= set(SESSION_FILES)


def test_every_variable_that_a_document_names_exists() -> None:
    known = {name.removesuffix("<KEY>") for name in VARIABLES}
    known |= {name for names in SESSION_VARIABLES.values() for name in names}
    for path in DOCUMENTS:
        assert set(re.findall(r"OBSERVATIONAL_MEMORY_(?:SET_|[A-Z_]+)", read(path))) <= known, path


def test_every_exit_code_stands_in_spec() -> None:
    listed = {row[0]: row[2] for row in rows(section(read(SPEC), "Errors and exit codes"), "exit code")}
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    by_code: dict[str, set[str]] = {"0": {"–"}, "130": {"–"}}
    for one in classes:
        by_code.setdefault(str(getattr(one, "exit_code", "")), set()).add(one.__name__)
    assert {code: set(names.split(", ")) for code, names in listed.items()} == by_code


def test_the_weights_of_tokens_stand_in_spec() -> None:
    listed = [float(row[1]) for row in rows(section(read(SPEC), "Tokens"), "class")]
    weights = (
        tokens.LETTER, tokens.UPPER_EXTRA, tokens.DIGIT, tokens.PUNCTUATION, 0.0, tokens.DOUBLE_SPACE, tokens.NEWLINE, tokens.WIDE,
        tokens.CYRILLIC, tokens.NON_ASCII,
    )  # fmt: skip
    assert listed == list(weights)


def test_every_harness_has_a_section_and_a_column() -> None:
    text = read(SPEC)
    for harness in REGISTRY:
        section(section(text, "Reading transcripts"), harness)
    assert [cell.strip() for cell in re.findall(r"^\| rung \|(.*)\|$", text, re.MULTILINE)[0].split("|")] == list(
        REGISTRY
    )


def test_every_member_of_the_interface_stands_in_contributing() -> None:
    listed = {re.match(r"\w+", row[0]).group() for row in rows(read(CONTRIBUTING), "member")}  # type: ignore[union-attr]
    members = {
        name
        for protocol in (base.Hooks, base.Harness)
        for name in (*vars(protocol), *protocol.__annotations__)
        if not name.startswith("_")
    }
    assert listed == members


# --- the documents themselves


def test_clauses_have_names_of_their_own() -> None:
    names = re.findall(r"\*\*([A-Z]+(?:-[A-Z]{2})?-\d+)\*\*", read(SPEC))
    assert len(names) == len(set(names)) > 100


def test_every_clause_that_is_named_exists() -> None:
    text = read(SPEC)
    names = set(re.findall(r"\*\*([A-Z]+(?:-[A-Z]{2})?-\d+)\*\*", text))
    families = {name.partition("-")[0] for name in names}
    for path in (*DOCUMENTS, *(ROOT / "tests").rglob("*.py"), *(ROOT / "obsmem").rglob("*.py")):
        for name in re.findall(r"\b[A-Z]{3,6}(?:-[A-Z]{2})?-\d+\b", read(path)):
            assert name in names or name.partition("-")[0] not in families, f"{path}: {name}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", read(path)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        headings = {
            re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-")
            for one in re.findall(r"^#+ (.+)$", read(linked), re.MULTILINE)
        }
        assert not anchor or anchor in headings, target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_the_checkout_that_is_named_exists(path: Path) -> None:
    named = re.compile(r"(?<![\w/.~-])(?:obsmem|fixtures|hooks|tests|tools)/[\w./-]+")
    for span in spans(read(path)):
        foreign = "<" in span or "Last instruction" in span  # a pattern, or the block of a made-up project
        for name in named.findall(span) if not foreign else ():
            assert (ROOT / name).exists(), name


def test_readme_shows_what_a_replay_gives(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```text\n(Last instruction.*?)```", read(README), re.DOTALL)
    environment = {**os.environ, "TZ": "UTC", config.CONFIG_VARIABLE: str(tmp_path / "none.yaml")}
    command = [sys.executable, "observational_memory.py", "replay", "fixtures/demo/claude-code/session.jsonl"]
    given = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True).stdout.decode("utf-8")
    for line in shown.split("\n"):
        assert line.removesuffix("…") in given, line


def test_spec_shows_how_a_mark_looks() -> None:
    assert mask.mask("password=hunter2hunter2") == "password=…[masked password]"
    assert "`[masked <kind>]`" in section(read(SPEC), "Masking")


def write() -> None:
    """Write what is computed anew."""
    SPEC.write_text(docs_tables.computed(read(SPEC)), encoding="utf-8")
    for harness, path in HOOK_FILES.items():
        path.write_text(hook_text(harness), encoding="utf-8")
    PLUGIN_FILE.write_text(plugin_text(), encoding="utf-8")
    PLUGIN_COMMANDS.mkdir(exist_ok=True)
    for name, text in plugin_commands().items():
        (PLUGIN_COMMANDS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
