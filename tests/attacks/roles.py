"""Every call as every role, compared with the table of the documents; and the orders of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from attacks.secured import ROLES, Secured
from attacks.wire import call, raw, tomorrow
from harness.report import Suite, expect, expect_equal, until
from harness.tools import ROOT

DOCUMENT = ROOT / "functions" / "api" / "README.md"
CONTRACT = ROOT / "infra" / "contracts" / "openapi.json"
# What no token is asked for: it has no data, or proves itself.
OPEN = ("/health", "/ready", "/openapi.json", "/problems/", "/callbacks/")
ODD_METHODS = (
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "get",
    "Post",
    "HEADX",
    "QUERY",
    "PROPFIND",
    "M-SEARCH",
    "*",
)
WORDS = {"By": "eve", "Reason": "x"}


def table() -> dict[tuple[str, str], dict[str, str]]:
    """The table of the documents: for each call, what each role may."""
    text = DOCUMENT.read_text().split("## Roles\n")[1].split("\n\n- ")[0]
    allowed = {}
    for line in re.findall(r"^\| `(.*) \|$", text, re.MULTILINE):
        calls, *cells = (cell.strip() for cell in line.split("|"))
        method, *paths = re.findall(r"POST|GET|/[^`,]*", calls)
        for path in paths:
            allowed[method, path] = dict(zip(ROLES, cells, strict=True))
    return allowed


def ways(allowed: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Each call of the table: method, path in the table, path of an order that is not there."""
    names = {"{id}": "01a216f8-4eca-74a6-8854-23ae308eae10", "{name}": "paid", "{version}": "7"}
    return [(method, path, re.sub(r"\{\w+\}", lambda found: names[found[0]], path)) for method, path in allowed]


def calls() -> set[tuple[str, str]]:
    """All calls of the contract."""
    paths: dict[str, Any] = json.loads(CONTRACT.read_text())["paths"]
    return {(name.upper(), path) for path, methods in paths.items() for name in methods if name in ("get", "post")}


def besides(allowed: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The calls of the contract that are in no table, and that not everybody may make."""
    return {(method, path) for method, path in calls() - set(allowed) if not path.startswith(OPEN)}


class Roles(Suite):
    """What a known caller may not do."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured
        self.allowed = table()
        of_other = {"CorrelationID": "cart-7", "Email": "eve@example.org", "NotBefore": tomorrow()}
        self.own = secured.order(Note="mine", NotBefore=tomorrow())
        self.foreign = secured.order("other", key="k1", Note="theirs", **of_other)

    def test_complete(self) -> str:
        """Every call of the contract is in the table of roles, or open to all."""
        expect_equal("in no table", besides(self.allowed), set())
        expect_equal("in no contract", self.allowed.keys() - calls(), set())
        return f"{len(self.allowed)} calls"

    def test_every_role(self) -> str:
        """Every call as every role: 403 exactly where the table has no yes."""
        for method, path, way in ways(self.allowed):
            for role in ROLES:
                status = self.secured.ask(role, method, way, WORDS if method == "POST" else None).status
                if self.allowed[method, path][role]:
                    expect(status not in (401, 403), f"{method} {path} as {role}: {status}")
                else:
                    expect_equal(f"{method} {path} as {role}", status, 403)
        return f"{len(self.allowed) * len(ROLES)} calls"

    def test_nobody(self) -> None:
        """Every call of the table without a caller is 401. With words that would be good."""
        for method, _, way in ways(self.allowed):
            expect_equal(f"{method} {way}", self.secured.ask(None, method, way, WORDS).status, 401)

    def test_methods(self) -> None:
        """No other method, in whatever case, does anything on any path, for any role."""
        before = self.secured.task(self.own)
        for path in {way for _, _, way in ways(self.allowed)} | {
            f"/orders/{self.own}",
            f"/orders/{self.own}/cancel",
            "/health",
            "/",
        }:
            for method in ODD_METHODS:
                for name in (None, "viewer", "administrator"):
                    answer = raw(self.secured.port, call(method, path, *self.secured.bearer(name)))
                    expect(400 <= answer.status < 500, f"{method} {path} as {name}: {answer.status}")
        expect_equal("the order", self.secured.task(self.own), before)

    def seen(self, path: str, *headers: str) -> tuple[int, str]:
        """What the application sees: status and body."""
        answer = self.secured.ask("application", "GET", path, None, *headers)
        return answer.status, answer.body

    def test_others_cursors(self) -> None:
        """A cursor of a reader shows an application nothing of others. The pages of a reader lead on to any order."""
        for query in ("limit=1", "limit=1&with=index", "limit=1&value=theirs", "limit=1&workflow=paid"):
            page = self.secured.ask("viewer", "GET", f"/orders?{query}").document
            while cursor := page.get("NextCursor"):
                status, body = self.seen(f"/orders?{query}&cursor={cursor}")
                expect(status in (200, 400) and self.foreign not in body and "theirs" not in body, f"{query}: {body}")
                page = self.secured.ask("viewer", "GET", f"/orders?{query}&cursor={cursor}").document

    def test_typed_names(self) -> None:
        """The history shows the real caller beside a typed name."""
        path = f"/orders/{self.own}/note"
        expect_equal(
            "a bracket", self.secured.ask("operator", "POST", path, WORDS | {"By": "ada [administrator]"}).status, 400
        )
        expect_equal(
            "another's name", self.secured.ask("operator", "POST", path, WORDS | {"By": "administrator"}).status, 202
        )
        lines = until(
            "the note",
            lambda: [
                line
                for line in self.secured.task(self.own)["History"]
                if line["Kind"] == "note" or "note" in line["What"].lower()
            ],
        )
        expect("operator" in json.dumps(lines[-1]), json.dumps(lines[-1]))
