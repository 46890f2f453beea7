"""Paths, parameters and headers that are to mean something else than they say."""

from __future__ import annotations

import base64
import hashlib

from attacks.target import Target
from attacks.wire import Raw, get, post
from harness.report import Suite, expect, expect_equal

UP = ("..", "%2e%2e", "%2E.", "..%2f", "%252e%252e", "..%5c", "..\\", "....//", "%c0%ae%c0%ae", "..%00", ".%0d%0a.")
ODD_IDS = ("%00", "'", "a'%20or%20'1'='1", "%", "%zz", "%c0%ae", "*", "-", "null", "%0d%0aX:y", "${7*7}", "{{7*7}}")


class Paths(Suite):
    """What stands in the head of a request."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.id = str(target.order(wait=False, Item="mug")["OrderID"])

    def ask(self, request: bytes) -> Raw:
        """The answer to a request."""
        return self.target.ask(request)

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
        # Where escapes are decoded it is the same order.
        forms += [] if self.target.decodes else [f"%{ord(of[0]):x}{of[1:]}"]
        self.expect_statuses([f"/orders/{form}" for form in (*forms, *ODD_IDS)], 404)
        for form in (*forms, *ODD_IDS):
            request = post(f"/orders/{form}/cancel", '{"By":"eve","Reason":"x"}')
            expect_equal(f"cancel of {form}", self.ask(request).status, 404)
        expect("ErasedAt" not in self.target.get(f"/orders/{of}"), "what was posted as a cancel erased the order")

    def test_names(self) -> None:
        """Odd names of workflows, services, jobs and actions are 404."""
        ways = [f"/workflows/{name}/1" for name in ODD_IDS] + [f"/bulk/{name}" for name in ODD_IDS]
        versions = ["-1", "+1", "01", "1.0", "1e0", "0", "18446744073709551617", *([] if self.target.decodes else ["%31"])]
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
            self.target.order(wait=False, Item="mug")
        cursor = self.target.get("/orders?limit=1")["NextCursor"]
        content = content_of(cursor)
        expect_equal("made by hand as the API does", forged(content), cursor)
        made = [cursor[:-1], cursor[1:], cursor + "A", cursor + "=", "a" * 9_000, "%00", "..%2f", cursor[::-1]]
        made += handmade(content)
        for one in made:
            answer = self.ask(get(f"/orders?limit=1&cursor={one}"))
            expect_equal(f"{one[:80]}: {answer.body}", answer.status, 400)
        expect_equal("of another list", self.ask(get(f"/orders?state=Error&cursor={cursor}")).status, 400)
        expect_equal("of a search", self.ask(get(f"/orders?value=mug&cursor={cursor}")).status, 400)

    def test_waits(self) -> None:
        """Prefer: wait with a negative, huge or odd number is 400, and nobody waits."""
        path = f"/orders/{self.id}"
        for wait in ("-1", "21", "9" * 40, "1e1", "0x1", "\xff", '"20', "+1", "1.5", "", "NaN"):
            expect_equal(wait, self.ask(get(path, f"Prefer: wait={wait}")).status, 400)
        expect_equal("the first counts", self.ask(get(path, "Prefer: wait=0, wait=99")).status, 200)

    def test_tags(self) -> None:
        """Odd entity tags are 400, and a list of 10,000 of them costs nothing."""
        path = f"/orders/{self.id}"
        for tag in ('"', "x", 'W/"', '"\xff', '"1', "'1'", '"1" "2"', "*, *", 'w/"1"'):
            expect_equal(tag, self.ask(get(path, f"If-None-Match: {tag}")).status, 400)
        many = ",".join(['"1"'] * 7_000)
        expect_equal("many", self.ask(get(path, f"If-None-Match: {many}")).status, 200)
        stale = post(f"{path}/cancel", '{"By":"eve","Reason":"x"}', 'If-Match: "1"', "If-Match: nonsense")
        expect_equal("If-Match", self.ask(stale).status, 400)

    def test_keys(self) -> None:
        """An Idempotency-Key with odd bytes or too long is 400."""
        for key in ("a b", "\xff", "schl\xfcssel", "a" * 256, '"a', '"', "\x80", ""):
            expect_equal(
                key,
                self.ask(
                    post("/orders", '{"Item":"mug"}', f"Idempotency-Key: {key}".encode("latin-1").decode("latin-1"))
                ).status,
                400,
            )
        for key in ("../../etc/passwd", f"{self.id}/step/undo", "'", "%00", "a" * 255):
            answer = self.ask(post("/orders", '{"Item":"mug"}', f"Idempotency-Key: {key}"))
            expect_equal(key, (answer.status, len(answer.document["OrderID"])), (202, 36))

    def test_ranges(self) -> None:
        """Range and compression are ignored: an answer is whole and plain."""
        asked = ("Range: bytes=0-3,2-5,4-7", "Accept-Encoding: gzip, br", "TE: trailers", "If-Range: *")
        for path in (f"/orders/{self.id}", "/console/main.js", "/openapi.json"):
            whole, answer = self.ask(get(path)), self.ask(get(path, *asked))
            expect_equal(path, (answer.status, len(answer.body)), (200, len(whole.body)))
            expect("content-encoding" not in answer.head, answer.head)

    def test_traces(self) -> None:
        """A malformed or doubled traceparent is ignored. It comes from outside, and goes to services and logs."""
        good = f"00-{'a' * 32}-{'b' * 16}-01"
        for values in (
            ("x" * 9_000,),
            (good, good),
            (f"00-{'0' * 32}-{'0' * 16}-01",),
            (f"{good}\xff",),
            ("00-\t-x-01",),
        ):
            headers = [f"traceparent: {value}" for value in values]
            expect_equal(f"{values}"[:60], self.ask(post("/orders", '{"Item":"mug"}', *headers)).status, 202)


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
