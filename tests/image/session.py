"""The container image, as the Compose file runs it: without root, on a root file system that is read-only.

    tests/run image [--program FILE]

Builds the program as the image has it, and the last stage of infra/machine/Dockerfile around it. The first stage needs
an image from a registry, and is not tried. The container has the command and the limits of infra/machine/compose.yaml.
Where there is `systemd-analyze`, it reads infra/machine/stepwarden.service. Starts a Docker engine if there is
none, which needs root. Takes about four minutes, most of it to compile.

--program FILE  uses this static `stepwarden` instead of a debug build
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import command, tools
from harness.engine import Engine
from harness.process import Process, free_port
from harness.report import Report, expect, until
from harness.serve import ask, successful

DOCKERFILE = tools.ROOT / "infra" / "machine" / "Dockerfile"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
IMAGE = "stepwarden-test:latest"
COMPOSE = tools.ROOT / "infra" / "machine" / "compose.yaml"
# Each line of the Compose file, and what it is for `docker run`.
LIMITS = {
    "read_only: true": ["--read-only"],
    "cap_drop: [ALL]": ["--cap-drop", "ALL"],
    'security_opt: ["no-new-privileges:true"]': ["--security-opt", "no-new-privileges"],
}
UNIT = tools.ROOT / "infra" / "machine" / "stepwarden.service"
# Of ten, as `systemd-analyze security` counts: "OK" ends at 5, and 2 is good.
EXPOSURE_MAX = 2.0
# The name that the Compose file allows.
HOST = {"Host": "localhost"}
BYTES_MAX = 400 << 20


def static_program() -> Path:
    """A debug build that needs no library of the system."""
    target = tools.run(["rustc", "--print", "host-tuple"]).stdout.strip()
    folder = tools.TARGET / "static"
    environment = {"RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(folder)}
    tools.cargo("build", "--locked", "--package", "stepwarden", "--target", target, env=environment)
    return folder / target / "debug" / "stepwarden"


def last_stage() -> str:
    """The last stage of the Dockerfile, with the files of the stages before it in the folder that it is built in."""
    stages = re.split(r"^(?=FROM )", DOCKERFILE.read_text(), flags=re.MULTILINE)
    return stages[-1].replace("--from=build ", "")


def build(engine: Engine, program: Path, folder: Path) -> None:
    """Builds the image."""
    (folder / "image" / "data").mkdir(parents=True)
    shutil.copy(program, folder / "image" / "stepwarden")
    certificates = folder / str(CERTIFICATES).lstrip("/")
    certificates.parent.mkdir(parents=True)
    shutil.copy(CERTIFICATES, certificates)
    (folder / "Dockerfile").write_text(last_stage())
    engine.docker("build", "--tag", IMAGE, str(folder), within_s=300)


def as_composed() -> tuple[list[str], list[str]]:
    """The options and the command of the Compose file."""
    lines = [line.strip() for line in COMPOSE.read_text().splitlines()]
    options = [option for line, of in LIMITS.items() if line in lines for option in of]
    expect(len(options) == sum(map(len, LIMITS.values())), f"{COMPOSE.name} lacks one of {list(LIMITS)}")
    (words,) = [line.removeprefix("command: ") for line in lines if line.startswith("command: ")]
    return options, json.loads(words)


def unit_is_sound(program: Path, folder: Path) -> str:
    """What systemd says of the unit, with this program in it."""
    unit = folder / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/stepwarden", str(program)))
    said = tools.run(["systemd-analyze", "verify", "--man=no", str(unit)])
    expect(said.stdout == "", said.stdout)
    told = tools.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]).stdout
    exposure = float(re.findall(r"Overall exposure level for \S+: ([\d.]+)", told)[0])
    expect(exposure <= EXPOSURE_MAX, told)
    return f"exposure {exposure}"


class Container:
    """A container on a volume."""

    def __init__(self, engine: Engine, *options: str) -> None:
        """`options` are of `docker run`."""
        self.engine = engine
        limits, words = as_composed()
        told = engine.docker("run", "--detach", *limits, "--volume", "orders:/data", *options, IMAGE, *words)
        # After what Docker warns of.
        self.name = told.splitlines()[-1]
        address = self._inspected()["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
        self.url = f"http://{address}:3000"
        until("it answers", self._answers)

    def stop(self) -> dict[str, Any]:
        """Stops it in order, and gives its last state."""
        self.engine.docker("stop", "--time", "15", self.name)
        state: dict[str, Any] = self._inspected()["State"]
        return state

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        self.engine.docker("kill", self.name)

    def log(self) -> list[str]:
        """The lines of its output."""
        return self.engine.docker("logs", self.name).splitlines()

    def _inspected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.engine.docker("inspect", self.name))[0]
        return found

    def _answers(self) -> bool:
        try:
            return ask("GET", self.url + "/ready", headers=HOST)[0] == 200
        except OSError:
            return False


def settled(container: Container, document: dict[str, Any]) -> dict[str, Any]:
    """Posts an order and waits for its end."""
    answer: dict[str, Any] = successful("POST", container.url + "/orders", document, {**HOST, "Prefer": "wait=20"})
    return answer


def checks(engine: Engine, program: Path, report: Report) -> None:
    """All checks."""
    size = int(engine.docker("image", "inspect", "--format", "{{.Size}}", IMAGE))
    user = engine.docker("image", "inspect", "--format", "{{.Config.User}}", IMAGE)
    report.check("it is one program, and not root", lambda: expect(user == "65532:65532" and size < BYTES_MAX, user))
    container = Container(engine)
    order = report.check("an order is carried out", lambda: settled(container, {"Item": "mug"}))
    report.check("it is Processed", lambda: expect(order is not None and order["ProcessState"] == "Processed", f"{order}"))
    container.kill()
    port = free_port()
    log = Path(tempfile.gettempdir()) / f"stand-ins-{port}.log"
    stand_ins = Process([str(program), "stand-ins", "--host", "0.0.0.0", "--port", str(port)], log, env={})
    stand_ins.start(lambda: "stand-ins on" in stand_ins.text())
    try:
        services = f"--add-host=shop.example:{engine.host_address()}"
        payment = f"PAYMENT_URL=http://shop.example:{port}/payment"
        again = Container(engine, services, "--env", payment)
        report.check(
            "another container has the data",
            lambda: successful("GET", f"{again.url}/orders/{(order or {})['OrderID']}", headers=HOST),
        )
        report.check(
            "services are found by name",
            lambda: expect(settled(again, {"Item": "mug"})["ProcessState"] == "Processed", "\n".join(again.log())),
        )
        report.check("SIGTERM ends it in order", lambda: expect(again.stop()["ExitCode"] == 0, "\n".join(again.log())))
    finally:
        stand_ins.stop()
        log.unlink(missing_ok=True)


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("image")
    parser.add_argument("--program")
    options = parser.parse_args()
    program = Path(options.program).resolve() if options.program else static_program()
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    if "statically linked" not in linked.stdout + linked.stderr and linked.returncode == 0:
        print(f"{program} is not static", file=sys.stderr)
        return 2
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-image-") as scratch:
        folder = Path(scratch)
        if shutil.which("systemd-analyze"):
            report.check("systemd takes the unit", lambda: unit_is_sound(program, folder))
        with Engine(folder / "engine") as engine:
            build(engine, program, folder / "context")
            checks(engine, program, report)
    return report.close()


if __name__ == "__main__":
    command.run(main)
