"""A program in a terminal of its own, as a person sees it: keys go in, the screen comes out.

Owns the tmux server of one world. Invariants: the program has the world's environment alone and runs in its network
namespace; nothing waits for a fixed time where something can be watched instead; all of it ends with the world.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from .world import World

WAIT_SECONDS = 90.0
POLL_SECONDS = 0.1


class Terminal:
    """One window of 150 by 50 characters."""

    def __init__(self, world: World) -> None:
        # The path of a socket is short by law (108 bytes), and a world's folder lies deep.
        self._folder = tempfile.mkdtemp(prefix="obsmem-tmux-")
        self._tmux = ["tmux", "-S", str(Path(self._folder) / "socket")]
        self.world = world

    def start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a program in the world's project."""
        window = ["new-session", "-d", "-x", "150", "-y", "50", "-c", str(self.world.project), *arguments]
        ended = self.world.run([*self._tmux, *window], {**environment, "TERM": "xterm-256color"}, seconds=20)
        assert ended.status == 0, ended

    def screen(self) -> str:
        """What stands on the screen now."""
        return self._run("capture-pane", "-p")

    def enter(self, text: str) -> None:
        """Type a line and, once it is on the screen, press Enter."""
        self._run("send-keys", "-l", text)
        self.wait(lambda: text in self.screen(), f"typed {text!r}")
        self._run("send-keys", "Enter")

    def say(self, prompt: str, event: str = "Stop") -> None:
        """Enter a prompt and wait until the harness has called our hook for ``event`` once more."""
        before = len(self.world.calls(event))
        self.enter(prompt)
        self.wait(lambda: len(self.world.calls(event)) > before, f"{event} after {prompt!r}")

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._run("send-keys", *keys)

    def wait(self, happened: Callable[[], bool], what: str) -> None:
        """Watch until something has happened; fail with the screen if it does not."""
        limit = time.monotonic() + WAIT_SECONDS
        while not happened():
            assert time.monotonic() < limit, f"waited in vain: {what}\n{self.screen()}"
            time.sleep(POLL_SECONDS)

    def leave(self) -> None:
        """Press Ctrl-C until the program has ended: the first one interrupts it, and it asks for another."""
        self.wait(lambda: not self.is_open() or bool(self.press("C-c")), "the end of the program")

    def hang_up(self) -> None:
        """Close the window as it is, which sends SIGHUP, and wait until the program has ended."""
        program = Path("/proc", self._run("list-panes", "-F", "#{pane_pid}").strip())
        self._run("kill-session")
        self.wait(lambda: not program.exists(), "the end of the program")

    def is_open(self) -> bool:
        """True until the program has ended."""
        return bool(self._run("list-sessions"))

    def close(self) -> None:
        """End the terminal and what runs in it."""
        self._run("kill-server")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, encoding="utf-8", timeout=10, check=False)
        return done.stdout


@contextmanager
def open_terminal(world: World) -> Iterator[Terminal]:
    """A terminal that is gone afterwards. Skips the test where there is no tmux."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Terminal(world)
    try:
        yield terminal
    finally:
        terminal.close()
