"""Children of ours: detached from whoever started them, and killed with all their own at the deadline."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from obsmem.system import process

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="this platform starts processes otherwise")


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_child_has_its_own_session_closed_stdio_and_our_data_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = (
        "import os, sys\n"
        f"open({str(out)!r}, 'w', encoding='utf-8').write(f\"{{os.getsid(0) == os.getpid()}} {{sys.stdin.read()!r}} "
        "{os.environ['OBSERVATIONAL_MEMORY_HOME']} {sys.argv[1:]}\")\n"
        "print('never seen'); sys.stderr.write('never seen')\n"
    )
    assert process.run(str(tmp_path), script(tmp_path, text), ["a", "b c"], 20) == 0
    assert out.read_text("utf-8") == f"True '' {tmp_path} ['a', 'b c']"


def test_the_exit_status_comes_back(tmp_path: Path) -> None:
    assert process.run(str(tmp_path), script(tmp_path, "raise SystemExit(7)"), [], 20) == 7


def test_at_the_deadline_the_whole_group_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pids) + '.part'!r}, 'w', encoding='utf-8').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.replace({str(pids) + '.part'!r}, {str(pids)!r})\n"
        "time.sleep(60)\n"
    )
    assert process.run(str(tmp_path), script(tmp_path, text), [], 1.5) is None
    for pid in map(int, pids.read_text("utf-8").split()):
        for _ in range(200):
            if gone(pid):
                break
            time.sleep(0.01)
        assert gone(pid)


def test_the_recorded_interpreter_is_taken_if_it_is_there(tmp_path: Path) -> None:
    assert process.interpreter(str(tmp_path)) == sys.executable
    (tmp_path / "interpreter").write_text("/no/such/python\n", encoding="utf-8")
    assert process.interpreter(str(tmp_path)) == sys.executable
    (tmp_path / "interpreter").write_text("/bin/sh\n", encoding="utf-8")
    assert process.interpreter(str(tmp_path)) == "/bin/sh"
