"""Programs that run beside a suite, and ports for them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from harness.tools import ROOT, ToolError

START_S_MAX = 60.0
STOP_S_MAX = 30.0
LOOK_EVERY_S = 0.05

# The ports of this suite.
_HELD: list[socket.socket] = []


class Process:
    """A program that runs until it is stopped, in a process group of its own, with its output in a file."""

    def __init__(
        self,
        command: list[str],
        log: Path,
        *,
        env: dict[str, str],
        cwd: Path = ROOT,
        stop_by: signal.Signals = signal.SIGTERM,
    ) -> None:
        """`env` is its whole environment; `stop_by` is the signal after which it cleans up and ends."""
        self.log = log
        self._command = command
        self._env = env
        self._cwd = cwd
        self._stop_by = stop_by
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id and the id of its group; nothing where it was not started."""
        return self._process.pid if self._process is not None else None

    def start(self, is_ready: Callable[[], bool], within_s: float = START_S_MAX) -> None:
        """Starts it and waits until it is ready. Raises ToolError with its last lines if it ends or takes too long."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until(is_ready, within_s)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends it with all processes of its group, and waits for that."""
        process, self._process = self._process, None
        if process is None:
            return
        for sent in (self._stop_by, signal.SIGKILL):
            try:
                os.killpg(process.pid, sent)
                process.wait(STOP_S_MAX)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        process.wait()
        # A child that is slow to end may outlive the program.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def text(self) -> str:
        """All its output."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int) -> str:
        """The last lines of its output."""
        return "\n".join(self.text().splitlines()[-lines:])

    def _wait_until(self, is_ready: Callable[[], bool], within_s: float) -> None:
        name = Path(self._command[0]).name
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if not self.is_running():
                raise ToolError(f"{name} ended at its start:\n{self.tail(30)}")
            if is_ready():
                return
            time.sleep(LOOK_EVERY_S)
        raise ToolError(f"{name} was not ready within {within_s:.0f} s:\n{self.tail(30)}")


def free_port() -> int:
    """A port of this machine that is this suite's until it ends, also while its server is away.

    A server may listen on it with SO_REUSEADDR, which Rust, Python and Node set. No program or connection that asks for
    any free port gets it: with a port that is only free at the moment, one did between two starts of a server.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _HELD.append(holder)
    return int(holder.getsockname()[1])
