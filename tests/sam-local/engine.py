"""A Docker engine: the machine's own if one answers, else one that lives in a folder for as long as it is needed."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tools import ToolError, run

START_S_MAX = 60.0
STOP_S_MAX = 30.0
BRIDGE = Path("/sys/class/net/docker0")


class EngineError(Exception):
    """There is no Docker engine, and none could be started."""


class Engine:
    """A Docker engine. Use it in a `with`: leaving that ends the one that was started here, with all that it holds."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made where an engine has to be started, and everything is kept in there."""
        self.folder = folder
        self.environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._made_bridge = False

    def __enter__(self) -> Engine:
        if not self._answers():
            if not (shutil.which("dockerd") and shutil.which("docker")):
                install("docker.io", "iptables")
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_own(self) -> bool:
        """Whether it was started here."""
        return self._process is not None

    def docker(self, *words: str, within_s: float = 120) -> str:
        """Runs `docker` with this engine and gives what it printed."""
        return run(["docker", *words], env=self.environment, within_s=within_s).stdout.strip()

    def host_address(self) -> str:
        """The address of this machine as containers on the default network see it."""
        config = json.loads(self.docker("network", "inspect", "bridge"))[0]["IPAM"]["Config"][0]
        first = next(ipaddress.ip_network(config["Subnet"]).hosts())
        return str(config.get("Gateway") or first)

    def stop(self) -> None:
        """Ends the engine that was started here, and its containers; leaves any other alone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._made_bridge and shutil.which("ip"):
            subprocess.run(["ip", "link", "delete", "docker0"], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        if shutil.which("docker") is None:
            return False
        command = ["docker", "info", "--format", "{{.ServerVersion}}"]
        env = {**os.environ, **self.environment}
        try:
            return subprocess.run(command, env=env, capture_output=True, timeout=20).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _start(self) -> None:
        if os.geteuid() != 0:
            raise EngineError("no Docker engine answers, and only root can start one: start it, or run this as root")
        self.folder.mkdir(parents=True)
        self._made_bridge = not BRIDGE.exists()
        socket, log = self.folder / "docker.sock", self.folder / "dockerd.log"
        command = ["dockerd", "--host", f"unix://{socket}", "--data-root", str(self.folder / "data")]
        command += ["--exec-root", str(self.folder / "exec"), "--pidfile", str(self.folder / "pid")]
        # Containers talk to this machine alone, so its firewall and its routes stay as they are.
        command += ["--iptables=false", "--ip-masq=false", "--ip-forward=false"]
        self.environment = {"DOCKER_HOST": f"unix://{socket}"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + START_S_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text(errors="replace").splitlines()[-20:]
                self.stop()
                raise EngineError("the Docker engine did not start:\n" + "\n".join(lines))
            time.sleep(0.2)


def install(*packages: str) -> None:
    """Installs packages of this machine's distribution."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise EngineError(f"install {' '.join(packages)}, or run this as root where apt is")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        run(["apt-get", "update", "-qq"], env=quiet)
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], env=quiet)
    except ToolError as error:
        raise EngineError(str(error)) from error
