"""Backups and files of commands that somebody else has made."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.report import Report, Suite, expect, expect_equal
from harness.serve import Server

ENDS_WITHIN_S = 30
PRECIOUS = "precious-content-of-another-file"


class Backups(Suite):
    """Folders that an attacker has prepared."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.good = scratch / "good"

    def all(self, report: Report) -> None:
        """The good backup comes first."""
        with Server(self.program, self.scratch / "data") as server:
            server.order(Item="mug")
            done = self.run("backup", str(self.good), "--data", str(server.data))
        expect_equal(f"{done.stderr!r}", done.returncode, 0)
        super().all(report)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a command to its end."""
        command = [str(self.program), *words]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.scratch), **variables}
        return subprocess.run(
            command, env=environment, capture_output=True, timeout=ENDS_WITHIN_S, check=False
        )

    def test_restored(self) -> None:
        """A backup of pipes, devices, links or huge files is refused, and nothing is restored."""

        def replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
            def change(folder: Path) -> None:
                (folder / name).unlink()
                make(folder / name)

            return change

        database, manifest = "stepwarden.db", "backup.json"
        passwd = self.scratch / "passwd"
        passwd.write_text(PRECIOUS)
        changes = [replaced(name, os.mkfifo) for name in (database, manifest)]
        changes += [replaced(name, lambda path: path.symlink_to("/dev/zero")) for name in (database, manifest)]
        changes += [replaced(name, lambda path: path.symlink_to(passwd)) for name in (database, manifest)]
        changes += [replaced(name, lambda path: path.mkdir()) for name in (database, manifest)]
        changes += [replaced(manifest, lambda path: path.write_bytes(b" " * 50_000_000))]
        changes += [
            replaced(manifest, lambda path, text=text: path.write_text(text))
            for text in ("", "[" * 50_000, "{}", "null")
        ]
        changes += [replaced(database, lambda path: path.write_bytes(b"SQLite format 3\0" + os.urandom(50_000)))]
        for number, change in enumerate(changes):
            source, target = self.scratch / f"source-{number}", self.scratch / f"target-{number}"
            shutil.copytree(self.good, source)
            change(source)
            done = self.run("restore", str(source), "--data", str(target))
            expect(done.returncode not in (0, 101), f"{number}: {done}")
            expect(PRECIOUS.encode() not in done.stderr and not (target / database).exists(), f"{number}: {done}")
        done = self.run("restore", str(self.good), "--data", str(self.scratch / "target"))
        expect_equal(f"the good one: {done.stderr!r}", done.returncode, 0)

    def test_placed(self) -> None:
        """A backup goes to no place where something is, and follows no link there."""
        data, precious = self.scratch / "data", self.scratch / "precious"
        precious.write_text(PRECIOUS)
        empty = self.scratch / "empty"
        empty.mkdir()
        for name, target in (("to-file", precious), ("to-folder", empty), ("to-nothing", self.scratch / "nothing")):
            link = self.scratch / name
            link.symlink_to(target)
            done = self.run("backup", str(link), "--data", str(data))
            expect(done.returncode not in (0, 101), f"{name}: {done}")
        expect_equal("the file", precious.read_text(), PRECIOUS)
        expect_equal("the folder", list(empty.iterdir()), [])
