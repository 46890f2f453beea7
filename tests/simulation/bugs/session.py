"""Checks the checker: builds the simulation, or a crate's tests, with each seeded bug, which must be found.

    tests/run bugs [NAME...] [--seeds N] [--folder DIR]     these bugs or all of them: about an hour on two cores

--seeds N     seeds within which a bug must be found, 10,000 unless given
--folder DIR  where to build; it is kept, so that the next run builds less. Unless given, in a folder that is removed

A bug is a patch in tests/simulation/bugs. Prints the invariant that was found broken and after how many seeds. A panic
or a world without end does not count as found.

Where the second line of its patch is `# on: engine` or `# on: aws`, the worlds of the engine or of AWS must find it.

A rule that no world can see is tested where it lives. The second line of such a bug's patch is `# tests: CRATE FILTER`,
or `# tests: CRATE FILTER PROGRAM` for a test program of the crate. These tests must pass without the bug, and one of
them must fail with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import command, tools

BUGS = Path(__file__).resolve().parent
# No world of a bug may last longer.
SIMULATION_S_MAX = 900
HEALTHY_SEEDS = {"memory": 300, "engine": 300, "aws": 50}

PROFILE = """
[profile.bugs]
inherits = "release"
opt-level = 1
lto = false
codegen-units = 16
incremental = true
"""
DEPENDENCIES = (
    "agent api aws aws-smithy-runtime-api bytes clap cloud config disk domain embedded fastrand futures-util http local"
    " rusqlite scheduler serde serde_json submission supervisor thiserror"
).split()
TOKIO = 'tokio = { workspace = true, features = ["macros", "rt", "sync", "test-util", "time"] }\n'
MANIFEST = """[package]
name = "tests"
version.workspace = true
edition.workspace = true

[[bin]]
name = "simulate"
path = "simulation/main.rs"

[dependencies]
"""
LIBRARY = """//! Only the simulation.
#[path = "../simulation/mod.rs"]
pub mod simulation;
"""


class Copy:
    """The workspace, but of the package `tests` the simulation only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "target"
        self.build_log = folder / "build.log"
        self.run_log = folder / "run.log"
        for part in ("functions", "infra", "tests"):
            shutil.rmtree(folder / part, ignore_errors=True)
        # New times: in a kept folder, what stands here may have been built last with a bug.
        for part in ("functions", "infra"):
            shutil.copytree(tools.ROOT / part, folder / part, copy_function=shutil.copy)
        for part in ("cloud", "disk", "simulation"):
            shutil.copytree(tools.ROOT / "tests" / part, folder / "tests" / part, copy_function=shutil.copy)
        shutil.copy2(tools.ROOT / "Cargo.lock", folder)
        lines = (tools.ROOT / "Cargo.toml").read_text().splitlines(keepends=True)
        kept = [line for line in lines if not re.match(r"default-members|exclude", line)]
        (folder / "Cargo.toml").write_text("".join(kept) + PROFILE)
        (folder / "tests" / "src").mkdir()
        (folder / "tests" / "src" / "lib.rs").write_text(LIBRARY)
        manifest = MANIFEST + "".join(f"{name}.workspace = true\n" for name in DEPENDENCIES)
        (folder / "tests" / "Cargo.toml").write_text(manifest + TOKIO)

    def builds(self) -> bool:
        """Builds the simulation."""
        words = ["cargo", "build", "--offline", "--profile", "bugs", "-p", "tests", "--bin", "simulate"]
        return self._succeeds(words, self.build_log, {"CARGO_TARGET_DIR": str(self.target)})

    def fails(self, tests: list[str]) -> bool:
        """Whether one of these tests fails. They pass without the bug."""
        crate, name, *program = tests
        targets = ["--test", *program] if program else ["--lib"]
        words = ["cargo", "test", "--offline", "-p", crate, *targets, "--", name]
        self._succeeds(words, self.run_log, {"CARGO_TARGET_DIR": str(self.target)}, SIMULATION_S_MAX)
        result = re.search(r"^test result: (\w+)\. (\d+) passed; (\d+) failed", self.run_log.read_text(), re.MULTILINE)
        if result is None or (result[1] == "ok" and result[2] == "0"):
            raise tools.ToolError(f"cargo test -p {crate} {' '.join(targets)} {name} runs no test: see {self.run_log}")
        return result[1] == "FAILED"

    def was_compiled(self) -> bool:
        """Whether the last build compiled anything."""
        return re.search(r"^ *Compiling", self.build_log.read_text(), re.MULTILINE) is not None

    def simulates(self, seeds: int, on: str) -> bool:
        """Runs the seeds on these ports, up to the first that fails; whether none did."""
        words = [str(self.target / "bugs" / "simulate"), "--brief", "--on", on, "--seeds", str(seeds)]
        return self._succeeds(words, self.run_log, within_s=SIMULATION_S_MAX)

    def applies(self, patch: Path, *options: str) -> bool:
        """Applies a patch."""
        return self._succeeds(["git", "apply", "--whitespace=nowarn", *options, str(patch)], self.build_log)

    def _succeeds(
        self, words: list[str], log: Path, env: dict[str, str] | None = None, within_s: float | None = None
    ) -> bool:
        with log.open("w") as output:
            try:
                status = subprocess.call(
                    words,
                    cwd=self.folder,
                    env={**os.environ, **(env or {})},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=within_s,
                )
            except subprocess.TimeoutExpired:
                return False
        return status == 0


class Whole(Copy):
    """The workspace as it is, for the bugs that a test program of the package `tests` finds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "whole"
        self.target = folder / "target"
        self.build_log = folder / "build.log"
        self.run_log = folder / "run.log"
        shutil.rmtree(self.folder, ignore_errors=True)
        others = shutil.ignore_patterns("target", ".git", ".aws-sam")
        shutil.copytree(tools.ROOT, self.folder, copy_function=shutil.copy, ignore=others)


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("bugs")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    names = command.known(parser, options.names, sorted(patch.stem for patch in BUGS.glob("*.patch")))
    if options.folder is not None:
        folder = options.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return find_all(Copy(folder), names, options.seeds)
    with tempfile.TemporaryDirectory(prefix="stepwarden-bugs-") as scratch:
        return find_all(Copy(Path(scratch)), names, options.seeds)


def find_all(copy: Copy, names: list[str], seeds: int) -> int:
    """Looks for these bugs one after the other and prints a table."""
    if not copy.builds():
        print(*copy.build_log.read_text().splitlines()[-40:], sep="\n", file=sys.stderr)
        raise tools.ToolError("the simulation cannot be built without any bug")
    ports = {ports_of(name) for name in names} - {None}
    if not all(copy.simulates(HEALTHY_SEEDS[on], on) for on in sorted(ports)):
        print(*copy.run_log.read_text().splitlines()[-5:], sep="\n", file=sys.stderr)
        raise tools.ToolError("the simulation fails without any bug, so its failure with one would mean nothing")
    found = 0
    whole = Whole(copy.folder) if any(is_of_whole(name) for name in names) else copy
    print(f"{'bug':34} {'breaks':13} {'found broken':22} {'seeds':>8} {'seconds':>8}")
    for name in names:
        began = time.monotonic()
        patch = BUGS / f"{name}.patch"
        head, second = patch.read_text().splitlines()[:2]
        breaks = re.search(r", ((?:invariant|rule) \d+)$", head)
        on = ports_of(name)
        tests = second.removeprefix("# tests: ").split()
        if on is not None:
            verdict, after = find(copy, patch, on, seeds)
        else:
            verdict, after = find_by_tests(whole if is_of_whole(name) else copy, patch, tests)
        # A panic gives the bug away; it does not show that the auditor sees it.
        found += after > 0 and not verdict.endswith("panic")
        took_s = time.monotonic() - began
        print(f"{name:34} {breaks[1] if breaks else '':13} {verdict:22} {after or '-':>8} {took_s:>8.0f}", flush=True)
    print(f"{found} of {len(names)} found")
    return 0 if found == len(names) else 1


def is_of_whole(name: str) -> bool:
    """Whether a test program of the package `tests` must find a bug."""
    return (BUGS / f"{name}.patch").read_text().splitlines()[1].startswith("# tests: tests ")


def ports_of(name: str) -> str | None:
    """The ports of the simulation that must find a bug; nothing where tests must."""
    second = (BUGS / f"{name}.patch").read_text().splitlines()[1]
    if second.startswith("# tests: "):
        return None
    return second.removeprefix("# on: ") if second.startswith("# on: ") else "memory"


def find(copy: Copy, patch: Path, on: str, seeds: int) -> tuple[str, int]:
    """What the simulation on these ports finds broken with this bug, and after how many seeds; 0 if it finds nothing."""
    if not copy.applies(patch):
        return "DOES NOT APPLY", 0
    try:
        if not copy.builds():
            return "DOES NOT BUILD", 0
        # Without a new build it would be the bug before that is found again.
        if not copy.was_compiled():
            return "NOT BUILT", 0
        if copy.simulates(seeds, on):
            return "NOT FOUND", 0
        # seed 17: invariant 3 (Movers) at 1200 ms, order ...
        broken = re.search(r"^seed (\d+): invariant (rule )?([a-z0-9]+)", copy.run_log.read_text(), re.MULTILINE)
        if broken is None:
            return "NOT FOUND", 0
        return f"{broken[2] or 'invariant '}{broken[3]}", int(broken[1]) + 1
    finally:
        # Taken back by itself: files without a change are older than their build and are not compiled again.
        copy.applies(patch, "--reverse")


def find_by_tests(copy: Copy, patch: Path, tests: list[str]) -> tuple[str, int]:
    """Whether unit tests find this bug: their crate and 1, or 0 if they do not."""
    if copy.fails(tests):
        return "FAIL WITHOUT IT", 0
    if not copy.applies(patch):
        return "DOES NOT APPLY", 0
    try:
        return (f"tests of {tests[0]}", 1) if copy.fails(tests) else ("NOT FOUND", 0)
    finally:
        copy.applies(patch, "--reverse")


if __name__ == "__main__":
    command.run(main)
