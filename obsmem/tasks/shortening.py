"""Compiling what hooks and the plugin need to know to shorten outputs: they read no configuration themselves.

Invariant: what stands there is the user's own configuration; a project's file has no say in it.
"""

from __future__ import annotations

from obsmem.system.config import ENVIRONMENT_PREFIX, Config, user_file
from obsmem.system.log import write
from obsmem.system.shortening import Settings, write_settings


def compile_settings(home: str, config: Config) -> None:
    """Leave the settings in the data folder; a folder that cannot be written to is no failure of whoever asks."""
    # A project's ``off`` is for that project: there, hooks find it themselves.
    is_off = config["off"] and (
        config.origins["off"] == user_file() or config.origins["off"].startswith(ENVIRONMENT_PREFIX)
    )
    is_on = config["reduce"] == "on" and not is_off
    settings = Settings(
        reduce=is_on,
        minimum=config["reduce_minimum_bytes"],
        off=tuple(config["reduce_off"]),
        excluded=tuple(config["reduce_exclude"]),
        never=tuple(config["exclude"]),
        view="full" if is_off else config["view"],
    )
    try:
        write_settings(home, settings)
    except OSError as error:
        write(home, "shorten", outcome=type(error).__name__)
