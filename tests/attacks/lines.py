"""Lines of a log that somebody else wrote, and headers that keep a browser from harm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from attacks.issuer import encoded
from attacks.wire import call, get, post, raw, tomorrow
from harness.report import Report, Suite, expect, expect_equal, until
from harness.serve import Server
from harness.stub import Answer, Call, Stub

# What a forged line begins with, in each way in which a text can begin a line or a command of the terminal.
FORGED = "ALERT forged"
BREAKS = ("\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1b[1G", "\x1bM")
INJECTED = "".join(f"{end}{FORGED} by {number}" for number, end in enumerate(BREAKS))
PAGE = "<!doctype html><script>alert(1)</script>"
IN_PATH = "".join(f"%{ord(c):02x}" for c in PAGE)


class Refusing(Stub):
    """A service that says no in lines of its own."""

    def answer(self, call: Call) -> Answer:
        """A rejection."""
        return 422, {"code": f"no{INJECTED}", "message": f"no{INJECTED}"}


class Lines(Suite):
    """Logs and headers of a server that tells all it can."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    def test_text_log(self) -> None:
        """No text of an order, operator, service, path or token begins a line of the log."""
        self.log("text")

    def test_json_log(self) -> None:
        """The same in a log of JSON: each line is one object, and none is forged."""
        self.log("json")

    def all(self, report: Report) -> None:
        """All of them on one server."""
        with Server(self.program, self.scratch / "headers") as self.server:
            super().all(report)

    def log(self, form: str) -> None:
        """With every line that the program can write."""
        refusing = Refusing()
        levels = {"RUST_LOG": "debug,orders=debug,api=debug,hyper=info"}
        options = ["--log-format", form, "--inventory-url", refusing.url, "--tokens", str(self.scratch / "tokens.toml")]
        (self.scratch / "tokens.toml").write_text("")
        name = f"log-{form}"
        try:
            with Server(self.program, self.scratch / f"{name}-callers", *options, variables=levels) as server:
                self.strangers(server.port)
                lines = server.log().splitlines()
            with Server(self.program, self.scratch / name, *options[:4], variables=levels) as server:
                self.known(server)
                text = server.log()
        finally:
            refusing.close()
        # `splitlines` also splits at characters that only some terminals and viewers take for an end.
        lines += text.split("\n") if form == "json" else text.splitlines()
        expect(FORGED in text, "nothing of it was logged at all")
        forged = [line for line in lines if line.lstrip().startswith(FORGED)]
        expect(not forged, f"{forged[:3]}")
        expect("\x1b" not in text and "\r" not in text, "a control character is in the log")
        if form == "json":
            logged = [
                json.loads(line) for line in lines if line and not line.startswith("stepwarden:") and line[0] == "{"
            ]
            expect(len(logged) > 5, f"{lines[:5]}")

    def strangers(self, port: int) -> None:
        """They are not known, and are logged all the same."""
        of_token = encoded(json.dumps({"alg": "RS256", "kid": INJECTED}).encode())
        for request in (
            get("/orders/" + "".join(f"%{ord(c):02x}" for c in "\n" + FORGED)),
            get("/x", f"Authorization: Bearer {of_token}.{of_token}.x"),
            call(FORGED.replace(" ", "-"), "/orders"),
            get("/orders", f"User-Agent: {FORGED}\t\x80{FORGED}"),
            f"GET / HTTP/1.1\r{FORGED}\r\n\r\n".encode(),
        ):
            raw(port, request)

    def known(self, server: Server) -> None:
        """An application, an operator and a service."""
        document = {"CorrelationID": f"c{INJECTED}", "Item": INJECTED, INJECTED: INJECTED}
        order = server.order(wait=False, **document)["OrderID"]
        words = {"By": f"ann{INJECTED}", "Reason": f"why{INJECTED}"}
        waiting = server.order(wait=False, NotBefore=tomorrow(), **document)["OrderID"]
        for action in ("note", "pause", "resume", "cancel"):
            server.ask("POST", f"/orders/{waiting}/{action}", words)
        for path, more in (
            ("/bulk", {}),
            ("/configuration", {"Files": [{"Name": INJECTED, "Text": INJECTED}]}),
            ("/workflows/order/choose", {"Version": 1}),
        ):
            server.ask("POST", path, words | more)
        for member in ("Workflow", "ReplyChannel", "Priority", "NotBefore"):
            raw(server.port, post("/orders", json.dumps({member: INJECTED}), f"traceparent: {FORGED}"))
        until(
            "it needs an operator or ended",
            lambda: server.get(f"/orders/{order}")["ProcessState"] not in ("Pending", "Processing"),
        )
        until("the alert, or the end", lambda: FORGED in server.log() or None)

    def answers(self) -> dict[str, Any]:
        """An answer of each kind, to a page of another site too."""
        order = self.server.order(Item=PAGE, CorrelationID=PAGE)["OrderID"]
        paths = [
            "/",
            "/console/main.js",
            "/health",
            "/ready",
            "/orders",
            f"/orders/{order}",
            f"/orders/{order}/document",
            "/metrics",
        ]
        paths += [
            "/openapi.json",
            "/problems/invalid-field",
            "/overview",
            "/configuration",
            "/workflows",
            "/numbers?last=30m",
            f"/orders?value={IN_PATH}",
        ]
        paths += [f"/{IN_PATH}", f"/orders?{IN_PATH}", f"/problems/{IN_PATH}", "/webhooks/x", "/callbacks/x"]
        found = {path: raw(self.server.port, get(path)) for path in paths}
        found |= {
            f"{path} from elsewhere": raw(self.server.port, get(path, "Origin: https://evil.example")) for path in paths
        }
        found["a post"] = raw(self.server.port, post("/orders", f"{PAGE}"))
        found["a bad member"] = raw(self.server.port, post("/bulk", json.dumps({"By": "x", "Reason": "x", PAGE: 1})))
        asked = (
            "Origin: https://evil.example",
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization",
        )
        found["a preflight"] = raw(self.server.port, call("OPTIONS", "/orders", *asked))
        return found

    def test_cors(self) -> None:
        """No answer lets a page of another site read it: no CORS, also for a preflight."""
        for name, answer in self.answers().items():
            for header in ("access-control-", "set-cookie", "x-powered-by", "\nserver:"):
                expect(header not in answer.head, f"{name}: {answer.head}")
        expect_equal("a preflight", self.answers()["a preflight"].status, 405)

    def test_types(self) -> None:
        """What others wrote is never served as a page, and is stored by no browser."""
        for name, answer in self.answers().items():
            kind = (re.search(r"content-type: ([^\r;]*)", answer.head) or ("", ""))[1]
            is_page = name.split(" ")[0] in ("/",)
            expect((kind == "text/html") == (is_page and answer.status == 200), f"{name}: {answer.head}")
            if PAGE in answer.body or "/orders" in name:
                expect(kind in ("application/json", "application/problem+json"), f"{name}: {kind}")
                expect("cache-control: no-store" in answer.head, f"{name}: {answer.head}")

    def test_split(self) -> None:
        """A text in a request is in no header of the answer. A header with a line break of the request would be two."""
        for path in (
            "/orders/x%0d%0aX-Injected:1",
            "/%0d%0aX-Injected:1",
            "/orders?limit=%0d%0aX-Injected:1",
            "/problems/%0aX-Injected:1",
        ):
            expect("x-injected" not in raw(self.server.port, get(path)).head, path)
        for header in (
            'If-None-Match: "x-injected"',
            "Prefer: wait=x-injected",
            "Idempotency-Key: x-injected",
            "X-Request-Id: x-injected",
            "Origin: x-injected",
        ):
            expect("x-injected" not in raw(self.server.port, post("/orders", '{"Item":"mug"}', header)).head, header)
