"""The template before it is deployed: linters, policy scan, and the build of the functions."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from emulator import REGION
from report import expect, expect_equal
from tools import ROOT, Tools, run

TEMPLATE = ROOT / "template.yaml"
BUILD = ROOT / ".aws-sam" / "build"
ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}

# A function's program may not be larger than this, unzipped: what is larger starts more slowly.
BOOTSTRAP_BYTES_MAX = 9 * 1024 * 1024
# Functions that pass an order on to each other. The platform cuts such a chain after about 16 invocations, unless told
# not to.
IN_THE_CHAIN = ["Inventory", "Payment", "Scheduler", "Shipping"]


def architecture() -> str:
    """The platform's name for this machine's processor."""
    return ARCHITECTURES[platform.machine().lower()]


def sam_environment(tools: Tools) -> dict[str, str]:
    """For `sam` and what it starts: its own tools first, all caches in the build's folder."""
    return {
        "PATH": f"{tools.sam / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAM_CLI_TELEMETRY": "0",
        "CARGO_ZIGBUILD_CACHE_DIR": str(ROOT / "target" / "zigbuild"),
    }


def validate(tools: Tools) -> None:
    """`sam validate --lint`."""
    run([str(tools.sam / "bin" / "sam"), "validate", "--lint", "--template", str(TEMPLATE)], env=sam_environment(tools))


def cfn_lint(tools: Tools) -> None:
    """`cfn-lint` on the template and those nested in it."""
    templates = [str(TEMPLATE), *map(str, sorted((ROOT / "infra").glob("*.yaml")))]
    run([str(tools.sam / "bin" / "cfn-lint"), "--regions", REGION, "--", *templates], env=sam_environment(tools))


def checkov(tools: Tools) -> None:
    """`checkov`, which fails on what is neither right nor excused with a reason."""
    command = [str(tools.checkov / "bin" / "checkov"), "--framework", "cloudformation", "--skip-download", "--compact"]
    for template in [TEMPLATE, *sorted((ROOT / "infra").glob("*.yaml"))]:
        command += ["--file", str(template)]
    run([*command, "--quiet"])


def loops_are_allowed() -> None:
    """The spelling matters and no linter knows it: with any other word the platform cuts long orders short."""
    allowed, resource = set(), ""
    for line in TEMPLATE.read_text().splitlines():
        if found := re.fullmatch(r"  (\w+):", line):
            resource = found[1]
        elif line.strip().startswith("RecursiveLoop"):
            expect_equal(f"{resource} says", line.strip(), "RecursiveLoop: Allow")
            allowed.add(resource)
    expect(allowed.issuperset(IN_THE_CHAIN), f"without RecursiveLoop: {sorted(set(IN_THE_CHAIN) - allowed)}")


def build(tools: Tools) -> None:
    """`sam build` for this machine's processor."""
    command = [str(tools.sam / "bin" / "sam"), "build", "--template", str(TEMPLATE)]
    run([*command, "--parameter-overrides", f"Architecture={architecture()}"], env=sam_environment(tools))


def sizes() -> None:
    """Every function has a program, and none is too large."""
    programs = {program.parent.name: program.stat().st_size for program in BUILD.glob("*/bootstrap")}
    expect(len(programs) >= 7, f"programs of 7 functions at least, found {sorted(programs)}")
    large = {name: size for name, size in programs.items() if size > BOOTSTRAP_BYTES_MAX}
    expect(not large, f"larger than {BOOTSTRAP_BYTES_MAX} bytes: {large}")


def built_template() -> Path:
    """What `sam build` left to deploy."""
    return BUILD / "template.yaml"
