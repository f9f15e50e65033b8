#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["pyyaml>=6", "jsonschema>=4", "platformdirs>=3", "filelock>=3.12"]
# ///
"""The script that hooks and shells run; it has no logic of its own.

    python3 observational_memory.py hook claude-code Stop < payload.json
    python3 observational_memory.py recall 3fa9c1d
    python3 observational_memory.py --help

It must stay beside the folder ``obsmem``. Under ``python -I -S`` (as hooks run it) nothing but the standard library is
there, and the folder of a script is not on the path: so the first thing done here is to put it there.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.realpath(__file__))


def main() -> int:
    """Run a hook (always exit status 0) or a command."""
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    is_hook = sys.argv[1:2] == ["hook"]
    if not os.path.isdir(os.path.join(FOLDER, "obsmem")):
        sys.stderr.write(
            f"observational_memory.py must stand beside its folder 'obsmem', which is missing in {FOLDER}. "
            "Copy both, or run the script from its checkout.\n"
        )
        return 0 if is_hook else 1
    if is_hook:
        from obsmem.interfaces.hook import run

        return run(sys.argv[2:], os.path.realpath(__file__))
    import gc

    gc.disable()  # until all modules are there: they let nothing go
    from obsmem.interfaces.cli import main as command

    return command(sys.argv[1:])


if __name__ == "__main__":
    status = main()
    if "obsmem.interfaces.cli" in sys.modules:
        status = sys.modules["obsmem.interfaces.cli"].leave(status, sys.argv[1:])
    sys.exit(status)
