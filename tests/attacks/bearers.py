"""Tokens of the file: guessed, in the wrong place, removed, or looked for where they could be left."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import stat
from pathlib import Path

from attacks.secured import Secured
from attacks.wire import Raw, call, get, post, raw
from harness.report import Report, expect, expect_equal, until

OVERVIEW = "/overview"


class Bearers:
    """Callers by the file of tokens."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("no token, a part of one, a longer one, its hash, its ID or another scheme is 401", self.wrong)
        report.check("a token twice, in two headers or in a list is 401", self.twice)
        report.check(
            "a token in the query, a cookie, another header, a trailer or the user of a URL is 401", self.places
        )
        report.check("all 401 are alike, so none tells how near a guess was", self.alike)
        report.check("a refusal comes before the body, the path and the store: 401 for all of them", self.first)
        report.check("a token that is removed is 401 within 3 s, on open connections too", self.removed)
        report.check("no name of a caller has brackets, blanks or line breaks, or is that of nobody", self.names)
        report.check("an application names no channel but its own", self.channels)
        report.check("the file has no token and only its owner reads it; neither has any other place", self.left)

    def ask(self, *headers: str, path: str = OVERVIEW) -> Raw:
        """The answer to a read that every viewer may make."""
        return raw(self.secured.port, get(path, *headers))

    def expect_strangers(self, *headers: str) -> None:
        """Whoever sends these is nobody."""
        answer = self.ask(*headers)
        expect_equal(f"{headers}"[:100], answer.status, 401)

    def wrong(self) -> None:
        """And the right one, so that the others are wrong for their own reason."""
        token = self.secured.tokens["viewer"]
        expect_equal("the right one", self.ask(f"Authorization: bearer  {token} ").status, 200)
        digest = hashlib.sha256(token.encode()).hexdigest()
        wrong = [
            token[:-1],
            token + "A",
            token[:-1] + ("A" if token[-1] != "A" else "B"),
            token.upper(),
            token.swapcase(),
        ]
        wrong += [
            token[3:],
            "sw_",
            digest,
            digest[:8],
            "sw_" + digest,
            "",
            " ",
            "null",
            "undefined",
            "sw_*",
            "%73w_" + token[3:],
        ]
        wrong += [
            token + "\0"[:0] + ",",
            f'"{token}"',
            f"<{token}>",
            token + "\xa0",
            token + ";",
            "sw_' or '1'='1",
            "sw_" + "A" * 30_000,
        ]
        for one in wrong:
            self.expect_strangers(f"Authorization: Bearer {one}")
        for scheme in (
            "",
            "Basic ",
            "Token ",
            "Bearer",
            "Bearer:",
            "Bearer=",
            "Digest ",
            "Bearer\t",
            "AWS4-HMAC-SHA256 ",
        ):
            self.expect_strangers(f"Authorization: {scheme}{token}")

    def twice(self) -> None:
        """A proxy and this server may believe different ones."""
        good = f"Authorization: Bearer {self.secured.tokens['viewer']}"
        self.expect_strangers(good, good)
        self.expect_strangers(good, "Authorization: Bearer wrong")
        self.expect_strangers("authorization: Bearer wrong", good)
        self.expect_strangers(f"{good}, Bearer {self.secured.tokens['administrator']}")

    def places(self) -> None:
        """They end in logs, or a browser sends them by itself."""
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

    def alike(self) -> None:
        """All but the date."""
        token = self.secured.tokens["viewer"]
        guesses = [
            "",
            f"Bearer {token[:-1]}",
            "Bearer sw_x",
            "Bearer a.b.c",
            f"Bearer {self.secured.issuer.token(exp=1)}",
            "Basic x",
        ]
        answers = {re.sub(r"date: .*", "", self.ask(f"Authorization: {guess}").text) for guess in guesses}
        expect_equal("different answers", len(answers), 1)

    def first(self) -> None:
        """Whoever is nobody learns nothing of what there is."""
        order = self.secured.order()
        for method, path in (
            *(("GET", f"/orders/{name}") for name in (order, "x", "%00")),
            *(("GET", path) for path in ("/orders?limit=nonsense", "/orders?cursor=x", "/workflows/paid/1", "/bulk/x")),
            ("GET", f"/orders/{order}/document"),
            ("DELETE", f"/orders/{order}"),
            ("TRACE", "/orders"),
        ):
            expect_equal(f"{method} {path}", raw(self.secured.port, call(method, path)).status, 401)
        for path, body in (
            ("/orders", "{"),
            ("/orders", "x" * 200_000),
            (f"/orders/{order}/erase", "{}"),
            ("/configuration", "["),
        ):
            answer = raw(self.secured.port, post(path, body, "Content-Type: text/html", "If-Match: x"))
            expect_equal(path, answer.status, 401)

    def removed(self) -> None:
        """It was there a moment ago."""
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
            done = self.secured.run("token", "remove", "leaver", "--tokens", str(self.secured.tokens_file))
            expect_equal(f"{done.stderr!r}", done.returncode, 0)
            until("it is refused", lambda: status() == 401, within_s=3)
        self.expect_strangers(f"Authorization: Bearer {token}")

    def names(self) -> None:
        """A name stands in brackets beside what people type."""
        before = self.secured.tokens_file.read_bytes()
        for name in (
            "a]",
            "a [root]",
            "a b",
            "a\nb",
            "",
            "local",
            "anonymous",
            "é",
            "a" * 65,
            "../x",
            "a,b",
            "a\x1b[2J",
        ):
            done = self.secured.run(
                "token", "add", "--role", "viewer", "--tokens", str(self.secured.tokens_file), "--", name
            )
            expect(done.returncode in (1, 2), f"{name!r}: {done.returncode}")
        expect_equal("the file", self.secured.tokens_file.read_bytes(), before)

    def channels(self) -> None:
        """A channel of another application would get its messages."""
        for channel in ("other", "nobody", "SHOP", "shop ", f"{self.secured.services.url}/channel/other"):
            answer = self.secured.ask("application", "POST", "/orders", {"ReplyChannel": channel})
            expect(answer.status in (400, 403), f"{channel}: {answer.status}")
        refused = self.secured.ask("application", "POST", "/orders", '{"ReplyChannel":"shop","ReplyChannel":"other"}')
        expect(refused.status in (400, 403), f"the last of two: {refused.status}")
        self.secured.order(ReplyChannel="shop")
        until("it is told", lambda: "/channel/shop" in self.secured.services.paths)
        expect("/channel/other" not in self.secured.services.paths, "a message for the other channel")

    def left(self) -> None:
        """Log, answers, data and the list of processes."""
        expect_equal("mode", oct(stat.S_IMODE(self.secured.tokens_file.stat().st_mode)), "0o600")
        process = self.secured.server.process
        assert process is not None
        places = {file.name: file.read_bytes() for file in self.secured.server.data.iterdir()}
        places |= {"file": self.secured.tokens_file.read_bytes(), "log": self.secured.server.log().encode()}
        places["processes"] = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        for path in ("/configuration", "/metrics", "/orders", "/openapi.json"):
            places[path] = self.secured.ask("administrator", "GET", path).text.encode()
        places["list"] = self.secured.run("token", "list", "--tokens", str(self.secured.tokens_file)).stdout
        for place, content in places.items():
            found = [name for name, token in self.secured.tokens.items() if token[3:].encode() in content]
            expect(not found, f"{place} has the tokens of {json.dumps(found)}")
