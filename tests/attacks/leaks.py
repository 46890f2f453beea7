"""Secrets of services, which should stay where they are, and services that lead elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from attacks.folders import WORKFLOW, apply
from attacks.wire import get, raw
from harness.report import Report, Suite, expect, expect_equal, until
from harness.serve import Server
from harness.stub import Answer, Call, Stub

SECRET = "of-the-suite-and-of-no-answer-4f1d"


class Bank(Stub):
    """A service that leads elsewhere, and repeats what it is told."""

    status = 200

    def answer(self, call: Call) -> Answer:
        """By its path."""
        said = f"{call.headers.get('Authorization')} {call.headers.get('X-Key')}"
        status = 307 if call.path.startswith("/moved") else self.status
        return status, {"code": said, "message": said, "Said": said}, {"Location": f"{self.url}/elsewhere"}

    def asked(self, name: str) -> int:
        """How often it was asked below this path."""
        return sum(call.path.split("/")[1] == name for call in self.calls)


class Leaks(Suite):
    """A service that repeats what it is told."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    def all(self, report: Report) -> None:
        """All of them on one server."""
        variables = {"BANK_KEY": SECRET}
        with Bank() as self.bank, Server(self.program, self.scratch / "data", variables=variables) as self.server:
            super().all(report)

    def use(self, name: str) -> str:
        """Applies an agent with secrets at this path of the bank, and gives the id of an order that it was asked about."""
        settings = f'[agents.bank]\nurl = "{self.bank.url}/{name}"\nauth.bearer = "env:BANK_KEY"\nheaders.X-Key = {{ secret = "env:BANK_KEY" }}\n'
        answer = apply(self.server, {"stepwarden.toml": settings, "workflows/odd-1.toml": WORKFLOW})
        expect_equal(answer.body[:500], answer.status, 200)
        order = self.server.order(wait=False, Workflow="odd")["OrderID"]
        until(f"{name} is asked", lambda: self.bank.asked(name))
        return str(order)

    def test_redirected(self) -> None:
        """A redirect of a service is not followed. Its secret would go there."""
        self.use("moved")
        expect_equal("elsewhere", self.bank.asked("elsewhere"), 0)

    def test_repeated(self) -> None:
        """A secret that a service repeats is in no answer, record, metric or log."""
        for status in (200, 422, 500, 401):
            self.bank.status = status
            order = self.use(f"answers-{status}")
            until("it is written down", lambda order=order, status=status: is_written(self.server, order, status))
            paths = [
                f"/orders/{order}",
                f"/orders/{order}/document",
                "/orders?limit=100",
                "/services",
                "/alerts",
                "/overview",
            ]
            paths += ["/configuration", "/metrics", "/workflows", "/numbers?last=30m", "/dead-letters"]
            for path in paths:
                text = raw(self.server.port, get(path)).text
                expect(SECRET not in text, f"{status} {path}: {text}")
        expect(SECRET not in self.server.log(), self.server.log()[-2_000:])
        for file in self.server.data.iterdir():
            expect(SECRET.encode() not in file.read_bytes(), file.name)
        expect_equal("calls", self.bank.asked("answers-200"), 1)

    def test_metrics(self) -> None:
        """A service's code makes no line and no label of the metrics."""
        for name in ('a"} 1', "a\\nb", "a b", "a{b}", "é\\u2028", "a" * 300, ""):
            odd = WORKFLOW.replace('name = "a"', f"name = {json.dumps(name)}")
            answer = apply(
                self.server,
                {
                    "stepwarden.toml": '[agents.bank]\nurl = "https://bank.example"\n',
                    "workflows/odd-2.toml": odd.replace("version = 1", "version = 2"),
                },
                DryRun=True,
            )
            expect(answer.status in (200, 422), f"{name}: {answer.status}")
        text = raw(self.server.port, get("/metrics")).body
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        expect(len(lines) > 10, text)
        for line in lines:
            expect(line.count('"') % 2 == 0 and line.startswith("stepwarden_"), line)


def is_written(server: Server, order: str, status: int) -> bool:
    """Whether the answer is in the order, or in the record of its service."""
    task = server.get(f"/orders/{order}")
    problems = [str(service.get("Problem")) for service in server.get("/services")["Services"]]
    has_error = bool(task["Steps"][0].get("LastError"))
    return has_error or task["ProcessState"] == "Processed" or any(f"HTTP {status}" in problem for problem in problems)
