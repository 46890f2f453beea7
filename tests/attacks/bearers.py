"""Tokens and addresses of calls: in the wrong place, beside a proxy's name, or looked for where they could be left."""

from __future__ import annotations

import json
import re
from pathlib import Path

from attacks.secured import NAMED_BY, PROXY, Secured
from attacks.wire import Raw, call, get, post, raw, tomorrow
from harness.report import Suite, expect, expect_equal

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

    def test_beside(self) -> None:
        """A token beside a name of a proxy that is none does not count."""
        token = self.secured.bearer("administrator")
        name, roles = f"{NAMED_BY[0]}: vera", f"{NAMED_BY[1]}: viewer"

        def status(*headers: str) -> int:
            return raw(self.secured.port, get(OVERVIEW, *headers, *token), source=PROXY).status

        expect_equal("a token alone", status(), 200)
        for headers in ((f"{NAMED_BY[0]}: ", roles), (name,), (roles,), (f"{NAMED_BY[0]}: local", roles)):
            expect_equal(f"{headers}", status(*headers), 401)
        path = f"/orders/{self.secured.order()}/erase"
        answer = raw(self.secured.port, post(path, '{"By":"x","Reason":"x"}', name, roles, *token), source=PROXY)
        expect_equal("what the proxy says counts", answer.status, 403)

    def test_others_cursors(self) -> None:
        """A cursor of a reader shows an application nothing of others. The pages of a reader lead on to any order."""
        self.secured.order(Note="mine", NotBefore=tomorrow())
        foreign = self.secured.order("other", Note="theirs", NotBefore=tomorrow())
        for query in ("limit=1", "limit=1&with=index", "limit=1&value=theirs", "limit=1&workflow=paid"):
            page = self.secured.ask("viewer", "GET", f"/orders?{query}").document
            while cursor := page.get("NextCursor"):
                seen = self.secured.ask("application", "GET", f"/orders?{query}&cursor={cursor}")
                is_of_others = foreign in seen.body or "theirs" in seen.body
                expect(seen.status in (200, 400) and not is_of_others, f"{query}: {seen.body}")
                page = self.secured.ask("viewer", "GET", f"/orders?{query}&cursor={cursor}").document

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

    def test_hosts(self) -> None:
        """A Host or a forwarded host of a request gets into no address. The service would post its result there."""
        forwarded = ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: gopher", "Forwarded: host=evil.example")
        for headers in ((), forwarded):
            lines = [*self.secured.bearer("application"), *headers]
            answer = raw(self.secured.port, post("/orders", "{}", *lines, host="localhost:1"))
            order = str(answer.document["OrderID"])
            self.secured.services.token(order, "check")
            address = self.secured.services.addresses[f"{order}/check"]
            expect(address.startswith(f"{self.secured.server.url}/callbacks/"), address)
            expect(f"location: /orders/{order}\r\n" in answer.text.lower(), answer.text)

    def test_secret(self) -> None:
        """No address and no key for addresses is in answers, log or data that a reader sees."""
        order = self.secured.order()
        token = self.secured.services.token(order, "check")
        paths = [f"/orders/{order}", f"/orders/{order}/document", "/configuration", "/workflows", "/metrics"]
        paths += ["/services", "/alerts", "/dead-letters", "/overview", "/orders?with=index", "/numbers?last=30m"]
        texts = {path: self.secured.ask("administrator", "GET", path).text for path in [*paths, "/workflows/paid/1"]}
        texts["log"] = self.secured.server.log()
        texts["audit"] = self.secured.server.run("audit", "--data", str(self.secured.server.data)).stdout
        expect(order in texts["audit"], texts["audit"][:200])
        texts["404"] = raw(self.secured.port, post(f"/callbacks/{token}/nothing", "{}")).text
        for place, text in texts.items():
            found = [word for word in (token, "CallbackKeys", '"Secret"') if word in text]
            expect(not found, f"{place}: {text[:300]}")
