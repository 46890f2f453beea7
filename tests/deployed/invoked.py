"""The API's function, called with requests that no client library sends."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from attacks.wire import Raw, get, post
from harness.deployment import USER, Deployment, client
from harness.report import expect, until
from harness.serve import cpu_ms

# A caller that signs, and whose roles are all that there are.
EVERYBODY = {"iam": {"userArn": f"{USER}everybody"}}


class Invoked:
    """Calls the function with the event that its gateway makes of a request."""

    # A path is matched as it was sent, and handed on decoded.
    decodes = True

    def __init__(self, deployment: Deployment) -> None:
        self.emulator = deployment.emulator
        self.lambdas = client(deployment.emulator, "lambda")
        self.name, self.live = deployment.function("api"), deployment.live("api")
        # What the gateway knows of the caller.
        self.authorizer: dict[str, Any] | None = EVERYBODY
        gateway = client(deployment.emulator, "apigatewayv2")
        pages = gateway.get_paginator("get_routes").paginate(ApiId=deployment.api_id)
        # By their keys, such as `GET /orders/{id}`.
        self.routes: dict[str, dict[str, Any]] = {route["RouteKey"]: route for page in pages for route in page["Items"]}

    def ask(self, request: bytes) -> Raw:
        """The answer to a request in its bytes."""
        payload = self.event(request)
        if payload is None:
            return Raw(404, "HTTP/1.1 404 \r\n\r\n")
        answer = self.lambdas.invoke(FunctionName=self.live, Payload=json.dumps(payload).encode())
        said = json.loads(answer["Payload"].read())
        expect("FunctionError" not in answer, f"{request[:200]!r}: {said}")
        headers = "".join(f"{name}: {value}\r\n" for name, value in said.get("headers", {}).items())
        return Raw(said["statusCode"], f"HTTP/1.1 {said['statusCode']} \r\n{headers}\r\n{said.get('body', '')}")

    def order(self, wait: bool = True, key: str | None = None, **document: object) -> dict[str, Any]:
        """Posts an order, and waits until it is settled or, without `wait`, only until it is stored."""
        request = post("/orders", json.dumps(document), *([f"Idempotency-Key: {key}"] if key else []))

        def answered() -> Raw | None:
            answer = self.ask(request)
            return None if answer.status == 503 else answer

        answer = until("POST /orders has another answer than 503", answered)
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

    def cpu_ms(self, calls: Callable[[], None]) -> float:
        """The CPU time that the processes of the function need for calls. Looked at again where a process came or went."""

        def look() -> dict[int, float]:
            found = {}
            for process in self.emulator.function_processes(self.name):
                with contextlib.suppress(OSError):
                    found[process.pid] = cpu_ms(process.pid)
            return found

        def measured() -> tuple[float] | None:
            before = look()
            calls()
            after = look()
            return (sum(after.values()) - sum(before.values()),) if before.keys() == after.keys() else None

        return until("the same processes before and after", measured)[0]

    def event(self, request: bytes) -> dict[str, Any] | None:
        """Payload format 2.0: a header that comes twice is one. Nothing where there is no route."""
        head, _, body = request.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ")
        path, _, query = target.partition("?")
        found = self.route(method, path)
        if found is None:
            return None
        headers: dict[str, str] = {}
        for name, _, value in (one.partition(":") for one in lines):
            headers[name.lower()] = ",".join([*filter(None, [headers.get(name.lower())]), value.strip()])
        try:
            text, is_binary = body.decode(), False
        except UnicodeDecodeError:
            text, is_binary = base64.b64encode(body).decode(), True
        # What follows a decoded question mark is cut off.
        raw_path = unquote(path).partition("?")[0]
        return {
            "version": "2.0",
            "routeKey": found[0],
            "rawPath": raw_path,
            "rawQueryString": query,
            "pathParameters": found[1],
            "headers": headers,
            "requestContext": {
                "http": {"method": method, "path": raw_path},
                "routeKey": found[0],
                "stage": "$default",
                **({"authorizer": self.authorizer} if self.authorizer else {}),
                "timeEpoch": int(time.time() * 1000),
            },
            "body": text,
            "isBase64Encoded": is_binary,
        }

    def route(self, method: str, path: str) -> tuple[str, dict[str, str]] | None:
        """The route of a call with the parts that it does not name; of several the one that names most."""
        segments = path.split("/")
        fitting = []
        for key in self.routes:
            of, _, template = key.partition(" ")
            parts = template.split("/")
            pairs = list(zip(parts, segments, strict=False))
            if of == method and len(parts) == len(segments) and all(p[:1] == "{" or p == s for p, s in pairs):
                named = {part[1:-1]: unquote(segment) for part, segment in pairs if part[:1] == "{"}
                fitting.append((len(named), key, named))
        return min(fitting, key=lambda one: one[0])[1:] if fitting else None
