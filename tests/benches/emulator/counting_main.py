"""The emulator with a meter: what the functions ask of DynamoDB, SQS and the event bus, and the batches that they are
given, is counted and written to `counts.json` in the emulator's folder. Started as `emulator_main.py` is, which it goes
on in.

Requests of the bench itself, which uses the account's root key, are not counted, nor are those of the stand-ins for the
remote services.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# The emulator's process gets no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness import emulator_main  # noqa: E402

Handler = Callable[[str, str, dict[str, str], bytes, dict[str, Any]], Awaitable[tuple[Any, ...]]]
READS = {"GetItem", "BatchGetItem", "Query", "Scan"}
COUNTS: dict[str, float] = {}
LOCK = threading.Lock()
WRITE_EVERY_S = 0.1
# The table of the stand-ins for the remote services, which are not part of what is billed.
STAND_INS = b"StandInsTable"


def add(counts: dict[str, float]) -> None:
    """Counts."""
    with LOCK:
        for name, count in counts.items():
            COUNTS[name] = COUNTS.get(name, 0) + count


def is_root(headers: dict[str, str]) -> bool:
    """Whether the request is one of the tests' own."""
    return "Credential=test/" in headers.get("authorization", "")


def metered_dynamodb(handle: Handler) -> Handler:
    """Asks for the units of each request, and counts them."""

    async def metered(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> tuple[Any, ...]:
        action = headers.get("x-amz-target", "").split(".")[-1]
        if is_root(headers) or STAND_INS in body or not body:
            return await handle(method, path, headers, body, query)
        asked = json.dumps({**json.loads(body), "ReturnConsumedCapacity": "TOTAL"}).encode()
        answer = await handle(method, path, headers, asked, query)
        try:
            told = json.loads(answer[2]).get("ConsumedCapacity", [])
        except ValueError:
            told = []
        units = sum(one.get("CapacityUnits", 0.0) for one in (told if isinstance(told, list) else [told]))
        add({"read_units" if action in READS else "write_units": units, f"dynamodb {action}": 1})
        return answer

    return metered


def metered_sqs(handle: Handler) -> Handler:
    """Counts requests and messages."""

    async def metered(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> tuple[Any, ...]:
        action = headers.get("x-amz-target", "").split(".")[-1]
        if not is_root(headers) and action:
            entries = json.loads(body).get("Entries", [1]) if body else []
            add({"sqs_requests": 1, "messages": len(entries) if action.startswith("SendMessage") else 0})
        return await handle(method, path, headers, body, query)

    return metered


def metered_events(handle: Handler) -> Handler:
    """Counts events."""

    async def metered(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> tuple[Any, ...]:
        if not is_root(headers) and headers.get("x-amz-target", "").endswith(".PutEvents"):
            add({"events": len(json.loads(body).get("Entries", []))})
        return await handle(method, path, headers, body, query)

    return metered


def meter_batches(sqs: Any) -> None:
    """A batch that a function is given is one receive, one invocation and one delete."""
    receive = sqs._receive_messages_for_esm

    def received(queue_url: str, max_number: int) -> list[dict[str, Any]]:
        batch: list[dict[str, Any]] = receive(queue_url, max_number)
        if batch:
            add({"batches": 1, "sqs_requests": 2, "batched_messages": len(batch)})
        return batch

    sqs._receive_messages_for_esm = received


def write_counts() -> None:
    """Writes what was counted, again and again."""
    file = Path(os.getcwd()) / "counts.json"
    while True:
        with LOCK:
            text = json.dumps(COUNTS)
        whole = file.with_suffix(".new")
        whole.write_text(text)
        whole.replace(file)
        time.sleep(WRITE_EVERY_S)


def main() -> None:
    """Puts the meter in before the emulator takes its handlers."""
    from ministack.services import dynamodb, eventbridge, sqs

    dynamodb.handle_request = metered_dynamodb(dynamodb.handle_request)
    sqs.handle_request = metered_sqs(sqs.handle_request)
    eventbridge.handle_request = metered_events(eventbridge.handle_request)
    meter_batches(sqs)
    threading.Thread(target=write_counts, daemon=True).start()
    emulator_main.main()


if __name__ == "__main__":
    main()
