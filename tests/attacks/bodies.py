"""Bodies that two programs may read in two ways, or that grow as they are read."""

from __future__ import annotations

import gzip
import json

from attacks.target import Target
from attacks.wire import Raw, get, post, tomorrow
from harness.report import Suite, expect, expect_equal

BOMB_BYTES = 100 * 1024 * 1024
CARD = "4111111111111111"
# What some parsers take for JSON.
NEARLY = [
    *('{"a":NaN}', '{"a":Infinity}', '{"a":1,}', '{"a":01}', '{"a":-}', '{"a":.5}', '{"a":+1}', '{"a":0x1}'),
    *("{'a':1}", "{a:1}", '/*x*/{"a":1}', '{"a":1}//x', '{"a":1}{"a":2}', '{"a":1}\0', "", " "),
    *('{"a":"\x01"}', '{"a":"\\x41"}', '{"a":"\\u12"}', '{"a":tru}', '{"a" 1}', '{"a":1 "b":2}', '{"a"'),
    *("[1]", "null", '"x"', "1", "true"),
]
NO_UTF_8 = [b'{"a":"\xff"}', b'{"a":"\xc0\xaf"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xf4\x90\x80\x80"}', b'{"\xfe":1}']
# Members of an order that have a meaning, with values that they cannot have.
ODD_MEMBERS: dict[str, list[object]] = {
    "Workflow": ["../x", "order/1", 1, {"a": 1}, "", "order\u0000", "x" * 5_000],
    "ReplyChannel": ["http://evil.example/", "file:///etc/passwd", {"url": "x"}, 1, ""],
    "CorrelationID": ["x" * 5_000, 1, ["a"], " "],
    "Priority": ["root", 1, "HIGH"],
    "NotBefore": ["2026-02-30T00:00:00Z", 1, "tomorrow", "9999-12-31T23:59:60Z", "0000-00-00T00:00:00Z"],
    "CompleteBy": ["2126-01-01T00:00:00Z", "2001-01-01T00:00:00Z", -1, True],
}


class Bodies(Suite):
    """JSON, and what is not."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def order(self, body: str | bytes, *headers: str) -> Raw:
        """Posts an order."""
        return self.target.ask(post("/orders", body, *headers))

    def test_nearly(self) -> None:
        """What is nearly JSON is 400: NaN, comments, two documents, overlong UTF-8. Each is refused, and not mended."""
        for body in (*NEARLY, *NO_UTF_8):
            answer = self.order(body)
            expect_equal(f"{body!r}: {answer.body}", answer.status, 400)

    def test_deep(self) -> None:
        """1,000 and 100,000 levels are 400 and cost nothing. A parser that calls itself would run out of its stack."""
        for body in ('{"a":' * 1_000 + "1" + "}" * 1_000, '{"a":' + "[" * 100_000, "[" * 130_000, '{"a":[' * 20_000):
            expect_equal(body[:20], self.order(body).status, 400)
        expect_equal("63 levels", self.order('{"a":' * 63 + "1" + "}" * 63).status, 202)

    def test_bomb(self) -> None:
        """A compressed body of 100 MiB is not unpacked: 400. Nobody asked for it, so it is JSON or nothing."""
        packed = gzip.compress(b"[" * BOMB_BYTES, 9)
        expect(len(packed) < 120_000, f"{len(packed)}")
        for coding in ("gzip", "deflate", "br", "gzip, gzip"):
            expect_equal(coding, self.order(packed, f"Content-Encoding: {coding}").status, 400)

    def test_escaped_names(self) -> None:
        """A name in escapes is redacted like any other. The members are the same to every reader."""
        body = f'{{"Card\\u004eumber":"{CARD}","a":[{{"\\u0063VC":"{CARD}"}}],"Iban":"{CARD}"}}'
        order = self.order(body).document["OrderID"]
        self.target.seen(order, lambda _: True)
        for path in (f"/orders/{order}/document", f"/orders/{order}", "/orders?with=index", f"/orders?value={CARD}"):
            text = self.target.ask(get(path)).text
            expect(CARD not in text and order in text or "value=" in path, f"{path}: {text}")
        expect_equal("found by it", self.target.get(f"/orders?value={CARD}")["Orders"], [])

    def test_surrogates(self) -> None:
        """Lone surrogates stop no order, list or search. JSON allows them, and no text has them."""
        body = f'{{"Item":"\\ud800","\\udfff":"\\ud800\\ud800","CorrelationID":"lone","NotBefore":"{tomorrow()}"}}'
        order = self.order(body).document["OrderID"]
        self.target.seen(order, lambda _: True)
        for path in (
            f"/orders/{order}",
            f"/orders/{order}/document",
            "/orders?value=x",
            "/orders?with=index",
            "/orders?correlation=lone",
        ):
            expect_equal(path, self.target.ask(get(path)).status, 200)
        expect_equal("the order", self.order('{"CorrelationID":"\\ud800"}').status, 400)

    def test_numbers(self) -> None:
        """Numbers of 5,000 digits are kept digit for digit, and calculated by nobody."""
        digits = "9" * 5_000
        order = self.order(f'{{"n":{digits},"e":1e99999999999,"m":-0.10,"NotBefore":"{tomorrow()}"}}').document[
            "OrderID"
        ]
        self.target.seen(order, lambda _: True)
        text = self.target.ask(get(f"/orders/{order}/document")).body
        expect(f'"n":{digits},"e":1e99999999999,"m":-0.10' in text, text[-200:])

    def test_members(self) -> None:
        """Members of the API with other types, paths or URLs are 400. Each names a place or a time."""
        for name, values in ODD_MEMBERS.items():
            for value in values:
                answer = self.order(json.dumps({name: value}))
                expect_equal(f"{name} {value!r}"[:80], answer.status, 400)
