"""Runs a shop's orders against providers as they are: cards, a carrier with tokens and a limit, and stock.

    tests/run providers [--program FILE] [--only RUN]...

The providers are stubs after the public documentation of such services. The shop is infra/examples/providers: its
workflow and its agents' settings, and no code. Takes about two minutes, since the runs go side by side:

    books   240 orders with declines, repeats during the work, customers to be asked, ended tokens; the books agree
    key     1,000 orders while the card provider answers 401 for a minute
    limit   a carrier with 20 calls a second, under load for a minute

--program FILE  uses this `stepwarden` instead of a debug build
--only RUN      makes this run alone
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import books
import limit
import rejected_key
from harness import command, tools
from harness.report import Check, Report

RUNS = {
    "books": ("each order's end and the providers' books agree", books.agree),
    "key": ("a rejected key undoes no order", rejected_key.is_survived),
    "limit": ("the carrier's limit is used and kept", limit.is_kept),
}


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("providers")
    parser.add_argument("--program")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    names = command.known(parser, options.only, list(RUNS))
    program = tools.stepwarden(options.program)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-providers-") as scratch:
        run = [(name, *RUNS[name]) for name in names]
        report.all_at_once(
            [Check(title, functools.partial(work, program, Path(scratch) / name)) for name, title, work in run]
        )
    return report.close()


if __name__ == "__main__":
    command.run(main)
