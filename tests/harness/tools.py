"""Tools that a suite needs: environments of Python packages, packages of the system and of npm, cargo."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
CACHE = ROOT / "target" / "python-tools"
REQUIREMENTS = Path(__file__).with_name("requirements")


class ToolError(Exception):
    """A tool could not be installed or started, or ended with an error."""


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / "bin" / "python"


def program(environment_name: str, name: str) -> str:
    """A program of an environment."""
    return str(environment(environment_name) / "bin" / name)


@functools.cache
def environment(name: str) -> Path:
    """The environment with the packages of `requirements/NAME.txt`. It is made anew when that list changes."""
    requirements = REQUIREMENTS / f"{name}.txt"
    folder = CACHE / name
    # The folder is part of the key: its programs contain their own path.
    known_by = f"{folder}\n{platform.python_version()}\n{requirements.read_text()}"
    digest = hashlib.sha256(known_by.encode()).hexdigest()
    stamp = folder / "complete"
    if stamp.exists() and stamp.read_text() == digest:
        return folder
    print(f"installing {name}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Debian ships Python without the part that makes environments.
    if importlib.util.find_spec("ensurepip") is None:
        install_packages("python3-venv")
    run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--requirement", str(requirements)])
    stamp.write_text(digest)
    return folder


def install_packages(*packages: str) -> None:
    """Installs packages of the distribution; fails with their names where root or apt is missing."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ToolError(f"install {' '.join(packages)}, or run this as root where apt is")
    print(f"installing {' '.join(packages)}", file=sys.stderr, flush=True)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "--quiet"], env=quiet)
    run(["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", *packages], env=quiet)


def npm_program(package: str, version: str, name: str) -> Path:
    """A program of a package on npm, with all packages that it needs. No script of a package runs."""
    folder = CACHE / "npm" / f"{package.replace('/', '-')}-{version}-installed"
    program, stamp = folder / "node_modules" / ".bin" / name, folder / "complete"
    if not stamp.exists():
        if shutil.which("npm") is None:
            install_packages("npm")
        print(f"installing {package}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        run(["npm", "install", *quiet, "--prefix", str(folder), f"{package}@{version}"])
        stamp.touch()
    return program


def npm_file(package: str, version: str, member: str) -> Path:
    """One file of a package on npm."""
    folder = CACHE / "npm" / f"{package.replace('/', '-')}-{version}"
    file = folder / Path(member).name
    if file.exists():
        return file
    if shutil.which("npm") is None:
        install_packages("npm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run(["npm", "pack", "--silent", "--pack-destination", str(folder), f"{package}@{version}"])
    archive = next(folder.glob("*.tgz"))
    with tarfile.open(archive) as content:
        try:
            source = content.extractfile(f"package/{member}")
        except KeyError as missing:
            raise ToolError(f"the package {package} has no {member}") from missing
        if source is None:
            raise ToolError(f"{member} of the package {package} is not a file")
        # Renamed last, so that a file with this name is always a whole one.
        part = file.with_suffix(".part")
        part.write_bytes(source.read())
    part.rename(file)
    archive.unlink()
    return file


def stepwarden(given: str | None = None) -> Path:
    """The program `stepwarden`: the given one, or the debug build of this checkout."""
    if given is not None:
        file = Path(given).resolve()
        if not os.access(file, os.X_OK):
            raise ToolError(f"{file} is not a program")
        return file
    cargo("build", "--locked", "--package", "stepwarden")
    return TARGET / "debug" / "stepwarden"


def cargo(*words: str, env: dict[str, str] | None = None) -> None:
    """Runs cargo with its output where this process writes its errors."""
    print("cargo", *words, file=sys.stderr, flush=True)
    command = ["cargo", *words]
    status = subprocess.call(command, cwd=ROOT, env={**os.environ, **(env or {})}, stdout=sys.stderr)
    if status != 0:
        raise ToolError(f"{' '.join(command)} ended with status {status}")


def run(
    command: list[str], *, env: dict[str, str] | None = None, cwd: Path = ROOT, within_s: float = 1800
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; `env` is added to this process's own environment.

    Raises ToolError, with all output of the command, if its status is not 0 or if it takes longer than `within_s`.
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
        # An early end also ends the children of the command.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise ToolError(f"{' '.join(command)} ended with status {process.returncode}\n{output}")
    return subprocess.CompletedProcess(command, 0, output)
