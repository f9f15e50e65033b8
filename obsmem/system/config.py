"""The configuration: defaults, then the user's file, then the project's, then the environment. Off the hook path.

Invariants: an unknown key or a wrong value is named with its file and refused, never guessed; every value knows where
it came from; hooks read none of this (the maintainer compiles what they need into the session's state file). What runs
programs, sends words away, costs money or hides less is the user's to say: a project's file, which may have come with
somebody else's repository, cannot.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core.errors import ConfigError
from obsmem.system.paths import APP

FILE_NAME = "config.yaml"
PROJECT_FILE = ".observational-memory.yaml"
LARGEST_FILE = 1 << 20  # characters
LONGEST_REASON = 1000  # characters of what the validator says
CONFIG_VARIABLE = "OBSERVATIONAL_MEMORY_CONFIG"
ENVIRONMENT_PREFIX = "OBSERVATIONAL_MEMORY_SET_"

_TOKENS = {"type": "integer", "minimum": 1}

# key -> (default, JSON schema, meaning with unit). SPEC and ``config`` print this table.
KEYS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "observe_after_tokens": (10_000, _TOKENS, "new transcript tokens after which the observer runs"),
    "reflect_after_tokens": (20_000, _TOKENS, "observed tokens after which reflector and dropper run"),
    "chunk_max_tokens": (
        None,
        {"type": ["integer", "null"], "minimum": 1},
        "most tokens that one observer call sees; null: a fifth of the worker's window, else 60,000; floor 256",
    ),
    "memory_max_tokens": (16_000, _TOKENS, "most tokens of earlier notes and reflections that a worker is shown"),
    "pool_target_tokens": (10_000, _TOKENS, "tokens of visible notes that the dropper aims at"),
    "budget_tokens": (8_000, {"type": "integer", "minimum": 300, "maximum": 12_000}, "most tokens of the block"),
    "workers": (
        ["extractive"],
        {"type": "array", "items": {"type": ["string", "object"]}},
        "who observes, in order; the extractive worker always comes last",
    ),
    "prefer_session_model": (
        False,
        {"type": "boolean"},
        "ask first the worker that is set to the model of the session itself",
    ),
    "worker_calls_per_day": (
        300,
        {"type": ["integer", "null"], "minimum": 0},
        "most calls of models in a day, over all sessions; null: no limit",
    ),
    "worker_tokens_per_day": (
        1_000_000,
        {"type": ["integer", "null"], "minimum": 0},
        "most tokens, in and out, that models may take in a day; null: no limit",
    ),
    "worker_retry_minutes": (
        60,
        {"type": "number", "minimum": 1, "maximum": 1440},
        "minutes that a worker which could not be reached is left alone",
    ),
    "ungrounded": (
        "keep",
        {"enum": ["keep", "reject"]},
        "what becomes of a note whose names and numbers the cited entries do not have",
    ),
    "upgrade": (
        False,
        {"type": "boolean"},
        "let a model observe again what only the extractive worker had observed",
    ),
    "precompact_seconds": (
        15,
        {"type": "number", "minimum": 0, "maximum": 15},
        "seconds that the configured workers get before a compaction",
    ),
    "retention_days": (
        0,
        {"type": "integer", "minimum": 0},
        "days after which raw bytes of idle sessions go; 0 keeps all",
    ),
    "retention_keep": (
        "cited",
        {"enum": ["cited", "nothing"]},
        "what stays after retention_days: bytes that notes cite, or nothing",
    ),
    "exclude": (
        [],
        {"type": "array", "items": {"type": "string"}},
        "globs of transcript paths or working folders never read",
    ),
    "mask": ([], {"type": "array", "items": {"type": "string"}}, "regular expressions of further secrets to mask"),
    "mcp_scope": (
        "workspace",
        {"enum": ["workspace", "everywhere"]},
        "whose sessions an agent's tools show: those of its own workspace, or all",
    ),
    "embeddings": (
        None,
        {
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["url", "model"],
            "properties": {name: {"type": "string", "minLength": 1} for name in ("url", "model", "key_env")},
        },
        "a server that makes vectors of words for searches: url and model, key_env where it wants a key; null: none",
    ),
    "warn_at": (
        [0.72, 0.9],
        {"type": "array", "items": {"type": "number", "minimum": 0.05, "maximum": 1}},
        "parts of the way to the harness's own compaction at which user and agent are warned, once a window; empty: never",
    ),
    "reduce": (
        "off",
        {"enum": ["off", "on"]},
        "shorten long outputs of shell commands before the model sees them; the whole is kept first",
    ),
    "reduce_minimum_bytes": (
        2_000,
        {"type": "integer", "minimum": 500},
        "bytes below which an output is never shortened",
    ),
    "reduce_off": (
        [],
        {"type": "array", "items": {"type": "string"}},
        "rules of shortening that are not used; 'reduce --rules' lists them",
    ),
    "reduce_exclude": (
        [],
        {"type": "array", "items": {"type": "string"}},
        "globs of commands whose outputs are never shortened",
    ),
    "view": (
        "full",
        {"enum": ["full", "thin"]},
        "old tool results in requests that our plugin sees: whole, or masked, the oldest first, where room is short",
    ),
    "start_index": (True, {"type": "boolean"}, "tell a new session what is kept of its workspace"),
    "off": (False, {"type": "boolean"}, "switch memory off"),
}


# The keys that a project's file cannot set.
USERS_OWN = (
    "workers", "prefer_session_model", "worker_calls_per_day", "worker_tokens_per_day", "worker_retry_minutes", "upgrade",
    "mask", "exclude", "retention_days", "retention_keep", "mcp_scope", "embeddings",
    "reduce", "reduce_minimum_bytes", "reduce_off", "reduce_exclude", "view",
)  # fmt: skip


class Config:
    """The values in force and, for each key, where it came from ('default', a file's path, or a variable's name);
    ``ignored`` are the (key, file) that a project's file had no right to set."""

    def __init__(
        self, values: Mapping[str, Any], origins: Mapping[str, str], ignored: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.values = values
        self.origins = origins
        self.ignored = tuple(ignored)

    def __getitem__(self, key: str) -> Any:
        """The value of a key."""
        return self.values[key]


def schema() -> dict[str, Any]:
    """The JSON schema of a config file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {key: {**rule, "description": meaning} for key, (_, rule, meaning) in KEYS.items()},
    }


def user_file() -> str:
    """Where the user's config file lies: ``OBSERVATIONAL_MEMORY_CONFIG``, else the platform's place for configuration.

    For Linux the rule of platformdirs' ``user_config_dir`` (a test compares them) is written out here: importing the package
    takes as long as a whole answer of ``recall``.
    """
    given = os.environ.get(CONFIG_VARIABLE)
    if given:
        return given
    base = os.environ.get("XDG_CONFIG_HOME", "") or os.path.join(os.path.expanduser("~"), ".config")
    if sys.platform == "linux" and base.startswith("/") and "ANDROID_DATA" not in os.environ:
        return os.path.join(base, APP, FILE_NAME)
    from platformdirs import user_config_dir

    return os.path.join(user_config_dir(APP, appauthor=False), FILE_NAME)


def defaults() -> Config:
    """The built-in values."""
    return Config({key: default for key, (default, _, _) in KEYS.items()}, dict.fromkeys(KEYS, "default"))


def load(project: str = "") -> Config:
    """Read all layers. ``project`` is a working folder whose own file counts, or that of a folder above it.

    Raises ConfigError naming key and file.
    """
    values: dict[str, Any] = dict(defaults().values)
    origins: dict[str, str] = dict(defaults().origins)
    ignored = []
    own = user_file()
    for path in [own, *(_project_file(project) if project else ())]:
        for key, value in _read(path).items():
            if path != own and key in USERS_OWN:
                ignored.append((key, path))
            else:
                values[key], origins[key] = value, path
    for key, value in _environment().items():
        values[key], origins[key] = value, ENVIRONMENT_PREFIX + key.upper()
    return Config(values, origins, ignored)


def override(config: Config, changes: Mapping[str, Any], origin: str) -> Config:
    """The same configuration with some values replaced, checked. Raises ConfigError."""
    _validate(dict(changes), origin)
    return Config({**config.values, **changes}, {**config.origins, **dict.fromkeys(changes, origin)}, config.ignored)


def read_value(text: str, origin: str) -> Any:
    """The value that a text stands for, as it would in a config file. Raises ConfigError."""
    return _parse_yaml(text, origin)


def _project_file(folder: str) -> list[str]:
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        if os.path.isfile(path):
            return [path]
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        folder = parent


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The config file {path} cannot be read ({error}). Correct or remove it.") from error
    if len(text) > LARGEST_FILE:
        raise ConfigError(f"The config file {path} is longer than {LARGEST_FILE} characters. Correct or remove it.")
    values = _parse_yaml(text, f"The config file {path}")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"The config file {path} must hold 'key: value' lines. Correct it.")
    _validate(values, path)
    return values


def _parse_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text, in which only true and false are truth values: in YAML 1.1 the key ``off`` is one."""
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012
            first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:bool"]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            """No aliases: a few lines of them, as in the file of somebody's repository, name more than memory holds."""
            if self.check_event(yaml.AliasEvent):
                raise yaml.composer.ComposerError(None, None, "an alias is not taken", None)
            return super().compose_node(parent, index)

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?i:true|false)\Z"), list("tTfF"))
    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError) as error:  # as for a date of no calendar
        raise ConfigError(f"{origin} is not valid YAML ({error}). Correct it.") from error


def _environment() -> dict[str, Any]:
    values = {}
    for name, text in os.environ.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            key = name[len(ENVIRONMENT_PREFIX) :].lower()
            values[key] = _parse_yaml(text, f"The environment variable {name}")
            _validate({key: values[key]}, name)
    return values


def _validate(values: dict[str, Any], origin: str) -> None:
    if all(key in KEYS and _fits(value, KEYS[key][1]) for key, value in values.items()):
        return
    import jsonschema  # costs 130 ms, and says what is wrong

    for error in jsonschema.Draft202012Validator(schema()).iter_errors(values):
        key = ".".join(str(part) for part in error.absolute_path)
        where = f"{key!r} in {origin}" if key else origin
        raise ConfigError(
            f"Wrong configuration: {where}: {error.message[:LONGEST_REASON]}. 'observational-memory config' lists all keys."
        )


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "array": (list,), "object": (dict,), "boolean": (bool,), "integer": (int,), "number": (int, float),
    "null": (type(None),),
}  # fmt: skip
_KNOWN_RULES = frozenset(
    ("type", "enum", "minimum", "maximum", "minLength", "items", "properties", "required", "additionalProperties")
)


def _fits(value: Any, rule: Mapping[str, Any]) -> bool:
    """True for a value that surely keeps a rule; False where it does not, or only the validator can tell."""
    if not _KNOWN_RULES.issuperset(rule):
        return False
    names = rule.get("type", ())
    if names and not any(_is_a(value, name) for name in ([names] if isinstance(names, str) else names)):
        return False
    if "enum" in rule and not any(value == one and type(value) is type(one) for one in rule["enum"]):
        return False
    if isinstance(value, str):
        return len(value) >= int(rule.get("minLength", 0))
    if isinstance(value, (int, float)):
        return bool(rule.get("minimum", value) <= value <= rule.get("maximum", value))
    if isinstance(value, list):
        return all(_fits(one, rule.get("items", {})) for one in value)
    if isinstance(value, dict):
        known = rule.get("properties", {})
        return (
            bool(rule.get("additionalProperties", True) or known.keys() >= value.keys())
            and set(rule.get("required", ())) <= value.keys()
            and all(_fits(one, known.get(name, {})) for name, one in value.items())
        )
    return value is None


def _is_a(value: Any, name: str) -> bool:
    """True for a value of a type of JSON; a truth value is no number."""
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
