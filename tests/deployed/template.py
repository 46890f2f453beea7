"""The template before it is deployed: linters, policy scan, and the size of the functions."""

from __future__ import annotations

import json
import os
import re
from types import SimpleNamespace

from harness.deployment import BUILD, TEMPLATE, architecture, sam_deploy, sam_environment
from harness.emulator import REGION, Emulator
from harness.report import CheckFailed, expect, expect_equal
from harness.tools import ROOT, ToolError, program, run
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

TEMPLATES = [str(TEMPLATE), *map(str, sorted((ROOT / "infra").glob("*.yaml")))]

# Largest program of a function, unzipped: a larger one starts more slowly.
BOOTSTRAP_BYTES_MAX = 10 * 1024 * 1024


def validate() -> None:
    """`sam validate --lint`."""
    run([program("sam", "sam"), "validate", "--lint", "--template", str(TEMPLATE)], env=sam_environment())


def cfn_lint() -> None:
    """`cfn-lint` on the template and those nested in it."""
    run([program("sam", "cfn-lint"), "--regions", REGION, "--", *TEMPLATES], env=sam_environment())


def checkov() -> None:
    """`checkov`, with the exceptions in `.checkov.yaml`."""
    command = [program("checkov", "checkov"), "--framework", "cloudformation", "--skip-download", "--compact"]
    for template in TEMPLATES:
        command += ["--file", template]
    run([*command, "--quiet"])


def codedeploy_is_asked_for() -> None:
    """All at once needs nothing of CodeDeploy, and a gradual shift a group for each function but the stand-ins."""
    os.environ.setdefault("AWS_DEFAULT_REGION", REGION)
    for shift, groups in (("AllAtOnce", 0), ("Canary10Percent10Minutes", 5)):
        document = yaml_parse(re.sub(r"CodeUri: .*", "CodeUri: s3://bucket/key", TEMPLATE.read_text()))
        made = transform(document, {"Shift": shift}, SimpleNamespace(load=dict))["Resources"].values()
        kinds = [resource["Type"] for resource in made if "CodeDeploy" in json.dumps(resource)]
        expect_equal(f"groups with {shift}", kinds.count("AWS::CodeDeploy::DeploymentGroup"), groups)
        expect(groups > 0 or not kinds, f"{shift} makes {kinds}")


def services_are_needed(emulator: Emulator) -> None:
    """Who names neither services nor stand-ins is told what to do, before anything is made."""
    parameters = {"Architecture": architecture(), "EmulatorUrl": emulator.url}
    try:
        sam_deploy(emulator, "forgotten", parameters)
    except ToolError as refused:
        said = " ".join(str(refused).split())
        expect("StandIns=true" in said and "InventoryUrl" in said, f"it says what to do: {said[-1000:]}")
        return
    raise CheckFailed("it was deployed, and no service would be called")


def sizes() -> None:
    """Every function has a program, and none is too large."""
    programs = {program.parent.name: program.stat().st_size for program in BUILD.glob("*/bootstrap")}
    expect(len(programs) >= 5, f"programs of 5 functions at least, found {sorted(programs)}")
    large = {name: size for name, size in programs.items() if size > BOOTSTRAP_BYTES_MAX}
    expect(not large, f"larger than {BOOTSTRAP_BYTES_MAX} bytes: {large}")
