"""Fuzzes every decoder of outside input.

    tests/run fuzz [TARGET...] [--seconds N] [--jobs N]     these targets or all of them
    tests/run fuzz --replay TARGET FILE                     one input through a target

--seconds N  for each target, 60 unless given
--jobs N     targets at a time, 1 unless given

Begins with the inputs in tests/fuzz/corpus, and keeps what it finds in target/found for the next run. Needs Rust and a
C++ compiler for libFuzzer; no other tool and no other toolchain: the compiler's part in fuzzing is stable flags. The
code under test is safe Rust, so its faults show without a sanitizer; overflows and debug assertions are checked.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from harness import command, tools
from harness.report import Check, CheckFailed, Report

HERE = Path(__file__).resolve().parent
TARGETS = sorted(program.stem for program in (HERE / "fuzz_targets").glob("*.rs"))
FOUND = tools.TARGET / "found"
# Longer inputs are refused by their size alone, which has tests of its own.
INPUT_BYTES_MAX = 8192
INPUT_S_MAX = 10
MEMORY_MIB_MAX = 2048


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "FILE"))
    options = parser.parse_args()
    if options.replay:
        target, file = options.replay
        command.known(parser, [target], TARGETS)
        return subprocess.call([build([target]) / target, str(Path(file).resolve())])
    targets = command.known(parser, options.targets, TARGETS)
    began = time.monotonic()
    programs = build(targets)
    print(f"built in {time.monotonic() - began:.0f} s; {len(targets)} targets, {options.seconds} s each", flush=True)
    report = Report()
    checks = [Check(target, functools.partial(fuzz, programs / target, options.seconds)) for target in targets]
    report.all_at_once(checks, options.jobs)
    runs = sum(number_in(log_of(target), r"^stat::number_of_executed_units: *(\d+)") for target in targets)
    print(f"\nin all: {len(targets)} targets, {runs} inputs run")
    return report.close()


def build(targets: list[str]) -> Path:
    """Builds the programs of these targets; gives their folder."""
    flags = ["--cfg", "fuzzing", "-Cpasses=sancov-module", "-Ccodegen-units=4"]
    options = ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
    flags += [f"-Cllvm-args=-sanitizer-coverage-{option}" for option in options]
    # The workspace's versions of all dependencies.
    lock, workspace_lock = HERE / "Cargo.lock", tools.ROOT / "Cargo.lock"
    if not lock.exists() or lock.stat().st_mtime < workspace_lock.stat().st_mtime:
        shutil.copyfile(workspace_lock, lock)
    # With a target named, build scripts and macros are built without these flags.
    host = tools.run(["rustc", "--print", "host-tuple"]).stdout.strip()
    words = ["--release", "--target", host, "--quiet", "--manifest-path", str(HERE / "Cargo.toml")]
    programs = [word for target in targets for word in ("--bin", target)]
    variables = {"RUSTFLAGS": " ".join(flags), "CARGO_TARGET_DIR": str(tools.TARGET)}
    tools.cargo("build", *words, *programs, env=variables)
    return tools.TARGET / host / "release"


def fuzz(program: Path, seconds: int) -> str:
    """Runs one target; gives its counts."""
    target = program.name
    found, crashes, log = FOUND / target, FOUND / f"{target}.crashes", log_of(target)
    found.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-max_len={INPUT_BYTES_MAX}", f"-timeout={INPUT_S_MAX}"]
    limits += [f"-rss_limit_mb={MEMORY_MIB_MAX}", f"-artifact_prefix={crashes}/", "-print_final_stats=1"]
    with log.open("w") as output:
        status = subprocess.call(
            [program, found, HERE / "corpus" / target, *limits], stdout=output, stderr=subprocess.STDOUT
        )
    if status != 0:
        raise CheckFailed(description_of_crash(program, log.read_text(errors="replace")))
    runs = number_in(log, r"^stat::number_of_executed_units: *(\d+)")
    speed = number_in(log, r"^stat::average_exec_per_sec: *(\d+)")
    edges = number_in(log, r" cov: (\d+) ")
    kept = len(os.listdir(found))
    return f"{runs} inputs run, {speed} /s, {edges} edges, {kept} kept"


def description_of_crash(program: Path, log: str) -> str:
    """The panic and the commands to go on with."""
    written = re.findall(r"Test unit written to (\S+)", log)
    panicked = re.search(r"^.*panicked at.*(?:\n.*){0,2}", log, re.MULTILINE)
    words = [panicked[0] if panicked else "\n".join(log.splitlines()[-5:])]
    if written:
        words += [
            f"again: tests/run fuzz --replay {program.name} {written[-1]}",
            f"smaller: {program} -minimize_crash=1 -max_total_time=60 {written[-1]}",
            f"fixed: keep it as tests/fuzz/corpus/{program.name}/NAME; `cargo test -p tests --test proof fuzzing` runs it",
        ]
    return "\n".join(words)


def log_of(target: str) -> Path:
    """The output of the last run of a target."""
    return FOUND / f"{target}.log"


def number_in(log: Path, pattern: str) -> int:
    """The last number of this kind in a log."""
    found = re.findall(pattern, log.read_text(errors="replace"), re.MULTILINE) if log.exists() else []
    return int(found[-1]) if found else 0


if __name__ == "__main__":
    command.run(main)
