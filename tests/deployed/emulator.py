"""An AWS of its own on this machine: ministack on a free port, with IAM enforced and all its files in one folder."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REGION = "eu-central-1"
ACCOUNT = "000000000000"
START_S_MAX = 60.0
STOP_S_MAX = 10.0
MAIN = Path(__file__).with_name("emulator_main.py")

# Root of the emulated account: requests with this key are allowed everything.
ROOT_KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class EmulatorError(Exception):
    """The emulator did not start."""


@dataclass(frozen=True)
class FunctionProcess:
    """A native process that carries out one function's invocations."""

    pid: int
    function: str
    environment: dict[str, str]


class Emulator:
    """A running emulator. Use it in a `with`: leaving that ends it and every function that it runs."""

    def __init__(
        self,
        python: Path,
        folder: Path,
        *,
        enforce_iam: bool = True,
        host: str = "127.0.0.1",
        port: int | None = None,
    ) -> None:
        """`python` is that of the emulator's environment; `folder` is made, and everything is kept in there; `host` is
        the address of this machine to listen on.
        """
        self.python = python
        self.folder = folder
        self.enforce_iam = enforce_iam
        self.host = host
        self.port = port or free_port()
        self.log = folder / "emulator.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where all services are."""
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Emulator:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(self.python), str(MAIN), str(os.getpid())],
                env=self._environment(),
                cwd=self.folder,
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
        """Ends the emulator and its functions. They share a process group that nobody else is in."""
        process, self._process = self._process, None
        if process is None:
            return
        for sent in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, sent)
                process.wait(STOP_S_MAX)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        process.wait()
        # A function that was slow to end outlives the emulator, but not this.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def function_processes(self, function: str) -> list[FunctionProcess]:
        """The processes that run a function now, by its deployed name."""
        return [process for process in self._all_processes() if process.function == function]

    def log_tail(self, lines: int) -> str:
        """The last lines that the emulator, and the functions through it, wrote."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _environment(self) -> dict[str, str]:
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            **ROOT_KEYS,
            "AUTH": "true" if self.enforce_iam else "false",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Without it the functions would call AWS itself.
            "AWS_ENDPOINT_URL": self.url,
            "BIND_HOST": self.host,
            "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "false",
            "LAMBDA_EXECUTOR": "local",
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "MINISTACK_HOST": self.host,
            "MINISTACK_REGION": REGION,
            "PYTHONUNBUFFERED": "1",
            "STATE_DIR": str(self.folder / "state"),
            "TMPDIR": str(scratch),
        }

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise EmulatorError(f"the emulator ended at its start:\n{self.log_tail(30)}")
            try:
                with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise EmulatorError(f"the emulator was not ready within {START_S_MAX:.0f} s:\n{self.log_tail(30)}")

    def _all_processes(self) -> Iterator[FunctionProcess]:
        if self._process is None:
            return
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if os.getpgid(int(folder.name)) != self._process.pid:
                    continue
                variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it ended meanwhile
            environment = dict(variable.split("=", 1) for variable in variables if "=" in variable)
            function = environment.get("AWS_LAMBDA_FUNCTION_NAME")
            if function:
                yield FunctionProcess(int(folder.name), function, environment)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def client_environment(url: str) -> dict[str, str]:
    """What a tool needs in its environment to talk to the emulator at `url`, and to nothing else."""
    return {
        **ROOT_KEYS,
        "AWS_ENDPOINT_URL": url,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def main() -> None:
    """Serves in the foreground, for other tests and for trying things: `emulator.py FOLDER [PORT] [--no-iam]`."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    port = int(words[1]) if len(words) > 1 else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    python, folder, enforce_iam = Path(sys.executable), Path(words[0]).resolve(), "--no-iam" not in sys.argv
    with Emulator(python, folder, enforce_iam=enforce_iam, port=port) as emulator:
        print(emulator.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
