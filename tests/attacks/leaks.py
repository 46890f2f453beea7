"""Secrets of services, which should stay where they are, and services that lead elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from attacks.folders import WORKFLOW, apply
from attacks.wire import get, raw
from harness.report import Report, expect, expect_equal, until
from harness.serve import Server
from harness.stub import Quiet, Stub

SECRET = "of-the-suite-and-of-no-answer-4f1d"


class Bank(Stub):
    """A service that leads elsewhere, and repeats what it is told. Leaving its `with` stops it."""

    def __init__(self) -> None:
        bank = self
        self.asked: Counter[str] = Counter()
        self.status = 200

        class Handler(Quiet):
            """Answers each call."""

            def do_POST(self) -> None:
                """By its path."""
                bank.asked[self.path.split("/")[1]] += 1
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                said = f"{self.headers.get('Authorization')} {self.headers.get('X-Key')}"
                body = json.dumps({"code": said, "message": said, "Said": said}).encode()
                self.send_response(307 if self.path.startswith("/moved") else bank.status)
                self.send_header("Location", f"{bank.url}/elsewhere")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

        super().__init__(Handler)


class Leaks:
    """A service that repeats what it is told."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        with Bank() as bank, Server(self.program, self.scratch / "data", variables={"BANK_KEY": SECRET}) as server:
            report.check("a redirect of a service is not followed", lambda: self.redirected(server, bank))
            report.check(
                "a secret that a service repeats is in no answer, record, metric or log",
                lambda: self.repeated(server, bank),
            )
            report.check("a service's code makes no line and no label of the metrics", lambda: self.metrics(server))

    def use(self, server: Server, bank: Bank, name: str) -> str:
        """Applies an agent with secrets at this path of the bank, and gives the id of an order that it was asked about."""
        settings = f'[agents.bank]\nurl = "{bank.url}/{name}"\nauth.bearer = "env:BANK_KEY"\nheaders.X-Key = {{ secret = "env:BANK_KEY" }}\n'
        answer = apply(server, {"stepwarden.toml": settings, "workflows/odd-1.toml": WORKFLOW})
        expect_equal(answer.body[:500], answer.status, 200)
        order = server.order(wait=False, Workflow="odd")["OrderID"]
        until(f"{name} is asked", lambda: bank.asked[name])
        return str(order)

    def redirected(self, server: Server, bank: Bank) -> None:
        """Its secret would go there."""
        self.use(server, bank, "moved")
        expect_equal("elsewhere", bank.asked["elsewhere"], 0)

    def repeated(self, server: Server, bank: Bank) -> None:
        """In an output, in the reason of a rejection, and in that of an outage."""
        for status in (200, 422, 500, 401):
            bank.status = status
            order = self.use(server, bank, f"answers-{status}")
            until("it is written down", lambda order=order, status=status: is_written(server, order, status))
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
                text = raw(server.port, get(path)).text
                expect(SECRET not in text, f"{status} {path}: {text}")
        expect(SECRET not in server.log(), server.log()[-2_000:])
        for file in server.data.iterdir():
            expect(SECRET.encode() not in file.read_bytes(), file.name)
        expect_equal("calls", bank.asked["answers-200"], 1)

    def metrics(self, server: Server) -> None:
        """Names come from folders, and a folder with other names is refused."""
        for name in ('a"} 1', "a\\nb", "a b", "a{b}", "é\\u2028", "a" * 300, ""):
            odd = WORKFLOW.replace('name = "a"', f"name = {json.dumps(name)}")
            answer = apply(
                server,
                {
                    "stepwarden.toml": '[agents.bank]\nurl = "https://bank.example"\n',
                    "workflows/odd-2.toml": odd.replace("version = 1", "version = 2"),
                },
                DryRun=True,
            )
            expect(answer.status in (200, 422), f"{name}: {answer.status}")
        text = raw(server.port, get("/metrics")).body
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
