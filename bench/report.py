"""What the report of a session of weeks costs: to write, to keep, to open, to search.

    python -m bench.report [FILE-OR-FOLDER ...] [--large MB] [--json FILE]

The session is made of real records, again and again, with ids that are new each time (``bench.large``). What a browser does is
measured in a headless Chromium, where there is one. Everything lies in a temporary folder and is deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import corpus, facts
from bench.large import NAME, append, records
from tests.e2e import browser

MB = 1_000_000
COMMAND = str(corpus.PROJECT / "observational_memory.py")
_CHILD = """
import sys
from bench.facts import peak_memory
from obsmem.interfaces.cli import main
status = main(sys.argv[1:])
print(peak_memory(), file=sys.stderr)
sys.exit(status)
"""
SEARCHES = ("test", "error file", '"nobody ever said this"')


def measure(paths: list[str], size: int) -> dict[str, Any]:
    """Figures of a report of ``size`` bytes of transcript."""
    samples = corpus.gather(paths)["claude-code"]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path, page = os.path.join(folder, "t", f"{NAME}.jsonl"), os.path.join(folder, "page.html")
        os.mkdir(os.path.dirname(path))
        append(path, records(samples), size)
        environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": os.path.join(folder, "home")}
        environment |= {
            "OBSERVATIONAL_MEMORY_CONFIG": os.path.join(folder, "none.yaml"),
            "PYTHONPATH": str(corpus.PROJECT),
        }
        ingest = [sys.executable, COMMAND, "ingest", path]
        subprocess.run(ingest, check=True, capture_output=True, env=environment)
        start, cpu = time.perf_counter(), os.times().children_user
        command = [sys.executable, "-c", _CHILD, "report", "-o", page, "--json"]
        done = subprocess.run(command, check=True, capture_output=True, env=environment)
        figures = {
            "transcript_mb": round(os.path.getsize(path) / MB, 1), "page_mb": round(os.path.getsize(page) / MB, 1),
            "seconds": round(time.perf_counter() - start, 1), "cpu_seconds": round(os.times().children_user - cpu, 1),
            "peak_mb": round(int(done.stderr.split()[-1]) / MB),
            **{name: json.loads(done.stdout)[name] for name in ("entries", "notes", "compactions")},
        }  # fmt: skip
        if next(filter(None, map(shutil.which, browser.NAMES)), None):
            figures |= _in_a_browser(Path(page))
    return figures


def _in_a_browser(page: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with browser.open_browser() as one:
        one.look(1400, 1000)
        start = time.perf_counter()
        one.open(page.as_uri())
        found["open_seconds"] = round(time.perf_counter() - start, 2)
        found["renderer_mb"] = _renderer_mb(one.process.pid)
        for words in SEARCHES:
            start = time.perf_counter()
            one.run(f"document.querySelector('#query').value = {json.dumps(words)}; search()")
            found[f"search {words} seconds"] = round(time.perf_counter() - start, 2)
        one.run("document.querySelector('#query').value = ''; search()")
        one.run("showTab('entries')")
        start = time.perf_counter()
        one.run("page.list.choose(page.list.items.length - 1); openEntry(page.list.items.length - 1, true)")
        found["last_entry_seconds"] = round(time.perf_counter() - start, 3)
        found["rows"] = one.run("document.querySelectorAll('#list .row').length")
        found["renderer_mb_after"] = _renderer_mb(one.process.pid)
    return found


def _renderer_mb(group: int) -> int:
    """The resident memory of the largest renderer in a process group (Linux; 0 elsewhere)."""
    largest = 0
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            if os.getpgid(int(name)) != group or b"renderer" not in Path(f"/proc/{name}/cmdline").read_bytes():
                continue
            lines = Path(f"/proc/{name}/status").read_text(encoding="utf-8").split("\n")
            largest = max(largest, *(int(line.split()[1]) for line in lines if line.startswith("VmRSS")))
        except (OSError, ValueError):
            continue
    return round(largest / 1000)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="what the report of a large session costs")
    parser.add_argument("paths", nargs="*", default=corpus.default_folders())
    parser.add_argument("--large", type=int, default=100, metavar="MB", help="size of the transcript (100)")
    parser.add_argument("--json", default="", metavar="FILE", help="where to write the figures")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    figures = measure(options.paths, options.large * MB)
    for name, value in figures.items():
        print(f"{name:36} {value}")
    if options.json:
        facts.write(options.json, {"machine": machine, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
