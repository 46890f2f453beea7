"""Backup, restore and erase, under load, on the released program.

    tests/run backup [--program FILE] [--orders N]

Orders run while a backup is taken. Then the server is killed for good. The backup is restored on another path, and
customers post everything again under the same keys. Every order ends once, as the services count. How much a backup
costs is measured by the bench: `cargo run --release -p tests --bin bench -- --only backup`.

Then a person is erased (rule 46), whose texts are first found in files and answers: documents, outputs, errors, notes,
reasons of jobs, dead letters, hashes. After it no byte of any file, backup or answer has them, in several encodings.
Another person, with the same kinds of orders, loses nothing.

--program FILE  uses this `stepwarden` instead of a debug build
--orders N      orders of each of the three parts, 150 unless given
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from backup.erased import Erased
from backup.person import Services
from backup.run import Run
from harness import command
from harness.report import Report
from workflows.service import Service


def main() -> int:
    """Gives the exit status."""
    options = command.options("backup", orders=150)
    program = options.program
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-backup-") as scratch, Service() as service:
        report.section("Backup and restore under load")
        Run(program, service, Path(scratch), options.orders).all(report)
        report.section("A person is erased")
        with Services() as services:
            Erased(program, services, Path(scratch) / "erased").all(report)
    return report.close()


if __name__ == "__main__":
    command.run(main)
