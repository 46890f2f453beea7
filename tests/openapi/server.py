"""`stepwarden serve` in a folder of its own, with orders in every state."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

# The reply channel that orders may name. Nobody listens there, which an order does not mind.
CHANNEL = "shop"
# How long anything may take that is waited for. Reached only when something is wrong.
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.05


class Server:
    """A running `stepwarden serve`; ends, and leaves nothing, with the block that it is used in."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._folder = tempfile.TemporaryDirectory(prefix="stepwarden-openapi-")
        self._log = Path(self._folder.name) / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Server:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        data, channel = f"{self._folder.name}/data", f"{CHANNEL}=http://127.0.0.1:9/"
        options = ["--port", str(port), "--data", data, "--reply-channel", channel]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._program, "serve", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "RUST_LOG": "warn", "NO_COLOR": "1"},
            )
        try:
            until("stepwarden serve answers", self._answers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()

    def log(self) -> str:
        """What it wrote."""
        return self._log.read_text(errors="replace")

    def still_runs(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status and body of an answer."""
        data = None if body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **names}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def _answers(self) -> bool:
        if not self.still_runs():
            raise RuntimeError(f"stepwarden serve ended: {self.log()}")
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            return False


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(what: str, look: Any) -> Any:
    """Looks again until there is something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(LOOK_EVERY_S)
    raise RuntimeError(f"waited {PATIENCE_S:.0f} s in vain: {what}")
