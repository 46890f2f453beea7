"""Tokens of the file: in the wrong place, removed, or looked for where they could be left."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

from attacks.secured import Secured
from attacks.wire import Raw, call, get, post, raw
from harness.report import Suite, expect, expect_equal, until

OVERVIEW = "/overview"


class Bearers(Suite):
    """Callers by the file of tokens."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured

    def ask(self, *headers: str, path: str = OVERVIEW) -> Raw:
        """The answer to a read that every viewer may make."""
        return raw(self.secured.port, get(path, *headers))

    def expect_strangers(self, *headers: str) -> None:
        """Whoever sends these is nobody."""
        expect_equal(f"{headers}"[:100], self.ask(*headers).status, 401)

    def test_wrong(self) -> None:
        """A token in brackets, in a list, twice or 30,000 bytes long is 401."""
        token, other = self.secured.tokens["viewer"], self.secured.tokens["administrator"]
        expect_equal("the right one", self.ask(f"Authorization: bearer  {token} ").status, 200)
        odd = [f'"{token}"', f"<{token}>", f"{token},", f"{token}\xa0", f"{token};", f"{token}, Bearer {other}"]
        for one in (*odd, token.swapcase(), "sw_' or '1'='1", "sw_" + "A" * 30_000, f"%73w_{token[3:]}"):
            self.expect_strangers(f"Authorization: Bearer {one}")
        good = f"Authorization: Bearer {token}"
        self.expect_strangers(good, "Authorization: Bearer wrong")
        self.expect_strangers("authorization: Bearer wrong", good)

    def test_places(self) -> None:
        """A token in the query, a cookie, another header, a trailer or the user of a URL is 401."""
        token = self.secured.tokens["viewer"]
        for header in (f"Cookie: token={token}", f"X-Api-Key: {token}", f"Proxy-Authorization: Bearer {token}"):
            self.expect_strangers(header)
        self.expect_strangers(f"X-Authorization: Bearer {token}", f"Cookie: Authorization=Bearer {token}")
        for query in (f"access_token={token}", f"token={token}", f"Authorization=Bearer%20{token}"):
            expect_equal(query[:20], self.ask(path=f"{OVERVIEW}?{query}").status, 401)
        expect(self.ask(path=f"http://x:{token}@localhost{OVERVIEW}").status in (401, 421), "the user of a URL")
        head = "POST /orders HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        trailer = f"2\r\n{{}}\r\n0\r\nAuthorization: Bearer {self.secured.tokens['application']}\r\n\r\n"
        expect_equal("a trailer", raw(self.secured.port, (head + trailer).encode()).status, 401)

    def test_alike(self) -> None:
        """All 401 are alike but for the date, so none tells how near a guess was."""
        near, old = self.secured.tokens["viewer"][:-1], self.secured.issuer.token(exp=1)
        guesses = ["", f"Bearer {near}", "Bearer sw_x", "Bearer a.b.c", f"Bearer {old}", "Basic x"]
        answers = {re.sub(r"date: .*", "", self.ask(f"Authorization: {guess}").text) for guess in guesses}
        expect_equal("different answers", len(answers), 1)

    def test_first(self) -> None:
        """A refusal comes before the body, the path and the store: 401 for all of them."""
        order = self.secured.order()
        reads = ["x", "%00", order, f"{order}/document", "?limit=nonsense", "?cursor=x"]
        calls = [("GET", f"/orders/{name}".replace("/?", "?")) for name in reads]
        calls += [("GET", "/workflows/paid/1"), ("GET", "/bulk/x"), ("DELETE", f"/orders/{order}"), ("TRACE", "/orders")]
        for method, path in calls:
            expect_equal(f"{method} {path}", raw(self.secured.port, call(method, path)).status, 401)
        erase = f"/orders/{order}/erase"
        for path, body in (("/orders", "{"), ("/orders", "x" * 200_000), (erase, "{}"), ("/configuration", "[")):
            answer = raw(self.secured.port, post(path, body, "Content-Type: text/html", "If-Match: x"))
            expect_equal(path, answer.status, 401)

    def test_removed(self) -> None:
        """A token that is removed is 401 within 3 s, on open connections too."""
        token = self.secured.add("leaver", ["viewer"])
        headers = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"
        until("it is known", lambda: self.ask(f"Authorization: Bearer {token}").status == 200, within_s=5)
        with socket.create_connection(("127.0.0.1", self.secured.port), timeout=20) as connection:

            def status() -> int:
                connection.sendall(f"HEAD {OVERVIEW} HTTP/1.1\r\n{headers}\r\n".encode())
                received = b""
                while not received.endswith(b"\r\n\r\n"):
                    received += connection.recv(4_096)
                return int(received.split()[1])

            expect_equal("before", status(), 200)
            done = self.secured.server.run("token", "remove", "leaver", "--tokens", str(self.secured.tokens_file))
            expect_equal(done.stderr, done.returncode, 0)
            until("it is refused", lambda: status() == 401, within_s=3)

    def test_channels(self) -> None:
        """An application names no channel but its own, also as the last of two."""
        for channel in ("other", "SHOP", "shop ", f"{self.secured.services.url}/channel/other"):
            answer = self.secured.ask("application", "POST", "/orders", {"ReplyChannel": channel})
            expect(answer.status in (400, 403), f"{channel}: {answer.status}")
        refused = self.secured.ask("application", "POST", "/orders", '{"ReplyChannel":"shop","ReplyChannel":"other"}')
        expect(refused.status in (400, 403), f"the last of two: {refused.status}")
        self.secured.order(ReplyChannel="shop")
        until("it is told", lambda: "/channel/shop" in self.secured.services.paths())
        expect("/channel/other" not in self.secured.services.paths(), "a message for the other channel")

    def test_left(self) -> None:
        """Log, answers, data and the list of processes have no token."""
        server = self.secured.server
        places = {file.name: file.read_bytes() for file in server.data.iterdir()}
        places |= {"log": server.log().encode(), "processes": Path(f"/proc/{server.pid}/cmdline").read_bytes()}
        for path in ("/configuration", "/metrics", "/orders", "/openapi.json"):
            places[path] = self.secured.ask("administrator", "GET", path).text.encode()
        places["list"] = server.run("token", "list", "--tokens", str(self.secured.tokens_file)).stdout.encode()
        for place, content in places.items():
            found = [name for name, token in self.secured.tokens.items() if token[3:].encode() in content]
            expect(not found, f"{place} has the tokens of {json.dumps(found)}")
