"""Shows where `stepwarden serve` spends its time under load: by thread, by kind of work, and by function.

    tests/run profile [IN_FLIGHT]

IN_FLIGHT is the number of orders in flight, 64 unless given. Needs `perf` (Debian: linux-perf) and the right to use
it. Builds the program with symbols under target/profile.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness import command, tools
from harness.process import Process

WARM_UP_MS, WINDOW_MS, WATCHED_S = 2_000, 10_000, 6
WORK = (
    "sqlite3_step|do_fsync|vfs_write|tcp_sendmsg|tcp_recvmsg|__schedule|futex|malloc|"
    "api::handle|decide|advance|carry_out|Serialize|epoll_wait"
)


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("profile")
    parser.add_argument("in_flight", nargs="?", type=int, default=64)
    in_flight = parser.parse_args().in_flight
    if shutil.which("perf") is None:
        raise tools.ToolError("perf is not installed")
    programs = build()
    with tempfile.TemporaryDirectory(prefix="stepwarden-profile-") as folder:
        recorded = record(programs, Path(folder), in_flight)
        print("\nBy thread", *report(recorded, "--no-children", "--sort", "comm")[:5], sep="\n")
        work = [line for line in report(recorded, "--children", "--sort", "symbol") if re.search(WORK, line)]
        print("\nBusy with, each with all its calls", *work[:25], sep="\n")
        print("\nBy function", *report(recorded, "--no-children", "--sort", "symbol")[:40], sep="\n")
    return 0


def build() -> Path:
    """Builds the program and its load with symbols; gives their folder."""
    folder = tools.TARGET / "profile"
    symbols = {"CARGO_PROFILE_RELEASE_STRIP": "none", "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only"}
    words = ["--quiet", "--release", "--target-dir", str(folder), "-p", "stepwarden", "-p", "tests"]
    tools.cargo("build", *words, "--bin", "stepwarden", "--bin", "bench", env=symbols)
    return folder / "release"


def record(programs: Path, folder: Path, in_flight: int) -> Path:
    """Records the server under load; gives the file."""
    services = Process([str(programs / "bench"), "stub"], folder / "services.log", env=dict(os.environ))
    services.start(lambda: bool(services.text().strip()))
    try:
        names = ("INVENTORY_URL", "PAYMENT_URL", "SHIPPING_URL")
        urls = {name: f"http://{at}" for name, at in zip(names, services.text().split(), strict=True)}
        serve = [str(programs / "stepwarden"), "serve", "--port", "0", "--data", str(folder / "data")]
        server = Process(serve, folder / "serve.log", env={**os.environ, **urls, "RUST_LOG": "warn"})
        server.start(lambda: "listening" in server.text())
        try:
            return record_server(programs, folder, server, in_flight)
        finally:
            server.stop()
    finally:
        services.stop()


def record_server(programs: Path, folder: Path, server: Process, in_flight: int) -> Path:
    """Records this server while it takes orders."""
    address = re.findall(r"127\.0\.0\.1:[0-9]+", server.text())[0]
    times = ["--warm-up-ms", str(WARM_UP_MS), "--window-ms", str(WINDOW_MS)]
    load = [str(programs / "bench"), "load", "--address", address, "--in-flight", str(in_flight), *times]
    recorded = folder / "perf"
    with subprocess.Popen(load, stdout=subprocess.PIPE, text=True) as loading:
        time.sleep(3)
        print(f"watching for {WATCHED_S} s, {in_flight} orders in flight", flush=True)
        perf = ["perf", "record", "--quiet", "--freq", "1999", "--call-graph", "fp", "--output", str(recorded)]
        tools.run([*perf, "--pid", str(server.pid), "--", "sleep", str(WATCHED_S)])
        said, _ = loading.communicate()
    print(said.strip().splitlines()[-1])
    return recorded


def report(recorded: Path, *words: str) -> list[str]:
    """The lines of a report of perf, short enough to read."""
    call = ["perf", "report", "--input", str(recorded), "--stdio", "--call-graph", "none", *words]
    lines = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    kept = [line for line in lines.splitlines() if line and not line.startswith("#")]
    return [re.sub(r" - -.*", "", re.sub(r" +", " ", line))[:110] for line in kept]


if __name__ == "__main__":
    command.run(main)
