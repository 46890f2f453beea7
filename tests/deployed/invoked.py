"""The API's function, called with requests that no client library sends."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attacks.wire import Raw, get, post
from harness.deployment import USER
from harness.report import expect, until
from world import World

# Its roles are all that there are.
EVERYBODY = f"{USER}everybody"
TICKS = os.sysconf("SC_CLK_TCK")


class Invoked:
    """Calls the function with the event that its gateway makes of a request. The gateway itself would refuse some."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = world.deployment.function("api")

    def ask(self, request: bytes) -> Raw:
        """The answer to a request in its bytes."""
        answer = self.world.lambdas.invoke(FunctionName=self.name, Payload=json.dumps(event(request)).encode())
        said = json.loads(answer["Payload"].read())
        expect("FunctionError" not in answer, f"{request[:200]!r}: {said}")
        headers = "".join(f"{name}: {value}\r\n" for name, value in said.get("headers", {}).items())
        return Raw(said["statusCode"], f"HTTP/1.1 {said['statusCode']} \r\n{headers}\r\n{said.get('body', '')}")

    def order(self, wait: bool = True, key: str | None = None, **document: object) -> dict[str, Any]:
        """Posts an order, and waits until it is settled or, without `wait`, only until it is stored."""
        answer = self.ask(post("/orders", json.dumps(document), *([f"Idempotency-Key: {key}"] if key else [])))
        expect(answer.status == 202, f"POST /orders: {answer.status} {answer.body}")
        settled = ("Processed", "Compensated", "Error")
        return self.seen(answer.document["OrderID"], lambda task: not wait or task["ProcessState"] in settled)

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, as soon as a condition holds."""

        def look() -> dict[str, Any] | None:
            answer = self.ask(get(f"/orders/{order_id}"))
            if answer.status == 404:
                return None
            expect(answer.status == 200, f"GET /orders/{order_id}: {answer.status} {answer.body}")
            task: dict[str, Any] = answer.document
            return task if holds(task) else None

        return until(f"order {order_id} is as expected", look)

    def get(self, path: str) -> Any:
        """GET of a JSON document. Any other status than 2xx fails the check."""
        answer = self.ask(get(path))
        expect(200 <= answer.status < 300, f"GET {path}: {answer.status} {answer.body}")
        return answer.document

    def cpu_ms(self) -> float:
        """The CPU time so far of the processes that run the function."""
        ticks = 0
        for process in self.world.deployment.emulator.function_processes(self.name):
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks * 1000 / TICKS


def event(request: bytes) -> dict[str, Any]:
    """Payload format 2.0: a header that comes twice is one, and a body may have any bytes."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    for name, _, value in (one.partition(":") for one in lines):
        headers[name.lower()] = ",".join([*filter(None, [headers.get(name.lower())]), value.strip()])
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": {"iam": {"userArn": EVERYBODY}},
            "timeEpoch": int(time.time() * 1000),
        },
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }
