"""Requests whose end two servers could see at different places, and heads that no client sends."""

from __future__ import annotations

from attacks.wire import CLOSE, Raw, call, get, post, raw
from harness.report import Suite, expect, expect_equal
from harness.serve import Server

HOST = "Host: localhost\r\n"
POST = f"POST /orders HTTP/1.1\r\n{HOST}"
BODY = '{"Item":"smuggled"}'
SIZE = f"{len(BODY):x}"
# A request that an attacker hides behind another one. With an answer to it, there are two.
HIDDEN = f"GET /overview HTTP/1.1\r\n{HOST}{CLOSE}\r\n"


def chunked(*fields: str, size: str = SIZE, body: str = BODY, end: str = "0\r\n\r\n") -> str:
    """A post with a body in one chunk."""
    head = "".join(f"{field}\r\n" for field in fields)
    return f"{POST}{head}\r\n{size}\r\n{body}\r\n{end}"


class Framing(Suite):
    """The bytes of a connection, which are several requests."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def send(self, request: str) -> Raw:
        """The answers to these characters, each of which is a byte. A server that waits for more fails the check."""
        return raw(self.server.port, request.encode("latin-1"), within_s=20)

    def orders(self) -> int:
        """How many orders were smuggled in."""
        return len(self.server.get("/orders?value=smuggled&limit=100")["Orders"])

    def refused(self, request: str) -> None:
        """It is answered with an error or by the end of the connection, and nothing behind it is answered."""
        statuses = self.send(request + HIDDEN).statuses
        expect(len(statuses) <= 1 and all(400 <= status < 500 for status in statuses), f"{request!r}: {statuses}")

    def test_both_lengths(self) -> None:
        """A request hidden by Content-Length beside Transfer-Encoding is not answered."""
        coding = "Transfer-Encoding: chunked"
        for fields in ((coding, "Content-Length: 5"), ("Content-Length: 5", coding)):
            head = "".join(f"{field}\r\n" for field in fields)
            answer = self.send(f"{POST}{head}\r\n0\r\n\r\n{HIDDEN}")
            expect_equal(f"{fields}", answer.statuses, [400])

    def test_lengths(self) -> None:
        """Two lengths, a list of them, a sign, hexadecimal or a blank is 400, and the end."""
        size = len(BODY)
        values = [f"+{size}", "-1", f"0x{size:x}", f"{size}, {size}", "1e1", "9" * 30, f"{size}abc", f"{size} 1", ""]
        for value in values:
            self.refused(f"{POST}Content-Length: {value}\r\n\r\n{BODY}")
        self.refused(f"{POST}Content-Length: {size}\r\nContent-Length: {size + 1}\r\n\r\n{BODY}")
        expect_equal("orders", self.orders(), 0)

    def test_codings(self) -> None:
        """A transfer coding other than chunked, or one more of it, is 400."""
        for value in ("xchunked", "identity", "chunked, identity", "chunked;q=1", "\x0bchunked", '"chunked"'):
            self.refused(chunked(f"Transfer-Encoding: {value}"))
        for value in ("gzip, chunked", "identity, chunked", "chunked, chunked", "x, chunked"):
            self.refused(chunked(f"Transfer-Encoding: {value}"))
        for second in ("identity", "chunked"):
            self.refused(chunked("Transfer-Encoding: chunked", f"Transfer-Encoding: {second}"))
        self.refused(chunked("Transfer-Encoding : chunked"))
        self.refused(chunked("Transfer-Encoding: chunked").replace("HTTP/1.1", "HTTP/1.0", 1))
        expect_equal("orders", self.orders(), 0)

    def test_chunk_sizes(self) -> None:
        """A chunk size with a sign, a prefix, an overflow or another end makes no order."""
        for size in ("+" + SIZE, "-1", "0x" + SIZE, "", ";", "1" + "0" * 16, SIZE + "\0", "g", f"{SIZE}\n"):
            self.refused(chunked("Transfer-Encoding: chunked", size=size))
        self.refused(chunked("Transfer-Encoding: chunked", size="5"))
        self.refused(chunked("Transfer-Encoding: chunked").replace(BODY + "\r\n", BODY))
        expect_equal("orders", self.orders(), 0)

    def test_endless(self) -> None:
        """Chunk extensions and trailers without an end are cut off. They are no part of any limit of a body."""
        coding = "Transfer-Encoding: chunked"
        self.refused(chunked(coding, size=f"{SIZE};{'x' * 200_000}"))
        self.refused(chunked(coding, end="0\r\n" + "X: y\r\n" * 20_000 + "\r\n"))
        expect_equal("orders", self.orders(), 0)

    def test_trailers(self) -> None:
        """A trailer is no header: neither a key nor a length."""
        end = "0\r\nIdempotency-Key: of-a-trailer\r\nContent-Length: 3\r\nHost: evil.example\r\n\r\n"
        sent = [self.send(chunked("Transfer-Encoding: chunked", CLOSE.strip(), end=end)) for _ in range(2)]
        expect_equal("the answers", [answer.status for answer in sent], [202, 202])
        expect(sent[0].document["OrderID"] != sent[1].document["OrderID"], sent[0].text)

    def test_fields(self) -> None:
        """A folded line, a blank before the colon, a bare CR, NUL or an empty name is 400."""
        for field in ("X: a\r\n b", "X : a", "X\t: a", "X: a\rY: b", "X: a\0b", "X\0: a", ": a", "X\x7f: a", "X"):
            self.refused(f"GET /health HTTP/1.1\r\n{HOST}{field}\r\n\r\n")
        self.refused(f"{POST}Content-Length:\r\n {len(BODY)}\r\n\r\n{BODY}")
        self.refused(f"{POST}Content_Length: 3\0\r\n\r\n")

    def test_behind_malformed(self) -> None:
        """A request behind a malformed one is not answered. The connection ends with the refusal."""
        for first in ("GET /bad\x01path HTTP/1.1", "GET /health", "\x16\x03\x01", "GET  /health HTTP/1.1", "()"):
            self.refused(f"{first}\r\n{HOST}\r\n")

    def test_behind_end(self) -> None:
        """A request behind Connection: close, or a body that is too large, is not answered."""
        answer = self.send(f"GET /health HTTP/1.1\r\n{HOST}{CLOSE}\r\n{HIDDEN}")
        expect_equal("behind the close", answer.statuses, [200])
        large = "x" * 200_000
        answer = self.send(f"{POST}Content-Length: {len(large)}\r\n\r\n{large}{HIDDEN}")
        expect_equal("behind a large body", answer.statuses, [413])

    def test_body_of_get(self) -> None:
        """A request in the body of a GET is a body. It has a length, so it is one."""
        sized = f"GET /health HTTP/1.1\r\n{HOST}Content-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}"
        expect_equal("statuses", self.send(sized + f"GET /ready HTTP/1.1\r\n{HOST}{CLOSE}\r\n").statuses, [200, 200])

    def test_absolute(self) -> None:
        """An absolute target counts more than Host, and one of another server is 421. As a proxy gets it."""
        self.expect_status(get("http://localhost/health"), 200)
        for target in ("http://evil.example/", "https://evil.example/", "http://localhost@evil.example/"):
            self.expect_status(get(f"{target}orders"), 421)
        self.expect_status(get("http://localhost/orders", host="evil.example"), 421)
        foreign = ("Origin: http://evil.example",)
        self.expect_status(post("http://localhost/orders", BODY, *foreign), 403)

    def expect_status(self, request: bytes, status: int) -> None:
        """The status of the only answer."""
        expect_equal(f"{request[:80]!r}", raw(self.server.port, request, within_s=20).statuses, [status])

    def test_no_proxy(self) -> None:
        """CONNECT and OPTIONS * reach nothing, and TRACE repeats nothing. Nobody gets to another server by this one."""
        for method, target in (("CONNECT", "localhost:443"), ("OPTIONS", "*"), ("GET", "localhost:80")):
            self.expect_status(call(method, target), 404)
        self.expect_status(call("CONNECT", "evil.example:443"), 421)
        answer = raw(self.server.port, call("TRACE", "/orders", "X-Secret: of-the-browser"))
        expect_equal("TRACE", answer.status, 405)
        expect("of-the-browser" not in answer.text, answer.text)

    def test_versions(self) -> None:
        """No upgrade leaves HTTP/1.1, and other versions are refused. There is no second protocol on the port."""
        upgrades = ("Upgrade: h2c\r\nConnection: Upgrade", "Upgrade: websocket\r\nConnection: Upgrade")
        for upgrade in upgrades:
            answer = self.send(
                f"GET /health HTTP/1.1\r\n{HOST}{upgrade}\r\n\r\nGET /ready HTTP/1.1\r\n{HOST}{CLOSE}\r\n"
            )
            expect_equal(upgrade, answer.statuses, [200, 200])
        for version in ("1.2", "2.0", "0.9", "1.1 ", "1.10", "11", "-1.1"):
            expect_equal(version, self.send(f"GET /health HTTP/{version}\r\n{HOST}\r\n").statuses, [400])
        expect_equal("HTTP/2", self.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").statuses, [])

    def test_overrides(self) -> None:
        """A header that overrides method or path overrides nothing. Some frameworks believe them."""
        order = self.server.order(wait=False, Item="mug")
        path = f"/orders/{order['OrderID']}"
        for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"):
            self.expect_status(get(path, f"{name}: DELETE"), 200)
            self.expect_status(post("/health", "", f"{name}: GET"), 405)
        for name in ("X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-Forwarded-Path"):
            expect('"Status":"ok"' in raw(self.server.port, get("/health", f"{name}: /orders")).text, name)

    def test_targets(self) -> None:
        """Control characters, blanks and bytes above 127 in a target are 400. A proxy may cut them off there."""
        for target in ("/he\0alth", "/health\x0b", "/he alth", "/h\xe4", "/health\x7f", "/health\t", ""):
            self.expect_status(get(target), 400)
