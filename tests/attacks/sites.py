"""What a page of another site can do through the browser of somebody who can reach the API."""

from __future__ import annotations

import re

from attacks.wire import get, post, raw
from harness.report import Report, expect, expect_equal
from harness.serve import Server

CROSS = ("Sec-Fetch-Site: cross-site",)
FOREIGN = (CROSS, ("Sec-Fetch-Site: same-site",), ("Origin: https://evil.example",), ("Origin: null",))
COSTLY = ("/orders?value=nothing", "/orders", "/orders/0193-x/document", "/overview", "/metrics", "/numbers?last=30d")
OPENED = (*CROSS, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")


class Sites:
    """The requests of pages of other sites."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("a read for a page of another site is 403, also as an image", self.read)
        report.check("a link leads to the console's page, and to nothing else", self.link)
        report.check("a post for a page of another site is 403", self.write)
        report.check("HTTP/1.1 without Host or with two is 400", self.hosts)
        report.check("a page whose name leads here gets 421, from the API and the stand-ins", self.rebinding)
        report.check("the stand-ins answer to no page", self.stand_ins)

    def status(self, request: bytes, port: int | None = None) -> int:
        """The status of the answer."""
        return raw(port or self.server.port, request).status

    def read(self) -> None:
        """GET, as an image, a script or fetch() sends it."""
        for path in COSTLY:
            for headers in FOREIGN:
                expect_equal(f"{path} {headers}", self.status(get(path, *headers)), 403)
            expect_equal(path, self.status(get(path, *CROSS, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image")), 403)
        expect_equal("/health", self.status(get("/health", *CROSS)), 200)
        answer = raw(self.server.port, get("/orders", *CROSS)).text
        expect("a page of another site may not use this API" in answer, answer)
        expect_equal("its own page", self.status(get("/orders?value=x", "Sec-Fetch-Site: same-origin")), 200)

    def link(self) -> None:
        """A click on a link."""
        expect_equal("/", self.status(get("/", *OPENED)), 200)
        for path in (*COSTLY, "/console/main.js"):
            expect_equal(path, self.status(get(path, *OPENED)), 403)
        expect_equal("in a frame", self.status(get("/", *OPENED[:2], "Sec-Fetch-Dest: iframe")), 403)

    def write(self) -> None:
        """A form."""
        for headers in FOREIGN:
            for path in ("/orders", "/bulk", "/orders/0193-x/cancel"):
                expect_equal(f"{path} {headers}", self.status(post(path, "{}", *headers)), 403)

    def hosts(self) -> None:
        """RFC 9112, section 3.2."""
        expect_equal("none", self.status(get("/health", host=None)), 400)
        expect_equal("two", self.status(get("/health", "Host: localhost")), 400)
        expect_equal("none in HTTP/1.0", self.status(get("/health", host=None, version="1.0")), 200)

    def rebinding(self) -> None:
        """A name of another site that resolves to this machine."""
        for port in (self.server.port, self.stand_ins_port()):
            for host in ("evil.example", "localhost.evil.example", "evil@localhost"):
                expect_equal(f"{host} at {port}", self.status(get("/", host=host), port), 421)

    def stand_ins(self) -> None:
        """Their switches would stop every order."""
        port = self.stand_ins_port()
        for headers in FOREIGN:
            request = post("/payment/control", '{"Down": true}', *headers)
            expect_equal(f"{headers}", self.status(request, port), 403)
        expect_equal("a program", self.status(get("/payment/control"), port), 200)

    def stand_ins_port(self) -> int:
        """Where they listen."""
        return int(re.findall(r"stand-ins on http://127\.0\.0\.1:(\d+)", self.server.log())[-1])
