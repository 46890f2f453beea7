"""The console of the command line, which signs the calls of its page."""

from __future__ import annotations

import os
import re
from pathlib import Path

from attacks.clients import TOKEN
from attacks.hostile import Hostile, answer
from attacks.wire import Raw, get, raw
from harness.process import Process, free_port
from harness.report import Suite, expect, expect_equal, until


class Consoles(Suite):
    """A port of the operator's machine, which other users and pages can reach."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    def served(self, url: str) -> tuple[Process, int, str]:
        """A console for this API: its process, port and token."""
        port = free_port()
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.scratch), "STEPWARDEN_TOKEN": TOKEN}
        command = [str(self.program), "console", "--api", url, "--port", str(port)]
        process = Process(command, self.scratch / f"console-{port}.log", env=environment)
        process.start(lambda: f":{port}/" in process.text())
        return process, port, until("the address", lambda: re.search(rf":{port}/([0-9a-f]+)/", process.text()))[1]

    def test_console_paths(self) -> None:
        """The console signs calls of its API alone, whatever path it is asked for."""
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
