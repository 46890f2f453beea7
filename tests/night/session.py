"""An operator's night on one machine: an outage, a kill, orders that need a person, and every number everywhere.

    tests/run night [--orders N] [--outage SECONDS] [--program FILE]

--orders N        orders of the night: 100000 by default, at least 2000
--outage SECONDS  payment that fails for longer needs an operator: 120 by default, at least 30. Five looks at all
                  numbers must fit into it. From 300 on, the service has an alert of its own
--program FILE    uses this `stepwarden` instead of a release build

At each of 20 moments every number of the metrics, the command line and the console (on a desk and on a phone) is
compared with a plain count of the stored tasks, or with GET /numbers. That is compared with a plain count of orders and
attempts, and with the books of the services, which also time their answers. One in twenty is slow.

Between the moments orders are posted. At a moment the load stands still, and all orders have
ended but those that are known to wait. So a number must be exactly the counted one. Where orders wait for a service,
its probes and their attempts go on: then a number must lie between a count before the look and one after it. The report
says how much was exact.

Ten questions of an operator are answered in at most three clicks, and compared with the truth.

Needs npm and Chromium, or root and apt to install them.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import shop
from console.console import Console
from console.session import browser
from harness import command, tools
from harness.report import Report
from harness.serve import Server
from night import Night, Services
from pages import SIZES
from playwright.sync_api import sync_playwright

ORDERS, OUTAGE_S = 100_000, 120
ORDERS_MIN, OUTAGE_S_MIN = 2_000, 30


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("night")
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--outage", type=int, default=OUTAGE_S)
    parser.add_argument("--program")
    options = parser.parse_args()
    if options.orders < ORDERS_MIN or options.outage < OUTAGE_S_MIN:
        parser.error(f"at least {ORDERS_MIN} orders, and an outage of at least {OUTAGE_S_MIN} s")
    program = Path(options.program).resolve() if options.program else release()
    report = Report()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepwarden-night-")))
        services = stack.enter_context(Services())
        folder = shop.write(scratch / "folder", services.url, services.mail, options.outage)
        server = Server(program, scratch / "data", "--config", str(folder))
        stack.enter_context(server)
        playwright = stack.enter_context(sync_playwright())
        chromium = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        stack.callback(chromium.close)
        consoles = {
            size: stack.enter_context(Console.on(chromium, server.url, width=width, height=height, timezone_id="UTC"))
            for size, (width, height) in SIZES.items()
        }
        night = Night(server, services, consoles, report, options.orders, options.outage)
        stack.callback(lambda: night.truth.close())
        night.all()
    return report.close()


def release() -> Path:
    """The release build of this checkout."""
    tools.cargo("build", "--locked", "--release", "--package", "stepwarden")
    return tools.TARGET / "release" / "stepwarden"


if __name__ == "__main__":
    command.run(main)
