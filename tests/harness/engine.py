"""A Docker engine: the machine's own if one answers, else one in a folder that ends with the suite."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
from pathlib import Path

from harness.process import Process
from harness.tools import ToolError, install_packages, run

BRIDGE = Path("/sys/class/net/docker0")


class Engine:
    """A Docker engine. Use it in a `with`: leaving that ends the one that was started here, with all that it holds."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made where an engine has to be started, and everything is kept in there."""
        self.folder = folder
        self.environment: dict[str, str] = {}
        self._process: Process | None = None
        self._made_bridge = False

    def __enter__(self) -> Engine:
        if not self._answers():
            if not (shutil.which("dockerd") and shutil.which("docker")):
                install_packages("docker.io", "iptables")
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
        if self._process is None:
            return
        self._process.stop()
        self._process = None
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
            raise ToolError("no Docker engine answers, and only root can start one: start it, or run this as root")
        self.folder.mkdir(parents=True)
        self._made_bridge = not BRIDGE.exists()
        socket = self.folder / "docker.sock"
        command = ["dockerd", "--host", f"unix://{socket}", "--data-root", str(self.folder / "data")]
        command += ["--exec-root", str(self.folder / "exec"), "--pidfile", str(self.folder / "pid")]
        # Containers talk to this machine alone, so its firewall and its routes stay as they are.
        command += ["--iptables=false", "--ip-masq=false", "--ip-forward=false"]
        self.environment = {"DOCKER_HOST": f"unix://{socket}"}
        process = Process(command, self.folder / "dockerd.log", env=dict(os.environ))
        process.start(self._answers)
        self._process = process
