"""Attacks on the released program: by requests, connections, tokens, texts, folders, services, and servers of others.

    tests/run attacks [--program FILE] [--connections N] [--cpu-ms MS] [--answer-ms MS] [--orders-per-s N]

The bounds hold for a debug build on a slow machine. Those of a release build are:

    tests/run attacks --program target/release/stepwarden --cpu-ms 50 --answer-ms 250 --orders-per-s 50

--program FILE   uses this `stepwarden` instead of a debug build
--connections N  hostile connections, 4,096 unless given, and no more than the limit of open files permits
--cpu-ms MS      what one request may cost, in CPU time of the process; 500 unless given
--answer-ms MS   the time of 99 of 100 answers beside the hostile connections; 2,000 unless given
--orders-per-s N the orders that others post beside these connections; 5 a second unless given
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.answers import Answers
from attacks.backups import Backups
from attacks.bearers import Bearers
from attacks.clients import Clients
from attacks.consoles import Consoles
from attacks.costs import Costs
from attacks.crowd import Crowd
from attacks.folders import Folders
from attacks.framing import Framing
from attacks.impostors import Impostors
from attacks.jwts import Jwts
from attacks.lines import Lines
from attacks.mails import Mails
from attacks.paths import Paths
from attacks.secured import Secured
from attacks.services import Services
from attacks.texts import Texts
from attacks.tls import Tls
from harness import command
from harness.report import Report
from harness.serve import Server

SIDE_BY_SIDE = 3


def main() -> int:
    """Gives the exit status."""
    options = command.options("attacks", connections=4_096, cpu_ms=500.0, answer_ms=2_000.0, orders_per_s=5)
    program = options.program
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-attacks-") as scratch:
        # Another user has to get as far as the socket of `callers`.
        Path(scratch).chmod(0o755)
        with Server(program, Path(scratch) / "data") as server:
            report.section("Texts")
            Texts(server).all(report)
            report.section("Requests that cost much")
            Costs(server, options.cpu_ms).all(report)
            report.section("Hostile connections")
            Crowd(server, options.connections, options.answer_ms, options.orders_per_s).all(report)
        with Server(program, Path(scratch) / "requests") as server:
            report.section("Requests that are read in two ways")
            Framing(server).all(report)
            report.section("Paths, parameters and headers")
            Paths(server).all(report)
        callers(program, Path(scratch) / "callers", report)
        report.section("Commands, folders, services, TLS and e-mail, side by side")
        side_by_side(program, Path(scratch), report)
    return report.close()


def callers(program: Path, scratch: Path, report: Report) -> None:
    """What a server answers that knows its callers, and has services that tell results later."""
    scratch.mkdir()
    with Secured(program, scratch) as secured:
        report.section("Callers")
        Bearers(secured).all(report)
        Jwts(secured, scratch).all(report)


def side_by_side(program: Path, scratch: Path, report: Report) -> None:
    """Each has servers of its own, and waits most of its time."""
    kinds = (Tls, Services, Answers, Clients, Lines, Folders, Impostors, Consoles, Backups, Mails)

    def all_of(number: int) -> None:
        folder = scratch / f"side-{number}"
        folder.mkdir()
        kinds[number](program, folder).all(report)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(all_of, range(len(kinds))))


if __name__ == "__main__":
    command.run(main)
