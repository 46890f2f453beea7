"""Checks the checker: builds the simulation, or a crate's tests, with each seeded bug, which must be found.

    tests/run bugs [NAME...] [--seeds N] [--folder DIR]     these bugs or all of them: two hours on two shared cores

--seeds N     seeds within which a bug must be found, 10,000 unless given
--folder DIR  where to build; it is kept, so that the next run builds less, and continues one that was killed: what it
              found on the same code is not looked for again. Unless given, in a folder that is removed

A bug is a patch in tests/simulation/bugs. Prints the invariant that was found broken and after how many seeds. A panic
or a world without end does not count as found.

Where the second line of its patch is `# on: engine` or `# on: aws`, the worlds of the engine or of AWS must find it.

A rule that no world can see is tested where it lives. The second line of such a bug's patch is `# tests: CRATE FILTER`,
or `# tests: CRATE FILTER PROGRAM` for a test program of the crate. These tests must pass without the bug, and one of
them must fail with it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from harness import command, tools

BUGS = Path(__file__).resolve().parent
# No bug's worlds, and no test of one, may last longer.
SIMULATION_S_MAX = 900
TEST_S_MAX = 300
# The limits of the first round, which is built without optimisation. It finds most bugs. The second round has all seeds.
# Worlds of the engine and of AWS compute so much that they have the second round only.
QUICK_SEEDS = {"memory": 300}
QUICK_S_MAX = 60
# Without a bug. Later seeds are those of `simulate`.
HEALTHY_SEEDS = {"memory": 300, "engine": 100, "aws": 50}

# Each bug costs a compilation, and most are found within some worlds. The crates of the workspace are not optimised.
PROFILE = """
[profile.bugs]
inherits = "dev"
debug = false
"""
WHOLE = """
[profile.bugs.package."*"]
opt-level = 1
"""
# Some bugs need thousands of worlds.
MEMORY = """debug-assertions = false
overflow-checks = false
""" + WHOLE
# Of the worlds on memory, which need neither the SDK nor the engine. After each bug in the domain, all of them are
# compiled.
DEPENDENCIES = (
    "agent api bytes clap domain http rehearsal serde_json"
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
# In place of the worlds of the engine and of AWS.
NO_ENGINE = """
use super::outside::{Counts, Found};
use rehearsal::trace::Line;
pub const FAULTS: [&str; 0] = [];
pub struct Outcome {
    pub seed: u64,
    pub violations: Vec<Found>,
    pub hash: u64,
    pub lasted_ms: i64,
    pub counts: Counts,
    pub lines: Vec<Line>,
}
pub fn run(_seed: u64, _orders: usize, _keeps_lines: bool) -> Outcome {
    unreachable!()
}
"""
NO_AWS = """
pub use super::engine::{FAULTS, run};
pub const ORDERS: usize = 0;
"""


@dataclass(frozen=True)
class Bug:
    """A patch, and what must find it: the worlds on these ports, or else these tests."""

    name: str
    breaks: str
    on: str | None
    # The crate, the filter and perhaps the program.
    tests: tuple[str, ...]
    # The files.
    changes: str

    @property
    def patch(self) -> Path:
        """Its file."""
        return BUGS / f"{self.name}.patch"

    @property
    def group(self) -> tuple[str, ...]:
        """Bugs of one group are found by the same program."""
        return (self.on or "tests", *self.tests[:1], *self.tests[2:])

    @property
    def order(self) -> tuple[bool, tuple[str, ...], str, str]:
        """The slow worlds come last. After a bug in the same file, the least is built."""
        return (self.on in ("engine", "aws"), self.group, self.changes, self.name)


def read(name: str) -> Bug:
    """Reads a patch."""
    text = (BUGS / f"{name}.patch").read_text()
    head, second = text.splitlines()[:2]
    breaks = re.search(r", ((?:invariant|rule) \d+)$", head)
    tests = tuple(second.removeprefix("# tests: ").split()) if second.startswith("# tests: ") else ()
    on = second.removeprefix("# on: ") if second.startswith("# on: ") else "memory"
    changes = " ".join(re.findall(r"^\+\+\+ b/(.*)$", text, re.MULTILINE))
    return Bug(name, breaks[1] if breaks else "", None if tests else on, tests, changes)


class Copy:
    """The workspace as it is, in which one bug at a time is built."""

    NAME = "whole"
    PROFILE = WHOLE

    def __init__(self, folder: Path) -> None:
        self._folder = folder / self.NAME
        self._target = folder / "target"
        self._build_log = folder / "build.log"
        self._run_log = folder / "run.log"
        self._patch_log = folder / "patch.log"
        # New times: in a kept folder, what stands here may have been built last with a bug.
        shutil.rmtree(self._folder, ignore_errors=True)
        for path in sources():
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tools.ROOT / path, self._folder / path)
        with (self._folder / "Cargo.toml").open("a") as manifest:
            manifest.write(PROFILE + self.PROFILE)

    def found_without(self, bugs: list[Bug]) -> dict[Bug, str]:
        """Looks for a group of bugs without any; those that seem to be there, each with a verdict."""
        if bugs[0].on is not None:
            self._demand_healthy_worlds(bugs[0].on)
            return {}
        verdicts: dict[tuple[str, ...], str] = {}
        for bug in bugs:
            if bug.tests not in verdicts:
                verdicts[bug.tests] = {"ok": "", "FAILED": "FAIL WITHOUT IT"}.get(self._tests(bug), "NO TEST WITHOUT IT")
        return {bug: verdicts[bug.tests] for bug in bugs if verdicts[bug.tests]}

    def find(self, bug: Bug, seeds: int) -> tuple[str, int]:
        """What is found broken with this bug, and after how many seeds; 0 if nothing is."""
        if not self._applies(bug):
            return "DOES NOT APPLY", 0
        try:
            return self._find_by_tests(bug) if bug.on is None else self._find_in_worlds(bug.on, seeds)
        finally:
            # Taken back by itself: files without a change are older than their build and are not compiled again.
            self._applies(bug, "--reverse")

    def _find_in_worlds(self, on: str, seeds: int) -> tuple[str, int]:
        # With optimisation worlds run four times as fast.
        quick = QUICK_SEEDS.get(on, 0)
        rounds = [(0, min(quick, seeds), QUICK_S_MAX)] if quick else []
        rounds += [(1, seeds, SIMULATION_S_MAX)] if seeds > quick else []
        for optimisation, within, within_s in rounds:
            if not self._builds_worlds(optimisation):
                return "DOES NOT BUILD", 0
            # Without a new build it would be the bug before that is found again.
            if not self._was_compiled():
                return "NOT BUILT", 0
            if self._simulates(within, on, within_s):
                continue
            # seed 17: invariant 3 (Movers) at 1200 ms, order ...
            broken = re.search(r"^seed (\d+): invariant (rule )?([a-z0-9]+)", self._run_log.read_text(), re.MULTILINE)
            if broken is None and within_s == QUICK_S_MAX:
                continue
            if broken is None:
                return "NOT FOUND", 0
            # A panic gives the bug away; it does not show that the auditor sees it.
            if broken[3] == "panic":
                return "PANIC", 0
            return f"{broken[2] or 'invariant '}{broken[3]}", int(broken[1]) + 1
        return "NOT FOUND", 0

    def _find_by_tests(self, bug: Bug) -> tuple[str, int]:
        result = self._tests(bug)
        if not self._was_compiled():
            return "NOT BUILT", 0
        if result == "FAILED":
            return f"tests of {bug.tests[0]}", 1
        return "NOT FOUND" if result == "ok" else "NO RESULT", 0

    def _demand_healthy_worlds(self, on: str) -> None:
        if not self._builds_worlds(int(on not in QUICK_SEEDS)):
            print(*self._build_log.read_text().splitlines()[-40:], sep="\n", file=sys.stderr)
            raise tools.ToolError("the simulation cannot be built without any bug")
        if not self._simulates(HEALTHY_SEEDS[on], on):
            print(*self._run_log.read_text().splitlines()[-5:], sep="\n", file=sys.stderr)
            raise tools.ToolError("the simulation fails without any bug, so its failure with one would mean nothing")

    def _builds_worlds(self, optimisation: int = 0) -> bool:
        words = ["cargo", "build", "--offline", "--profile", "bugs", "-p", "tests", "--bin", "simulate"]
        return self._succeeds(words, self._build_log, {"CARGO_PROFILE_BUGS_OPT_LEVEL": str(optimisation)})

    def _simulates(self, seeds: int, on: str, within_s: int = SIMULATION_S_MAX) -> bool:
        """Runs the seeds on these ports, up to the first that fails; whether none did."""
        words = [str(self._target / "bugs" / "simulate"), "--brief", "--on", on, "--seeds", str(seeds)]
        return self._succeeds(words, self._run_log, within_s=within_s)

    def _tests(self, bug: Bug) -> str:
        """Builds and runs the tests that must find a bug: `ok`, `FAILED`, or nothing where none ran to its end."""
        crate, name, *program = bug.tests
        targets = ["--test", *program] if program else ["--lib"]
        words = ["cargo", "test", "--offline", "--profile", "bugs", "-p", crate, *targets, "--", name]
        self._succeeds(words, self._build_log)
        result = re.search(r"^test result: (\w+)\. (\d+) passed", self._build_log.read_text(), re.MULTILINE)
        return "" if result is None or (result[1] == "ok" and result[2] == "0") else result[1]

    def _was_compiled(self) -> bool:
        """Whether the last build compiled anything."""
        return re.search(r"^ *Compiling", self._build_log.read_text(), re.MULTILINE) is not None

    def _applies(self, bug: Bug, *options: str) -> bool:
        words = ["git", "apply", "--whitespace=nowarn", *options, str(bug.patch)]
        return self._succeeds(words, self._patch_log)

    def _succeeds(
        self, words: list[str], log: Path, env: dict[str, str] | None = None, within_s: float | None = None
    ) -> bool:
        # `.cargo/runner` ends a test program that takes longer.
        variables = {"CARGO_TARGET_DIR": str(self._target), "TEST_SECONDS_MAX": str(TEST_S_MAX), **(env or {})}
        with log.open("w") as output:
            try:
                status = subprocess.call(
                    words,
                    cwd=self._folder,
                    env={**os.environ, **variables},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=within_s,
                )
            except subprocess.TimeoutExpired:
                return False
        return status == 0


class MemoryOnly(Copy):
    """Of the package `tests` only the simulation, and of that only the worlds on memory: most bugs are found there."""

    NAME = "memory"
    PROFILE = MEMORY

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        manifest = self._folder / "Cargo.toml"
        lines = manifest.read_text().splitlines(keepends=True)
        manifest.write_text("".join(line for line in lines if not line.startswith("default-members")))
        tests = self._folder / "tests"
        # The other members of the workspace stay.
        kept = {tests / name for name in ("benches", "cloud", "disk", "simulation")}
        for part in set(tests.iterdir()) - kept:
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        (tests / "src").mkdir()
        (tests / "src" / "lib.rs").write_text(LIBRARY)
        names = "".join(f"{name}.workspace = true\n" for name in DEPENDENCIES)
        (tests / "Cargo.toml").write_text(MANIFEST + names + TOKIO)
        for part, text in (("aws", NO_AWS), ("engine", NO_ENGINE)):
            shutil.rmtree(tests / "simulation" / part)
            (tests / "simulation" / f"{part}.rs").write_text(text)


class Results:
    """What was found with which patch in which code, in a kept folder: a run that was killed continues there."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "results.json"
        self._found: dict[str, tuple[str, int, float]] = {}
        if self._file.exists():
            self._found = json.loads(self._file.read_text())
        digest = hashlib.sha256()
        for path in sources():
            # A document changes no result.
            if path.suffix not in (".patch", ".md"):
                digest.update(f"{path}\n".encode() + (tools.ROOT / path).read_bytes())
        digest.update(subprocess.check_output(["rustc", "-vV"]))
        self._code = digest.hexdigest()

    def get(self, bug: Bug, seeds: int) -> tuple[str, int, float] | None:
        """What this bug breaks in this code, within how many of these seeds, and the seconds that it took."""
        found = self._found.get(self._key(bug))
        return found if found is not None and found[1] <= seeds else None

    def put(self, bug: Bug, result: tuple[str, int, float]) -> None:
        """Keeps what was found."""
        self._found[self._key(bug)] = result
        # Whole or not at all: the run may be killed here.
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(self._found))
        written.replace(self._file)

    def _key(self, bug: Bug) -> str:
        return hashlib.sha256(self._code.encode() + bug.patch.read_bytes()).hexdigest()


def sources() -> list[Path]:
    """The files of the workspace, relative to it."""
    found: list[Path] = []
    for folder, inner, names in os.walk(tools.ROOT):
        inner[:] = sorted(set(inner) - {"target", ".git", ".aws-sam", "__pycache__"})
        found += [Path(folder, name).relative_to(tools.ROOT) for name in sorted(names)]
    return found


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("bugs")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    names = command.known(parser, options.names, sorted(patch.stem for patch in BUGS.glob("*.patch")))
    bugs = [read(name) for name in names]
    if options.folder is not None:
        folder = options.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return find_all(folder, bugs, options.seeds)
    with tempfile.TemporaryDirectory(prefix="stepwarden-bugs-") as scratch:
        return find_all(Path(scratch), bugs, options.seeds)


def find_all(folder: Path, bugs: list[Bug], seeds: int) -> int:
    """Looks for these bugs one after the other, each group of them first without any, and prints a table."""
    began = time.monotonic()
    results = Results(folder)
    copies: dict[type[Copy], Copy] = {}
    found = 0
    print(f"{'bug':34} {'breaks':13} {'found broken':22} {'seeds':>8} {'seconds':>8}", flush=True)
    for group, members in itertools.groupby(sorted(bugs, key=lambda bug: bug.order), lambda bug: bug.group):
        all_of_it = list(members)
        unknown = [bug for bug in all_of_it if results.get(bug, seeds) is None]
        kind = MemoryOnly if group == ("memory",) else Copy
        if unknown and kind not in copies:
            copies[kind] = kind(folder)
        unfit = copies[kind].found_without(unknown) if unknown else {}
        for bug in all_of_it:
            result = results.get(bug, seeds)
            if result is None:
                bug_began = time.monotonic()
                verdict, after = (unfit[bug], 0) if bug in unfit else copies[kind].find(bug, seeds)
                result = (verdict, after, time.monotonic() - bug_began)
                if after > 0:
                    results.put(bug, result)
            verdict, after, took_s = result
            found += after > 0
            print(f"{bug.name:34} {bug.breaks:13} {verdict:22} {after or '-':>8} {took_s:>8.0f}", flush=True)
    print(f"{found} of {len(bugs)} found in {time.monotonic() - began:.0f} s")
    return 0 if found == len(bugs) else 1


if __name__ == "__main__":
    command.run(main)
