"""The table of the documents: which role may make which call."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attacks.secured import ROLES
from harness.tools import ROOT

DOCUMENT = ROOT / "functions" / "api" / "README.md"
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
