"""Orders whose payment is confirmed later, at the address of the call, on the released program.

    tests/run callbacks [--program FILE] [--orders N] [--seconds S]

A bank answers 202 and tells each result after up to S seconds: some before the 202, some twice, some never. Some
payments have heartbeats. Half of the payments are confirmed by signed events instead, by each of the three schemes.
Meanwhile the program is killed twice. Then every order has ended, and the books agree. `tests/run deployed` does the
same on the deployed functions. Rust tests forge addresses and events.

--program FILE  uses this `stepwarden` instead of a debug build
--orders N      how many, 2,000 unless given
--seconds S     the longest time of a payment, 10 unless given
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from callbacks.bank import Bank
from callbacks.run import Run
from harness import command
from harness.report import Report
from harness.serve import Server


def main() -> int:
    """Gives the exit status."""
    options = command.options("callbacks", orders=2_000, seconds=10.0)
    program = options.program
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-callbacks-") as scratch, Bank(options.seconds) as bank:
        secrets = Path(scratch) / "secrets"
        secrets.mkdir()
        with Server(program, Path(scratch) / "data") as server:
            Run(server, bank, options.orders, secrets).all(report)
    return report.close()


if __name__ == "__main__":
    command.run(main)
