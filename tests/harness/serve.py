"""A running `stepwarden serve`, and calls of its API."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.calls import call
from harness.process import Process, free_port
from harness.report import CheckFailed, expect, until

COMMAND_S_MAX = 120
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A running `stepwarden serve`. Leaving its `with` stops it; started again, it has the same port and data."""

    def __init__(self, program: Path, data: Path, *options: str, variables: dict[str, str] | None = None) -> None:
        """`data` is the folder of its store; its log is a file beside that. `variables` are added to its environment."""
        self.program = program
        self.data = data
        self._options = options
        self._variables = variables or {}
        self.port = 0
        self.process: Process | None = None

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.port = self.port or free_port()
        command = [str(self.program), "serve", "--data", str(self.data), "--port", str(self.port), *self._options]
        environment = {**os.environ, "RUST_LOG": "warn", "NO_COLOR": "1", **self._variables}
        self.process = Process(command, self.data.with_suffix(".log"), env=environment)
        self.process.start(self._answers)

    def stop(self) -> None:
        """Stops it, and waits until it is gone."""
        if self.process is not None:
            self.process.stop()

    def end(self) -> None:
        """Ends it by SIGKILL."""
        os.killpg(self.pid, signal.SIGKILL)
        self.stop()

    def has_applied(self) -> None:
        """One process knows at once what was applied."""

    def kill(self) -> None:
        """Ends it by SIGKILL, and starts it again."""
        self.end()
        self.start()

    @property
    def pid(self) -> int:
        """Its process. Fails the check if there is none."""
        if self.process is None or self.process.pid is None:
            raise CheckFailed(f"the server does not run: {self.log()[-2_000:]}")
        return self.process.pid

    def cpu_ms(self) -> float:
        """The CPU time that it has used."""
        return cpu_ms(self.pid)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command of the program, run to its end."""
        return run(self.program, *words, **variables)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The same for its API."""
        return self.run(*words, "--api", self.url)

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.is_running()

    def log(self) -> str:
        """Its output."""
        return self.process.text() if self.process is not None else ""

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """One call of its API: status and decoded body of the answer."""
        return ask(method, self.url + path, body, headers)

    def get(self, path: str) -> Any:
        """GET of a JSON document. Any other status than 2xx fails the check."""
        return successful("GET", self.url + path)

    def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Any:
        """POST of a JSON document. Any other status than 2xx fails the check."""
        return successful("POST", self.url + path, body, headers)

    def order(self, wait: bool = True, key: str | None = None, **document: object) -> dict[str, Any]:
        """Posts an order, and waits until it is settled or, without `wait`, only until it is stored."""
        headers = {"Prefer": "wait=20"} if wait else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        answer: dict[str, Any] = self.post("/orders", document, headers)
        return answer if wait else self.seen(answer["OrderID"], lambda _: True)

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, as soon as a condition holds."""

        def look() -> dict[str, Any] | None:
            status, task = self.ask("GET", f"/orders/{order_id}")
            if status == 404:
                return None
            expect(status == 200, f"GET /orders/{order_id}: {status} {task}")
            found: dict[str, Any] = task
            return found if holds(found) else None

        return until(f"order {order_id} is as expected", look)

    def health(self, service: str) -> str:
        """The state of a service."""
        services = {one["Service"]: one["State"] for one in self.get("/services")["Services"]}
        return str(services[service])

    def switch(self, service: str, down: bool) -> None:
        """Takes a stand-in down, or up again, and waits until the health of its service shows that it is up."""
        stand_ins = re.findall(r"stand-ins on (\S+)", self.log())[-1]
        successful("POST", f"{stand_ins}/{service}/control", {"Down": down})
        if not down:
            until(f"{service} is healthy again", lambda: self.health(service) == "Closed")

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            return False


def run(program: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of the program, run to its end."""
    environment = {**os.environ, "NO_COLOR": "1", **variables}
    return subprocess.run(
        [str(program), *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=COMMAND_S_MAX,
        check=False,
    )


def cpu_ms(pid: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


def folder(path: Path, settings: str, workflows: Mapping[str, str]) -> Path:
    """Makes a configuration folder: `stepwarden.toml`, and the workflows by the names of their files."""
    (path / "workflows").mkdir(parents=True)
    (path / "stepwarden.toml").write_text(settings)
    for name, text in workflows.items():
        (path / "workflows" / f"{name}.toml").write_text(text)
    return path


def bury(data: Path, bodies: list[str]) -> None:
    """Puts messages that were delivered too often into the data of a stopped server. It settles them at its start."""
    sql = (
        "INSERT INTO dead_letters (queue, message_id, body, reason, receive_count, at) "
        "VALUES ('scheduler', abs(random() % 1000000000), ?, 'received too often', 5, ?)"
    )
    with contextlib.closing(sqlite3.connect(data / "stepwarden.db")) as database, database:
        database.executemany(sql, [(body, int(1_000 * time.time())) for body in bodies])


def ask(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """One call: status and decoded body of the answer, nothing for an empty body."""
    answer = call(method, url, body, headers)
    return answer.status, answer.body


def successful(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
    """The decoded body of a call that must succeed."""
    status, answer = ask(method, url, body, headers)
    expect(200 <= status < 300, f"{method} {url}: {status} {answer}")
    return answer
