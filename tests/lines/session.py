"""Orders of 1 to 40 lines, of which one in twenty is rejected and dropped, on the released program.

    tests/run lines [--program FILE] [--orders N] [--seed N]

A bank in Python charges an order. A warehouse and a carrier on Node take each line by itself, and the carrier tells the
result later. Meanwhile the program is killed twice, and some orders are cancelled. Then the services' books say: what
was carried has each effect once, what was dropped none, and its refund is exact to the last digit; of a compensated
order nothing is left. `tests/run deployed` does the same on the deployed functions. Takes three minutes.

--program FILE  uses this `stepwarden` instead of a debug build
--orders N      how many, 500 unless given
--seed N        what the orders are drawn from, and what goes wrong, 1 unless given
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness import command
from harness.report import Report
from harness.serve import Server
from lines.run import Run, Services


def main() -> int:
    """Gives the exit status."""
    options = command.options("lines", orders=500, seed=1)
    program, report = options.program, Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-lines-") as scratch, Services() as services:
        with Server(program, Path(scratch) / "data") as server:
            Run(server, services, options.orders, options.seed).all(report)
    return report.close()


if __name__ == "__main__":
    command.run(main)
