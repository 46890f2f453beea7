"""`sam local`: one invocation of a function in a container, and the HTTP API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator import client_environment, free_port
from engine import Engine
from report import expect
from template import built_template, sam_environment
from tools import ROOT, Tools

EVENTS = ROOT / "infra" / "events"
INVOKE_S_MAX = 180.0
START_S_MAX = 90.0
STOP_S_MAX = 30.0


class LocalError(Exception):
    """`sam local` did not do what it was asked for."""


@dataclass(frozen=True)
class Sam:
    """`sam local` with an engine, on the tables and queues of an emulator."""

    tools: Tools
    engine: Engine
    emulator_url: str
    variables: Path
    folder: Path

    def invoke(self, function: str, event: str | Path) -> Any:
        """What a function answers to a sample event (or to that in a file); its log goes into the test's folder."""
        path = event if isinstance(event, Path) else EVENTS / f"{event}.json"
        done = subprocess.run(
            [*self._command("invoke"), function, "--event", str(path)],
            cwd=ROOT,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INVOKE_S_MAX,
        )
        with self.log.open("a") as log:
            log.write(f"\n== {function} {path.name}\n{done.stderr}\n{done.stdout}\n")
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            raise LocalError(f"sam local invoke {function} ended with status {done.returncode}\n{done.stderr}")
        answer = json.loads(lines[-1])
        failed = isinstance(answer, dict) and "errorMessage" in answer
        expect(not failed, f"{function} failed on {path.name}: {answer}\n{done.stderr}")
        return answer

    @property
    def log(self) -> Path:
        """What the functions wrote."""
        return self.folder / "sam-local.log"

    def start_api(self) -> Api:
        """The HTTP API on a free port. Use it in a `with`."""
        port = free_port()
        command = [*self._command("start-api"), "--port", str(port), "--host", "127.0.0.1"]
        return Api(command, self._environment(), f"http://127.0.0.1:{port}", self.folder / "start-api.log")

    def _command(self, what: str) -> list[str]:
        command = [str(self.tools.sam / "bin" / "sam"), "local", what, "--template", str(built_template())]
        command += ["--config-file", str(ROOT / "samconfig.toml"), "--config-env", "offline"]
        return [*command, "--env-vars", str(self.variables)]

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **sam_environment(self.tools), **client_environment(self.emulator_url)}
        return {**environment, **self.engine.environment}


class Api:
    """A running `sam local start-api`."""

    def __init__(self, command: list[str], environment: dict[str, str], url: str, log: Path) -> None:
        self._command = command
        self._environment = environment
        self.url = url
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Api:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends it; its warm containers end with it, since an interrupt is what it cleans up after."""
        process, self._process = self._process, None
        if process is None:
            return
        for sent in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(process.pid, sent)
                process.wait(STOP_S_MAX)
                return
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        process.wait()

    def call(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
        """One call; its status and its decoded body."""
        request = urllib.request.Request(self.url + path, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=INVOKE_S_MAX) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            if "Running on" in self.log.read_text(errors="replace"):
                return
            time.sleep(0.2)
        raise LocalError(f"sam local start-api did not start:\n{self.log.read_text(errors='replace')}")
