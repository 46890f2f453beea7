"""One agent under the kit: its queues, its process, the kit's verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.process import free_port
from harness.tools import ROOT, ToolError

CONTRACTS = ROOT / "infra" / "contracts"
KIT_S_MAX = 420.0

_lock = threading.Lock()
_running: list[subprocess.Popen[str]] | None = []
"""All processes; None after `stop_all`."""


@dataclass(frozen=True)
class Outcome:
    """The kit's findings about an agent."""

    faults: dict[str, list[str]]
    """Of each scene that failed; empty for an agent that conforms."""
    agent_log: str


def stop_all() -> None:
    """Ends everything that was started, and starts nothing more."""
    global _running
    with _lock:
        running, _running = _running or [], None
    for process in running:
        process.kill()


def under_test(command: list[str], name: str, folder: Path, environment: dict[str, str]) -> Outcome:
    """Runs the kit against the agent that `command` starts with the URLs of queues and service added."""
    port = free_port()
    folder.mkdir(parents=True)
    environment = {**os.environ, **environment}
    status, said, problem = _kit(["--make-queues", name], environment)
    if status != 0:
        raise ToolError(f"no queues for {name}: {problem}")
    words = said.split()
    urls = dict(zip(words[::2], words[1::2], strict=True))
    shared = ["--replies", urls["replies"], "--replies-high", urls["replies-high"]]
    log = folder / "agent.log"
    service = f"http://127.0.0.1:{port}/service"
    with log.open("w") as output:
        agent = _start([*command, "--requests", urls["requests"], *shared, "--service", service], environment, output)
        try:
            arguments = ["--requests", urls["requests"], *shared, "--listen", str(port), "--json"]
            status, said, problem = _kit(arguments, environment)
        finally:
            agent.kill()
            agent.wait()
    if status not in (0, 1):
        raise ToolError(f"the kit ended with status {status}: {problem}\n{_tail(log)}")
    report = json.loads(said)
    faults = {scene["Name"]: scene["Faults"] for scene in report["Scenes"] if scene["Verdict"] == "FAILED"}
    if (status == 0) != report["Conforms"] or report["Conforms"] == bool(faults):
        raise ToolError(f"the kit contradicts itself: status {status}\n{said}")
    return Outcome(faults, _tail(log))


def _start(
    command: list[str], environment: dict[str, str], output: IO[str] | int, errors: int = subprocess.STDOUT
) -> subprocess.Popen[str]:
    with _lock:
        if _running is None:
            raise ToolError("interrupted")
        process = subprocess.Popen(
            command, cwd=CONTRACTS, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, text=True
        )
        _running.append(process)
    return process


def _kit(arguments: list[str], environment: dict[str, str]) -> tuple[int, str, str]:
    process = _start([sys.executable, "-m", "kit", *arguments], environment, subprocess.PIPE, subprocess.PIPE)
    try:
        said, problem = process.communicate(timeout=KIT_S_MAX)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        raise ToolError(f"the kit did not end within {KIT_S_MAX:.0f} s") from late
    return process.returncode, said, problem


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])
