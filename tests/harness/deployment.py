"""`sam build` and `sam deploy` to the emulator, and the queues, tables and functions of the stack."""

from __future__ import annotations

import json
import os
import platform
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from harness.emulator import ACCOUNT, REGION, ROOT_KEYS, Emulator, client_environment
from harness.tools import ROOT, program, run

TEMPLATE = ROOT / "template.yaml"
BUILD = ROOT / ".aws-sam" / "build"
PROGRAMS = ("api", "submission", "scheduler", "agents", "supervisor", "standins")
ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}

STACK = "stepwarden"
ALIAS = "live"
CHANNEL = "shop"
# The outputs with the policies that a caller may have.
POLICIES = ("ApplicationPolicyArn", "OperatorPolicyArn", "AdministratorPolicyArn")
# Before the name of a user of the account.
USER = f"arn:aws:iam::{ACCOUNT}:user/"
# The roles of the users that the tests make. Those of `everybody-…` have all.
APPLICATION, OPERATOR = ["application"], ["operator", "approver", "administrator"]
EVERYTHING = [*APPLICATION, "viewer", *OPERATOR]
ROLES = {
    f"{USER}application": APPLICATION,
    f"{USER}other-application": APPLICATION,
    f"{USER}operator": OPERATOR,
    f"{USER}administrator": OPERATOR,
    **{f"{USER}everybody-by-{policy}": EVERYTHING for policy in POLICIES},
    f"arn:aws:iam::{ACCOUNT}:root": OPERATOR,
}

CLIENT = Config(max_pool_connections=64, retries={"max_attempts": 3}, connect_timeout=5, read_timeout=90)
SESSION = boto3.Session(region_name=REGION)
MAKING = threading.Lock()


@dataclass(frozen=True)
class Deployment:
    """A deployed stack."""

    emulator: Emulator
    outputs: dict[str, str]
    api_id: str
    channel_url: str

    def function(self, name: str) -> str:
        """The deployed name of a function, from the last part of it."""
        return f"{STACK}-{name}"

    def live(self, name: str) -> str:
        """What calls of a function go to: its alias."""
        return f"{self.function(name)}:{ALIAS}"

    def queue(self, name: str, lane: str = "normal") -> str:
        """The URL of a queue: `queue("agents", "high")`, `queue("scheduler", "dead")`."""
        suffix = {"normal": "QueueUrl", "high": "HighQueueUrl", "dead": "DeadLettersUrl"}[lane]
        return self.outputs[f"{name.capitalize()}{suffix}"]

    def table(self, name: str) -> str:
        """The deployed name of a table: `table("Tasks")`."""
        return self.outputs[f"{name}TableName"]

    @property
    def api_url(self) -> str:
        """The base URL of the HTTP API on the emulator."""
        return f"{self.emulator.url}/_aws/execute-api/{self.api_id}/$default"


def client(emulator: Emulator, service: str, environment: dict[str, str] = ROOT_KEYS) -> Any:
    """A client with the keys in an environment, by default those that may do everything."""
    # Clients are shared by threads, but not their making.
    with MAKING:
        return SESSION.client(
            service,
            endpoint_url=emulator.url,
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=environment.get("AWS_SESSION_TOKEN"),
            config=CLIENT,
        )


def build(
    folder: Path = ROOT, *, into: Path | None = None, processor: str | None = None, env: dict[str, str] | None = None
) -> None:
    """`sam build` of the functions in a checkout, for this machine's processor unless another is named."""
    processor, env = processor or architecture(), {**sam_environment(), **(env or {})}
    # It builds one program after the other, each on one core at its end. So all are built before it, at once.
    command = [program("sam", "cargo-lambda"), "lambda", "build", "--release"]
    command += ["--arm64"] if processor == "arm64" else []
    command += [word for name in PROGRAMS for word in ("--package", name)]
    run(command, env=env, cwd=folder, within_s=3600)
    command = [program("sam", "sam"), "build", "--template", str(folder / TEMPLATE.name)]
    command += ["--build-dir", str(into or built_template(folder).parent)]
    run([*command, "--parameter-overrides", f"Architecture={processor}"], env=env, cwd=folder)


def built_template(folder: Path = ROOT) -> Path:
    """The template that `sam build` leaves for the deployment."""
    return folder / BUILD.relative_to(ROOT) / "template.yaml"


def deploy(
    emulator: Emulator, template: Path | None = None, others: dict[str, str] | None = None
) -> Deployment:
    """`sam deploy` of the last build, or of the built template of another version, with stand-ins and one
    registered reply channel, and with these other parameters."""
    channel_url, channel_arn = make_queue(emulator, "shop-orders")
    # The emulator's root is the doctor.
    text = (template or built_template()).read_text()
    of_this_version = {"IamRoles": json.dumps(ROLES, separators=(",", ":"))} if "IamRoles:" in text else {}
    parameters = {
        **of_this_version,
        "Architecture": architecture(),
        "EmulatorUrl": emulator.url,
        "StandIns": "true",
        "ReplyChannels": json.dumps({CHANNEL: channel_url}, separators=(",", ":")),
        "ReplyChannelQueueArns": channel_arn,
        **(others or {}),
    }
    sam_deploy(emulator, STACK, parameters, template)
    stacks = client(emulator, "cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stacks[0]["Outputs"]}
    resource = client(emulator, "cloudformation").describe_stack_resource(StackName=STACK, LogicalResourceId="HttpApi")
    return Deployment(emulator, outputs, resource["StackResourceDetail"]["PhysicalResourceId"], channel_url)


def sam_deploy(emulator: Emulator, stack: str, parameters: dict[str, str], template: Path | None = None) -> None:
    """`sam deploy` of the last build, or of this template, with these parameters alone. Raises ToolError with its output
    where it is refused."""
    command = [program("sam", "sam"), "deploy", "--template-file", str(template or built_template())]
    command += ["--stack-name", stack, "--resolve-s3", "--no-confirm-changeset", "--no-fail-on-empty-changeset"]
    command += ["--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
    command += ["--parameter-overrides", *(f"{name}={quoted(value)}" for name, value in parameters.items())]
    run(command, env={**sam_environment(), **client_environment(emulator.url)}, within_s=300)


def architecture() -> str:
    """The platform's name for this machine's processor."""
    return ARCHITECTURES[platform.machine().lower()]


def sam_environment() -> dict[str, str]:
    """Variables for `sam` and its children: its own tools first, all caches in the build's folder."""
    return {
        "PATH": f"{Path(program('sam', 'sam')).parent}{os.pathsep}{os.environ['PATH']}",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAM_CLI_TELEMETRY": "0",
        "CARGO_ZIGBUILD_CACHE_DIR": str(ROOT / "target" / "zigbuild"),
    }


def quoted(value: str) -> str:
    """A parameter's value as `sam` reads it."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def make_queue(emulator: Emulator, name: str) -> tuple[str, str]:
    """A queue of the tests' own; its URL and its ARN."""
    sqs = client(emulator, "sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return url, arn
