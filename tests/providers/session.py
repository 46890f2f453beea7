"""Runs a shop's orders against providers as they are: cards, a carrier with tokens and a limit, and stock.

    tests/run providers [--program FILE]

The providers are stubs after the public documentation of such services. The shop is infra/examples/providers: its
workflow and its agents' settings, and no code. 240 orders with declines, repeats during the work, customers to be asked
and ended tokens: each order's end and the providers' books agree. Before that `stepwarden probe` judges the providers.

--program FILE  uses this `stepwarden` instead of a debug build
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import books
import probed
from harness import command
from harness.report import Report


def main() -> int:
    """Gives the exit status."""
    program, report = command.options("providers").program, Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-providers-") as scratch:
        title = "a probe is right about each provider, and calls what it announced"
        report.check(title, lambda: probed.agree(program, Path(scratch) / "probed"))
        title = "each order's end and the providers' books agree"
        report.check(title, lambda: books.agree(program, Path(scratch) / "books"))
    return report.close()


if __name__ == "__main__":
    command.run(main)
