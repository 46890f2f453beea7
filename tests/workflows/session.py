"""Three workflows of one's own and seven services of one's own, on the released program, without a build.

    tests/run workflows [--program FILE]

A chain, a diamond of six steps and a return run side by side. In the middle a new version is applied for 20 % of the
new orders, the default is switched, and the program is killed. Then every order has gone the way of the version that
it began with, and the services' books are even. At last come orders that make another one, and a schedule. Five
services are in Python, two in Node. Takes a minute and a half.
`tests/run deployed` tries the same on the deployed functions.

--program FILE  uses this `stepwarden` instead of a debug build
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness import command
from harness.report import Report
from harness.serve import Server
from workflows.run import Run, Services


def main() -> int:
    """Gives the exit status."""
    options = command.options("workflows")
    program = options.program
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-workflows-") as scratch, Services() as services:
        folder = Path(scratch)
        with Server(program, folder / "data") as server:
            Run(server, services, folder).all(report)
    return report.close()


if __name__ == "__main__":
    command.run(main)
