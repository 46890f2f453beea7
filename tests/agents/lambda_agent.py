"""The shipped agent as a function of the emulator, on the kit's queues: the binary that is deployed, held to the same.

    lambda_agent.py BINARY --requests URL --replies URL --replies-high URL --service URL

Ends when it is ended; the emulator runs the function.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import zipfile
from pathlib import Path
from typing import Any

import boto3

ROLE = "arn:aws:iam::000000000000:role/agent"
# The queue hides a message for no longer than this, and what the function needs may not take longer.
TIMEOUT_S = 7
TEMPLATE = Path(__file__).parents[2] / "template.yaml"
TABLES = {
    "TASKS_TABLE": ["OrderID"],
    "SERVICES_TABLE": ["Service"],
    "MEMOS_TABLE": ["Key"],
    "DEFINITIONS_TABLE": ["Kind", "Key"],
}


def main() -> None:
    """Makes the function, its tables and its event source, and waits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    for name in ("requests", "replies", "replies-high", "service"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    prefix = options.requests.rsplit("/", 1)[1]
    environment = variables(options, prefix)
    make_tables(environment)
    functions = boto3.client("lambda")
    functions.create_function(
        FunctionName=f"{prefix}-function",
        Runtime="provided.al2023",
        Handler="bootstrap",
        Role=ROLE,
        Timeout=TIMEOUT_S,
        Code={"ZipFile": package(options.binary)},
        Environment={"Variables": environment},
    )
    functions.create_event_source_mapping(
        FunctionName=f"{prefix}-function",
        EventSourceArn=arn_of(options.requests),
        BatchSize=10,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 10},
    )
    print("serves", flush=True)
    signal.pause()


def package(binary: Path) -> bytes:
    """The archive that Lambda takes."""
    archive = io.BytesIO()
    entry = zipfile.ZipInfo("bootstrap")
    entry.external_attr = 0o755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w", compresslevel=1) as content:
        content.writestr(entry, binary.read_bytes())
    return archive.getvalue()


def arn_of(queue: str) -> str:
    """The name that an event source knows a queue by."""
    attributes: dict[str, Any] = boto3.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    return str(attributes["Attributes"]["QueueArn"])


def make_tables(environment: dict[str, str]) -> None:
    """The tables that an agent uses."""
    tables = boto3.client("dynamodb")
    for variable, keys in TABLES.items():
        tables.create_table(
            TableName=environment[variable],
            KeySchema=[
                {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            BillingMode="PAY_PER_REQUEST",
        )


def variables(options: argparse.Namespace, prefix: str) -> dict[str, str]:
    """What the template tells the agent for payment."""
    tables = re.findall(r"^ +([A-Z_]+)_TABLE: ", TEMPLATE.read_text(), re.MULTILINE)
    unused = f"{options.requests}-unused"
    return {
        **{f"{name}_TABLE": f"{prefix}-{name.lower()}" for name in tables},
        "SUBMISSION_QUEUE_URL": f"{unused}-1",
        "SUBMISSION_HIGH_QUEUE_URL": f"{unused}-2",
        "SCHEDULER_QUEUE_URL": options.replies,
        "SCHEDULER_HIGH_QUEUE_URL": options.replies_high,
        "AGENTS_QUEUE_URL": options.requests,
        "AGENTS_HIGH_QUEUE_URL": unused,
        "EVENT_BUS_NAME": "unused",
        "REPLY_CHANNELS": "{}",
        "SHARDS": "16",
        "RUST_LOG": "info",
        "METRICS_NAMESPACE": "Stepwarden/agents",
        "AGENT_MEMO": "false",
        "PAYMENT_URL": options.service,
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
    }


if __name__ == "__main__":
    main()
