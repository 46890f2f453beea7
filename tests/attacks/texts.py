"""What a text of an order can do to a terminal, and who can read the files."""

from __future__ import annotations

import json
import os
import stat
import subprocess

from attacks.wire import tomorrow
from harness.report import Report, expect, expect_equal
from harness.serve import Server

# Control characters that JSON allows, and those that turn the direction of a text.
HARMFUL = [*(chr(code) for code in range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e"]
HARMFUL += [*"\u2066\u2067\u2068\u2069"]


class Texts:
    """Texts of others on a terminal, and files."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("the data directory is 0700 and its files 0600", self.modes)
        report.check("lone surrogates of a document stop no command", self.surrogates)
        report.check("no control character of a document reaches the terminal, and JSON keeps its value", self.printed)

    def modes(self) -> None:
        """Under the usual mask."""
        self.server.order(Item="mug")
        data = self.server.data
        expect_equal("the directory", oct(stat.S_IMODE(data.stat().st_mode)), "0o700")
        modes = {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in data.iterdir()}
        expect({"stepwarden.db", "stepwarden.db-wal"} <= set(modes), f"{modes}")
        expect(set(modes.values()) == {"0o600"}, f"{modes}")

    def printed(self) -> None:
        """`get`, its document and lists, for people and as JSON."""
        text = "".join(f"a{c}" for c in HARMFUL) + "é"
        order = self.server.order(wait=False, Item=text, CorrelationID=text, NotBefore=tomorrow())
        note = {"By": text[:30], "Reason": text, "Take": True}
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

    def surrogates(self) -> None:
        """JSON allows them, and no text has them."""
        document = {"Item": "\ud800", "\udfff": "\ud800\ud800", "CorrelationID": "lone", "NotBefore": tomorrow()}
        order = self.server.order(wait=False, **document)["OrderID"]
        for words in (["get", order], ["get", order, "--document"], ["get", order, "--document", "-o", "json"], ["list"]):
            self.run(*words)
        self.server.post(f"/orders/{order}/cancel", {"By": "ann", "Reason": "seen"})

    def run(self, *words: str) -> str:
        """The output of the command line."""
        command = [str(self.server.program), *words, "--api", self.server.url]
        done = subprocess.run(command, capture_output=True, env={**os.environ, "NO_COLOR": "1"}, timeout=60, check=True)
        return done.stdout.decode()
