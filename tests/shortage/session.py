"""Refuses a running server what it needs: threads, descriptors, memory, the disk. Needs root and Linux.

    tests/run shortage [--program FILE] [--seconds N]

Clients post orders, read them, list them and look at the overview all the time. Then the system refuses the server one
thing for some seconds, and gives it back. Every request in between is answered, as usual or with 503, by the deadline
of its client, and `/ready` says no. Within 5 s after it everything goes on without a restart, `/ready` says so, and
each accepted order ends.

That is tried on the file system of the temporary folder, on tmpfs, and on btrfs, which copies on write: there a write
through a mapping may end a process. A file system that cannot be mounted here is said. A start with 64 descriptors lets
clients in while every call of a service hangs.

--program FILE  uses this `stepwarden` instead of a debug build
--seconds N     how long each thing is refused, 10 unless given
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from harness import command
from harness.report import Report
from harness.tools import ToolError
from places import Places
from wants import Wants, few_descriptors


def main() -> int:
    """Gives the exit status."""
    options = command.options("shortage", seconds=10.0)
    if sys.platform != "linux" or os.geteuid() != 0:
        raise ToolError("needs root on Linux, for cgroups and mounts")
    program = options.program
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-shortage-") as scratch:
        with Places(Path(scratch)) as places:
            for place in places.all():
                report.section(f"On {place.kind}")
                Wants(program, place, options.seconds).all(report)
            for kind, reason in places.missing.items():
                print(f"\nnot tried on {kind}: {reason}", flush=True)
        report.section("With 64 descriptors from the start")
        report.check(
            "clients get in while every call of a service hangs", lambda: few_descriptors(program, Path(scratch))
        )
    return report.close()


if __name__ == "__main__":
    command.run(main)
