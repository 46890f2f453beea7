"""The tools that the tests need, in environments of their own: made once, used again while their lists are the same."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / "target" / "python-tools"
REQUIREMENTS = HERE / "requirements"


class ToolError(Exception):
    """A tool could not be installed, or ended with an error."""


@dataclass(frozen=True)
class Tools:
    """Where the tools are."""

    sam: Path
    emulator: Path
    checkov: Path


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / "bin" / "python"


def install(cache: Path = CACHE) -> Tools:
    """Makes the environments, or finds them made."""
    return Tools(**{name: environment(name, cache) for name in ("sam", "emulator", "checkov")})


def environment(name: str, cache: Path = CACHE, requirements: Path | None = None) -> Path:
    """The environment that holds what `requirements/NAME.txt` lists, or the list that is given."""
    requirements = requirements or REQUIREMENTS / f"{name}.txt"
    folder = cache / name
    # Its programs know where they are, so one that was moved is made anew.
    known_by = f"{folder}\n{platform.python_version()}\n{requirements.read_text()}"
    digest = hashlib.sha256(known_by.encode()).hexdigest()
    stamp = folder / "complete"
    if stamp.exists() and stamp.read_text() == digest:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    need_venv()
    run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--requirement", str(requirements)])
    stamp.write_text(digest)
    return folder


def need_venv() -> None:
    """Debian ships Python without what makes environments; it is installed where that can be done, else asked for."""
    if importlib.util.find_spec("ensurepip") is not None:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ToolError("python3 -m venv does not work here: install the package python3-venv")
    run(["apt-get", "update", "--quiet"])
    run(["apt-get", "install", "--quiet", "--yes", "python3-venv"])


def run(
    command: list[str], *, env: dict[str, str] | None = None, cwd: Path = ROOT, within_s: float = 1800
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; `env` is added to this process's own environment.

    Raises ToolError, with all that the command wrote, where it ends with another status than 0 or not in time.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired as late:
        raise ToolError(f"{' '.join(command)} did not end within {within_s:.0f} s\n{late.stdout!r}") from late
    finally:
        # In an early end, what it started ends with it.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise ToolError(f"{' '.join(command)} ended with status {process.returncode}\n{output}")
    return subprocess.CompletedProcess(command, 0, output)
