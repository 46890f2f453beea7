"""What a text of an order can do to a terminal."""

from __future__ import annotations

import json

from attacks.wire import tomorrow
from harness.report import Suite, expect, expect_equal
from harness.serve import Server

# Control characters that JSON allows, and those that turn the direction of a text.
HARMFUL = [*(chr(code) for code in range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e"]
HARMFUL += [*"\u2066\u2067\u2068\u2069"]


class Texts(Suite):
    """Texts of others on a terminal."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def test_printed(self) -> None:
        """No control character of a document reaches the terminal, and JSON keeps its value."""
        text = "".join(f"a{c}" for c in HARMFUL) + "é"
        order = self.server.order(wait=False, Item=text, CorrelationID=text, NotBefore=tomorrow())
        note = {"By": "ann", "Reason": text, "Take": True}
        self.server.post(f"/orders/{order['OrderID']}/note", note)
        self.server.seen(order["OrderID"], lambda task: "taken" in json.dumps(task).lower())
        commands = (["get", order["OrderID"]], ["get", order["OrderID"], "--document"], ["list", "--columns", "id,taken"])
        for words in commands:
            for output in ([], ["-o", "json"]):
                shown = self.run(*words, *output)
                found = {hex(ord(c)) for c in shown if c in HARMFUL}
                expect(not found, f"{words} {output}: {found}")
        for more in ([], ["-o", "json"]):
            document = json.loads(self.run("get", order["OrderID"], "--document", *more))
            expect_equal("the value", document["Document"]["Item"], text)
        self.server.post(f"/orders/{order['OrderID']}/cancel", {"By": "ann", "Reason": "seen"})

    def test_surrogates(self) -> None:
        """Lone surrogates of a document stop no command. JSON allows them, and no text has them."""
        document = {"Item": "\ud800", "\udfff": "\ud800\ud800", "CorrelationID": "lone", "NotBefore": tomorrow()}
        order = self.server.order(wait=False, **document)["OrderID"]
        for words in (["get", order], ["get", order, "--document"], ["get", order, "--document", "-o", "json"], ["list"]):
            self.run(*words)
        self.server.post(f"/orders/{order}/cancel", {"By": "ann", "Reason": "seen"})

    def run(self, *words: str) -> str:
        """The output of the command line."""
        done = self.server.command(*words)
        expect_equal(done.stderr, done.returncode, 0)
        return done.stdout
