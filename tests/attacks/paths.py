"""Paths, parameters and headers that are to mean something else than they say."""

from __future__ import annotations

import base64
import hashlib

from attacks.wire import Raw, get, post, raw
from harness.report import Suite, expect, expect_equal
from harness.serve import Server

UP = ("..", "%2e%2e", "%2E.", "..%2f", "%252e%252e", "..%5c", "..\\", "....//", "%c0%ae%c0%ae", "..%00", ".%0d%0a.")
ODD_IDS = ("%00", "'", "a'%20or%20'1'='1", "%", "%zz", "%c0%ae", "*", "-", "null", "%0d%0aX:y", "${7*7}", "{{7*7}}")


class Paths(Suite):
    """What stands in the head of a request."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.id = str(server.order(wait=False, Item="mug")["OrderID"])

    def ask(self, request: bytes) -> Raw:
        """The answer to a request."""
        return raw(self.server.port, request, within_s=30)

    def expect_statuses(self, paths: list[str], status: int) -> None:
        """All of them have this status, and none has a file of this machine."""
        for path in paths:
            answer = self.ask(get(path))
            expect_equal(path, answer.status, status)
            expect("root:" not in answer.text, answer.text)

    def test_traversal(self) -> None:
        """Dots, encoded or not, lead out of no folder: console and problems are 404."""
        ways = [
            f"{folder}/{up}/{file}"
            for folder in ("/console", "/problems")
            for up in UP
            for file in ("health", "etc/passwd")
        ]
        ways += [f"/{up}/{up}/etc/passwd" for up in UP] + ["/console/main.js%00.html", "/console//main.js", "/console/"]
        self.expect_statuses(ways, 404)

    def test_spellings(self) -> None:
        """A path in another spelling is no path."""
        spellings = ["//health", "/./health", "/health/.", "/health/", "/health;a=b", "/health%20", "/%68ealth"]
        spellings += ["/HEALTH", "/health%00", "/health%2f", "/callbacks/../orders", "/callbacks/%2e%2e/orders"]
        spellings += ["/webhooks/../orders", "/callbacks/..;/orders", "/orders//", "/orders/?"]
        self.expect_statuses(spellings, 404)

    def test_ids(self) -> None:
        """An order's id in another form, with NUL, quotes or a slash, is 404. One order has one id."""
        of = self.id
        forms = [f"{{{of}}}", of.replace("-", ""), f"urn:uuid:{of}", f"{of}%00", f"{of}%20", f"+{of}"]
        forms += [f"{of}%2fdocument", f"{of}%2ferase%3f", f"{of}%23", f"{of}/../{of}", f"./{of}", f"{of};x", f"{of}.json"]
        forms.append(f"%{ord(of[0]):x}{of[1:]}")
        self.expect_statuses([f"/orders/{form}" for form in (*forms, *ODD_IDS)], 404)
        for form in (*forms, *ODD_IDS):
            request = post(f"/orders/{form}/cancel", '{"By":"eve","Reason":"x"}')
            expect_equal(f"cancel of {form}", self.ask(request).status, 404)
        expect("ErasedAt" not in self.server.get(f"/orders/{of}"), "what was posted as a cancel erased the order")

    def test_names(self) -> None:
        """Odd names of workflows, services, jobs and actions are 404."""
        ways = [f"/workflows/{name}/1" for name in ODD_IDS] + [f"/bulk/{name}" for name in ODD_IDS]
        versions = ["-1", "+1", "01", "1.0", "1e0", "0", "18446744073709551617", "%31"]
        ways += [f"/workflows/order/{version}" for version in versions]
        ways += [f"/{kind}/{up}/orders" for kind in ("workflows", "bulk") for up in ("..", "%2e%2e")]
        self.expect_statuses(ways, 404)
        body = '{"By":"eve","Reason":"x"}'
        for name in ODD_IDS:
            for path in (f"/services/{name}/accept-rejections", f"/workflows/{name}/1/retire", f"/bulk/{name}/start"):
                expect_equal(path, self.ask(post(path, body)).status, 404)
            expect_equal("an action", self.ask(post(f"/orders/{self.id}/{name}", body)).status, 404)

    def test_parameters(self) -> None:
        """A parameter twice, unknown, no UTF-8, too long or out of range is 400. Each is refused, and not guessed."""
        queries = ["limit=1&limit=2", "limit=-1", "limit=0", "limit=1e2", "limit=99999999999999999999", "limit=%31%00"]
        queries += ["x=1", "State=Error", "%00=1", "value=%ff%fe", "value=%c0%80", "value=%ed%a0%80", "value=%"]
        queries += ["value=" + "a" * 9_000, "field=/" + "a/" * 3_000 + "&value=x", "field=a&value=x", "field=%00"]
        queries += [
            "state=Nope",
            "since=99999-01-01T00:00:00Z",
            "since=0",
            "until=now",
            "late=1",
            "with=all",
            "&".join(["a"] * 5_000),
        ]
        for query in queries:
            expect_equal(query[:60], self.ask(get(f"/orders?{query}")).status, 400)
        for query in ("last=1e9h", "last=-1h", "last=31d", "last=1h&last=1h"):
            expect_equal(query, self.ask(get(f"/numbers?{query}")).status, 400)

    def test_cursors(self) -> None:
        """A cursor that is cut, of another list or made by hand is 400, and opens nothing."""
        for _ in range(2):
            self.server.order(wait=False, Item="mug")
        cursor = self.server.get("/orders?limit=1")["NextCursor"]
        content = content_of(cursor)
        expect_equal("made by hand as the API does", forged(content), cursor)
        made = [cursor[:-1], cursor[1:], cursor + "A", cursor + "=", "a" * 9_000, "%00", "..%2f", cursor[::-1]]
        made += handmade(content)
        for one in made:
            answer = self.ask(get(f"/orders?limit=1&cursor={one}"))
            expect_equal(f"{one[:80]}: {answer.body}", answer.status, 400)
        expect_equal("of another list", self.ask(get(f"/orders?state=Error&cursor={cursor}")).status, 400)
        expect_equal("of a search", self.ask(get(f"/orders?value=mug&cursor={cursor}")).status, 400)

    def test_ranges(self) -> None:
        """Range and compression are ignored: an answer is whole and plain."""
        asked = ("Range: bytes=0-3,2-5,4-7", "Accept-Encoding: gzip, br", "TE: trailers", "If-Range: *")
        for path in (f"/orders/{self.id}", "/console/main.js", "/openapi.json"):
            whole, answer = self.ask(get(path)), self.ask(get(path, *asked))
            expect_equal(path, (answer.status, len(answer.body)), (200, len(whole.body)))
            expect("content-encoding" not in answer.head, answer.head)


def forged(content: str) -> str:
    """A cursor with the checksum that the API makes."""
    data = hashlib.sha256(content.encode()).digest()[:8] + content.encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def handmade(content: str) -> list[str]:
    """Cursors that the API did not make, each with a right checksum; `content` is that of one that it made."""
    made = [f"Error:{content}", "no colon", ":", content + "x" * 3_000]
    made += [f":{after}" for after in ("", "x", "0", "'", "\0", "-1", "9" * 40, "a:b:c:d", "../x", "\u00e9")]
    return [forged(one) for one in made]


def content_of(cursor: str) -> str:
    """What is in a cursor of the API."""
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[8:].decode()
