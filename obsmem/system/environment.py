"""The packages that everything but the hooks needs, and an environment of our own that has them.

Invariant: runs with the standard library alone, and installs nothing outside the data folder; an environment that could
not be finished is not recorded.
"""

from __future__ import annotations

import json
import os
import sys

from obsmem.core.errors import ObsmemError
from obsmem.system.files import make_folder
from obsmem.system.launcher import record_interpreter

NEEDED = {"yaml": "pyyaml", "jsonschema": "jsonschema", "platformdirs": "platformdirs", "filelock": "filelock"}
REQUIREMENTS = ("pyyaml>=6", "jsonschema>=4", "platformdirs>=3", "filelock>=3.12")
MCP = "mcp"  # what only the tools for agents need
MCP_LEAST = 2  # the version from which on our server runs with it
MCP_REQUIREMENT = f"{MCP}>={MCP_LEAST}"
REPORT = "jinja2"  # what only a session's report needs
REPORT_REQUIREMENT = f"{REPORT}>=3.1"
ENVIRONMENT = "venv"
INSTALL_SECONDS = 600
LOOK_SECONDS = 20

_LOOK = """
import json, sys
from importlib.util import find_spec
print(json.dumps([list(sys.version_info[:2]), [name for name in sys.argv[1:] if find_spec(name) is None]]))
"""


def environment_python(home: str) -> str:
    """The interpreter of the environment in a data folder, whether it exists or not."""
    folder = os.path.join(home, ENVIRONMENT)
    return (
        os.path.join(folder, "Scripts", "python.exe")
        if sys.platform == "win32"
        else os.path.join(folder, "bin", "python")
    )


def look(python: str) -> tuple[tuple[int, ...], list[str]] | None:
    """(version, packages that it lacks) of an interpreter; None where it does not run."""
    import subprocess  # every command asks this module which packages there must be, and few run anything

    try:
        done = subprocess.run(
            [python, "-c", _LOOK, *NEEDED],
            capture_output=True,
            cwd=os.path.dirname(python) or None,
            timeout=LOOK_SECONDS,
        )
        version, missing = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return tuple(version), [NEEDED[name] for name in missing]


def lacks_mcp() -> str:
    """What to do so that this interpreter can serve an agent's tools, '' where it can."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(MCP)
    except PackageNotFoundError:
        found = ""
    if found.partition(".")[0].isdigit() and int(found.partition(".")[0]) >= MCP_LEAST:
        return ""
    what = f"has only version {found} of it" if found else "does not have it"
    return (
        f"they need the Python package {MCP}, version {MCP_LEAST} or newer, and {sys.executable} {what}. "
        f"Run: {sys.executable} -m pip install '{MCP_REQUIREMENT}'"
    )


def lacks_report() -> str:
    """What to do so that this interpreter can write a session's report, '' where it can."""
    from importlib.util import find_spec

    if find_spec(REPORT) is not None:
        return ""
    return (
        f"it needs the Python package {REPORT}, and {sys.executable} does not have it. "
        f"Run: {sys.executable} -m pip install '{REPORT_REQUIREMENT}'"
    )


def set_up(home: str) -> str:
    """Record an interpreter that has the packages: this one, else that of an environment which is made for it. Returns
    its path. Raises ObsmemError with the reason in one sentence."""
    for python in (sys.executable, environment_python(home)):
        found = look(python)
        if found is not None and not found[1]:
            record_interpreter(home, python)
            return python
    make_folder(home)
    _run(
        [sys.executable, "-m", "venv", "--clear", os.path.join(home, ENVIRONMENT)],
        f"{sys.executable} cannot make a virtual environment. Install its venv module (on Debian and Ubuntu: apt install "
        "python3-venv) and run setup again",
    )
    python = environment_python(home)
    _run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *REQUIREMENTS],
        "pip could not get the packages (no package registry can be reached from here, or it refused). Run setup again "
        "with a network, or name a mirror in PIP_INDEX_URL",
    )
    for extra in (MCP_REQUIREMENT, REPORT_REQUIREMENT):
        try:
            _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", extra], "")
        except ObsmemError:
            pass  # all but the agent's tools, or the report, works without it, and what needs it says what is missing
    record_interpreter(home, python)
    return python


def _run(command: list[str], failure: str) -> None:
    import subprocess

    try:
        done = subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ObsmemError(f"{failure}: {type(error).__name__}.") from error
    if done.returncode:
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").strip().split("\n")
        raise ObsmemError(f"{failure}: {lines[-1].strip()[:200]}")
