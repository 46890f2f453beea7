"""One agent under the kit: its queues, its process, the kit's verdict."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
CONTRACTS = HERE.parents[1] / "infra" / "contracts"
KIT_S_MAX = 420.0

_lock = threading.Lock()
_running: list[subprocess.Popen[str]] | None = []
"""Everything that was started; None once nothing may be started any more."""


class TrialError(Exception):
    """The kit could not find anything out."""


@dataclass(frozen=True)
class Outcome:
    """What the kit says of an agent."""

    conforms: bool
    faults: dict[str, list[str]]
    """By scene, of those that failed."""
    agent_log: str


def stop_all() -> None:
    """Ends everything that was started, and starts nothing more."""
    global _running
    with _lock:
        running, _running = _running or [], None
    for process in running:
        process.kill()


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port for the kit. Until the end nobody else gets it: agents make connections all the time, each from any port
    that is free, and the kit's is while its service is away.
    """
    with socket.socket() as holder:
        # Who says the same may listen on it as well, as Python's servers do; who wants any port does not get it.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def under_test(command: list[str], name: str, folder: Path, environment: dict[str, str]) -> Outcome:
    """Runs the kit against the agent that `command` starts, to which the places of queues and service are added."""
    with reserved_port() as port:
        return _under_test(command, name, folder, environment, port)


def _under_test(command: list[str], name: str, folder: Path, environment: dict[str, str], port: int) -> Outcome:
    folder.mkdir(parents=True)
    environment = {**os.environ, **environment}
    status, said, problem = _kit(["--make-queues", name], environment)
    if status != 0:
        raise TrialError(f"no queues for {name}: {problem}")
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
        raise TrialError(f"the kit ended with status {status}: {problem}\n{_tail(log)}")
    report = json.loads(said)
    faults = {scene["Name"]: scene["Faults"] for scene in report["Scenes"] if scene["Verdict"] == "FAILED"}
    if (status == 0) != report["Conforms"] or report["Conforms"] == bool(faults):
        raise TrialError(f"the kit contradicts itself: status {status}\n{said}")
    return Outcome(report["Conforms"], faults, _tail(log))


def _start(
    command: list[str], environment: dict[str, str], output: IO[str] | int, errors: int = subprocess.STDOUT
) -> subprocess.Popen[str]:
    with _lock:
        if _running is None:
            raise TrialError("interrupted")
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
        raise TrialError(f"the kit did not end within {KIT_S_MAX:.0f} s") from late
    return process.returncode, said, problem


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])
