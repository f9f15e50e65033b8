#!/bin/sh
# Make a virtual environment with the first Python that is new enough; say in one sentence what is missing if none is.
# usage: make-venv.sh FOLDER   (PYTHON=... chooses the interpreter)
set -eu
folder=$1
for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 python}; do
    command -v "$python" >/dev/null 2>&1 || continue
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || continue
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "$("$python" --version) has no venv module: install it (on Debian and Ubuntu: apt install python3-venv) and run make again." >&2
        exit 1
    fi
    [ -x "$folder/bin/python" ] && "$folder/bin/python" -c 'import pip' 2>/dev/null && exit 0
    rm -rf "$folder"
    exec "$python" -m venv "$folder"
done
echo "Python 3.10 or newer is needed and was not found (looked for python3, python3.14 … python3.10, python): install it, or run make PYTHON=/path/to/python3." >&2
exit 1
