"""The functions for arm64, the template's default, on a machine with an Intel or AMD processor.

    tests/run arm64 [--built]

Builds them by `sam build`, and looks at each program: what it is, what it needs of Amazon Linux 2023, its size. Then it
runs each under QEMU until it asks for its first event. All but the supervisor get one. Takes about twelve minutes, most
of it to compile. On an arm64 machine it ends at once with status 2: there `tests/run deployed` runs these programs.

Where the compiler lacks the target, rustup adds it. Where that fails, a compiler of Debian is unpacked under
target/arm64. QEMU is unpacked there too, unless it is installed. No package of the system is added.

--built  takes the programs of the last run
"""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import packages
from harness import command, tools
from harness.deployment import TEMPLATE, architecture, build, client
from harness.emulator import Emulator, client_environment
from harness.process import Process
from harness.report import Report, expect, expect_equal
from harness.stub import Answer, Call, Stub

PROCESSOR = "arm64"
BUILT = tools.TARGET / PROCESSOR / "build"
EVENTS = tools.ROOT / "infra" / "events"
BYTES_MAX = 10 * 1024 * 1024
# What Amazon Linux 2023 has in every image: its C library of this version, and the unwinder of GCC.
GLIBC = (2, 34)
LIBRARIES = {"ld-linux-aarch64.so.1", "libgcc_s.so.1"} | {
    f"lib{name}" for name in ("c.so.6", "m.so.6", "dl.so.2", "pthread.so.0", "rt.so.1", "util.so.1", "resolv.so.2")
}
ANSWER_S_MAX = 120.0
TOKEN = "51af3dc0-da77-11e4-872e-1234567db123"
# Without its tables, a function leaves the one message of its batch on the queue.
NOT_DONE = {"batchItemFailures": [{"itemIdentifier": "00000000-0000-4000-8000-000000000001"}]}
# The functions that get an event, what is other in it than in the sample, and what they must answer.
ANSWERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Api": ("api-get-order", {"rawPath": "/health"}, {"statusCode": 200}),
    "Submission": ("submission", {}, NOT_DONE),
    "Scheduler": ("scheduler-wake", {}, NOT_DONE),
    "AgentsFunction": ("agent-payment", {}, NOT_DONE),
    "StandInServices": ("stand-ins-charge", {}, {"statusCode": 200}),
}


class RuntimeApi(Stub):
    """The Lambda runtime API of one function, which asks it for events and gives it the answers."""

    def __init__(self) -> None:
        self.asked = False
        self.events: queue.Queue[bytes] = queue.Queue()
        self.answers: queue.Queue[tuple[str, Any]] = queue.Queue()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """The next event, as soon as there is one; or what becomes of an answer to one, or of an error."""
        if call.method == "POST":
            self.answers.put((call.path.rsplit("/", 1)[1], json.loads(call.body)))
            return 202, b""
        self.asked = call.path == "/2018-06-01/runtime/invocation/next"
        event = self.events.get()
        headers = {
            "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + ANSWER_S_MAX) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-central-1:1:function:any",
        }
        return 200, event, headers


def inspect(file: Path) -> str:
    """Fails unless Lambda can load a program."""
    expect(os.access(file, os.X_OK), f"{file} is not executable")
    details = ["--file-header", "--program-headers", "--dynamic", "--version-info"]
    text = tools.run(["readelf", "--wide", *details, str(file)], env={"LC_ALL": "C"}).stdout
    expect_equal("the machine", re.findall(r"Machine: +(.+)", text), ["AArch64"])
    expect_equal("the loader", re.findall(r"interpreter: (.+)]", text), [f"/{packages.LOADER}"])
    libraries = set(re.findall(r"\(NEEDED\).*\[(.+)]", text))
    expect(set() < libraries <= LIBRARIES, f"Amazon Linux 2023 lacks {libraries - LIBRARIES}")
    versions = set(re.findall(r"Name: GLIBC_(\S+)", text))
    beyond = {name for name in versions if not name[0].isdigit() or tuple(map(int, name.split("."))) > GLIBC}
    expect(set() == beyond < versions, f"the C library of Amazon Linux 2023 lacks {beyond}")
    expect(file.stat().st_size <= BYTES_MAX, f"it has {file.stat().st_size} bytes")
    return f"{file.stat().st_size} bytes, {', '.join(sorted(libraries))}"


def variables(emulator: Emulator) -> dict[str, str]:
    """What all functions are told together, on the emulator of AWS."""
    text = TEMPLATE.read_text()
    tables = {name: name for name in re.findall(r"^ +([A-Z_]+_TABLE): ", text, re.MULTILINE)}
    queues = {name: f"{emulator.url}/1/{name}" for name in re.findall(r"^ +([A-Z_]+_QUEUE_URL): ", text, re.MULTILINE)}
    services = {f"{name}_URL": emulator.url for name in ("INVENTORY", "PAYMENT", "SHIPPING")}
    others = {"EVENT_BUS_NAME": "bus", "METRICS_NAMESPACE": "Stepwarden", "STANDINS_TOKEN": TOKEN}
    others["DEAD_LETTER_QUEUES"] = "{}"
    return {**tables, **queues, **services, **others, **client_environment(emulator.url)}


def runs(name: str, emulator: Emulator, start: list[str], folder: Path) -> str:
    """Fails unless a function asks for an event, and answers as it must."""
    with RuntimeApi() as api:
        told = {
            "AWS_LAMBDA_RUNTIME_API": api.url.removeprefix("http://"),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_VERSION": "1",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        }
        program = [*start, str(BUILT / name / "bootstrap")]
        process = Process(program, folder / f"{name}.log", env={**variables(emulator), **told})
        process.start(lambda: api.asked)
        try:
            if name not in ANSWERS:
                return ""
            event, others, expected = ANSWERS[name]
            api.events.put(json.dumps({**json.loads((EVENTS / f"{event}.json").read_text()), **others}).encode())
            try:
                kind, answer = api.answers.get(timeout=ANSWER_S_MAX)
            except queue.Empty:
                kind, answer = "no answer", {}
            found = {key: answer.get(key) for key in expected}
            expect((kind, found) == ("response", expected), f"{kind}: {answer}\n{process.tail(10)}")
            return json.dumps(answer)[:300]
        finally:
            process.stop()


def main() -> int:
    """Gives the exit status."""
    parser = command.parser(PROCESSOR)
    parser.add_argument("--built", action="store_true")
    options = parser.parse_args()
    if architecture() == PROCESSOR:
        print("this machine runs programs for arm64 by itself: `tests/run deployed`", file=sys.stderr)
        return 2
    if shutil.which("readelf") is None:
        tools.install_packages("binutils")
    report = Report()
    emulation = packages.emulator()
    if not options.built:
        shutil.rmtree(BUILT, ignore_errors=True)
        folder = {"CARGO_TARGET_DIR": str(tools.TARGET / PROCESSOR / "cargo")}
        build(into=BUILT, processor=PROCESSOR, env={**folder, **packages.compiler()})
    functions = re.findall(r"^  (\w+):\n    <<: [&*]Function$", TEMPLATE.read_text(), re.MULTILINE)
    report.section("programs")
    for name in functions:
        report.check(f"{name} is a program that Lambda can load", partial(inspect, BUILT / name / "bootstrap"))
    report.section("under QEMU")
    with tempfile.TemporaryDirectory(prefix="stepwarden-arm64-") as scratch:
        with Emulator(Path(scratch) / "emulator", enforce_iam=False) as emulator:
            client(emulator, "dynamodb").create_table(
                TableName="STANDINS_TABLE",
                KeySchema=[{"AttributeName": "Key", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "Key", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            for name in functions:
                title = f"{name} starts, and answers an event" if name in ANSWERS else f"{name} asks for an event"
                report.check(title, partial(runs, name, emulator, emulation, Path(scratch)))
    return report.close()


if __name__ == "__main__":
    command.run(main)
