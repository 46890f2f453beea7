"""The console of the command line, which signs the calls of its page."""

from __future__ import annotations

import os
import re
from pathlib import Path

from attacks.clients import TOKEN
from attacks.hostile import Hostile, answer
from attacks.wire import Raw, get, post, raw
from harness.process import Process, free_port
from harness.report import Report, expect, expect_equal, until


class Consoles:
    """A port of the operator's machine, which other users and pages can reach."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("the console answers to nobody without its address, and to no page of another site", self.console)
        report.check("the console signs calls of its API alone, whatever path it is asked for", self.console_paths)

    def served(self, url: str) -> tuple[Process, int, str]:
        """A console for this API: its process, port and token."""
        port = free_port()
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.scratch), "STEPWARDEN_TOKEN": TOKEN}
        command = [str(self.program), "console", "--api", url, "--port", str(port)]
        process = Process(command, self.scratch / f"console-{port}.log", env=environment)
        process.start(lambda: f":{port}/" in process.text())
        return process, port, until("the address", lambda: re.search(rf":{port}/([0-9a-f]+)/", process.text()))[1]

    def console(self) -> None:
        """Whoever comes in has the rights of the operator."""
        with Hostile(answer({"Orders": []}, "200 OK", "Set-Cookie: a=b", "Access-Control-Allow-Origin: *")) as api:
            process, port, token = self.served(api.url)
            try:
                here = f"127.0.0.1:{port}"
                before = len(api.requests)
                for path in (
                    "/",
                    "/orders",
                    f"/{token[:-1]}/orders",
                    f"/{token.upper()}/orders",
                    f"//{token}/orders",
                    f"/%30{token[1:]}/orders",
                    "/0/orders",
                ):
                    expect_equal(path, raw(port, get(path, host=here)).status, 403)
                for host in ("evil.example", "127.0.0.1", f"127.0.0.1:{port + 1}", f"evil@{here}", None):
                    expect(raw(port, get(f"/{token}/orders", host=host)).status in (400, 421), f"{host}")
                for header in (
                    "Sec-Fetch-Site: cross-site",
                    "Origin: http://evil.example",
                    "Origin: null",
                    f"Origin: http://localhost:{port}",
                ):
                    for request in (
                        get(f"/{token}/orders", header, host=here),
                        post(f"/{token}/bulk", "{}", header, host=here),
                    ):
                        expect_equal(header, raw(port, request).status, 403)
                expect_equal("calls of the API", len(api.requests), before)
                seen = raw(port, get(f"/{token}/orders", "Cookie: secret=1", "X-Forwarded-User: root", host=here))
                expect_equal("its own page", seen.status, 200)
                expect("set-cookie" not in seen.head, seen.head)
                expect("secret=1" not in api.requests[-1] and "root" not in api.requests[-1], api.requests[-1])
            finally:
                process.stop()

    def console_paths(self) -> None:
        """The token of the operator would go there."""
        with Hostile(answer({})) as api, Hostile(answer({})) as other:
            process, port, token = self.served(api.url)
            try:
                here = f"127.0.0.1:{port}"

                def asked(path: str, start: str = "") -> Raw:
                    return raw(port, get(f"{start}/{token}{path}", host=here))

                for path in (
                    f"//127.0.0.1:{other.port}/x",
                    f"/@127.0.0.1:{other.port}/",
                    f"/\\127.0.0.1:{other.port}",
                    f"/http://127.0.0.1:{other.port}/",
                    f"/.:{other.port}/",
                    "/../x",
                ):
                    asked(path)
                raw(port, get(f"/{token}@127.0.0.1:{other.port}/x", host=here))
                asked("/x", f"http://127.0.0.1:{other.port}")
                expect_equal("calls elsewhere", other.requests, [])
                expect(
                    all(f"host: 127.0.0.1:{api.port}" in request.lower() for request in api.requests), f"{api.requests}"
                )
            finally:
                process.stop()
