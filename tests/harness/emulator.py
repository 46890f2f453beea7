"""An AWS of its own on this machine: ministack on a free port, with IAM enforced and all its files in one folder."""

from __future__ import annotations

import os
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.process import Process, free_port

REGION = "eu-central-1"
ACCOUNT = "000000000000"
MAIN = Path(__file__).with_name("emulator_main.py")

# Root of the emulated account: requests with this key are allowed everything.
ROOT_KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@dataclass(frozen=True)
class FunctionProcess:
    """A native process that carries out one function's invocations."""

    pid: int
    function: str
    environment: dict[str, str]


class Emulator:
    """A running emulator, for suites in the environment `emulator`. Use it in a `with`: leaving that ends it and every
    function that it runs."""

    def __init__(
        self,
        folder: Path,
        *,
        enforce_iam: bool = True,
        host: str = "127.0.0.1",
    ) -> None:
        """`folder` is made and holds all its files; `host` is the address of this machine to listen on."""
        self.folder = folder
        self.enforce_iam = enforce_iam
        self.host = host
        self.port = free_port()
        command = [sys.executable, str(MAIN), str(os.getpid())]
        self._process = Process(command, folder / "emulator.log", env=self._environment(), cwd=folder)

    @property
    def url(self) -> str:
        """The address of all its services."""
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Emulator:
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        self._process.start(self._is_ready)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def function_processes(self, function: str) -> list[FunctionProcess]:
        """The processes that run a function now, by its deployed name."""
        return [process for process in self._all_processes() if process.function == function]

    def log_tail(self, lines: int) -> str:
        """The last lines that the emulator, and the functions through it, wrote."""
        return self._process.tail(lines)

    def _environment(self) -> dict[str, str]:
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
            "TMPDIR": str(self.folder / "tmp"),
        }

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=1):
                return True
        except OSError:
            return False

    def _all_processes(self) -> Iterator[FunctionProcess]:
        group = self._process.pid
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if os.getpgid(int(folder.name)) != group:
                    continue
                variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it ended meanwhile
            environment = dict(variable.split("=", 1) for variable in variables if "=" in variable)
            function = environment.get("AWS_LAMBDA_FUNCTION_NAME")
            if function:
                yield FunctionProcess(int(folder.name), function, environment)


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
