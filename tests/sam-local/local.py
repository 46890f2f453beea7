"""`sam local`: one invocation of a function in a container, and the HTTP API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.engine import Engine
from harness.deployment import built_template, sam_environment
from harness.emulator import client_environment
from harness.process import Process, free_port
from harness.report import expect
from harness.tools import ROOT, ToolError, program

EVENTS = ROOT / "infra" / "events"
INVOKE_S_MAX = 180.0
START_S_MAX = 90.0


@dataclass(frozen=True)
class Sam:
    """`sam local` with an engine, on the tables and queues of an emulator."""

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
            raise ToolError(f"sam local invoke {function} ended with status {done.returncode}\n{done.stderr}")
        answer = json.loads(lines[-1])
        failed = isinstance(answer, dict) and "errorMessage" in answer
        expect(not failed, f"{function} failed on {path.name}: {answer}\n{done.stderr}")
        return answer

    @property
    def log(self) -> Path:
        """What the functions wrote."""
        return self.folder / "sam-local.log"

    @contextmanager
    def start_api(self) -> Iterator[str]:
        """Within, the HTTP API runs; gives its URL."""
        port = free_port()
        command = [*self._command("start-api"), "--port", str(port), "--host", "127.0.0.1"]
        # Its warm containers end with it only at an interrupt.
        log, environment = self.folder / "start-api.log", self._environment()
        process = Process(command, log, env=environment, stop_by=signal.SIGINT)
        process.start(lambda: "Running on" in process.text(), START_S_MAX)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.stop()

    def _command(self, what: str) -> list[str]:
        command = [program("sam", "sam"), "local", what, "--template", str(built_template())]
        command += ["--config-file", str(ROOT / "samconfig.toml"), "--config-env", "offline"]
        return [*command, "--env-vars", str(self.variables)]

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **sam_environment(), **client_environment(self.emulator_url)}
        return {**environment, **self.engine.environment}
