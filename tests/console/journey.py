"""The example of a journey, with its days made seconds, and its services: one tells the hotel's result later."""

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

from harness import tools
from harness.serve import Server, successful
from harness.stub import Answer, Call, Stub

EXAMPLE = tools.ROOT / "infra" / "examples" / "parallel"
CONFIRMED_AFTER_S = 0.5


class Bookings(Stub):
    """Plays every agent of the example. It takes a hotel on with a 202, and posts the result to the call's address."""

    def answer(self, call: Call) -> Answer:
        """At once, but for the hotel."""
        address = call.headers.get("Callback-Url")
        if address and json.loads(call.body).get("kind") == "hotel" and call.path.endswith("/book"):
            result = {"Outcome": "Done", "Output": {"booking": "H-1"}}
            threading.Timer(CONFIRMED_AFTER_S, successful, ["POST", address, result]).start()
            return 202, {}
        return 200, {"booking": "B-1", "payment": "P-1"}


def folder(into: Path, bookings: Bookings, decided_within: str) -> Path:
    """A copy of the example: its services are one here, and a day is a second; a decision is awaited for this time."""
    shutil.copytree(EXAMPLE, into)
    settings = into / "stepwarden.toml"
    settings.write_text(re.sub(r'url = "http://localhost:\d+"', f'url = "{bookings.url}"', settings.read_text()))
    [workflow] = (into / "workflows").glob("*.toml")
    text = workflow.read_text().replace('wait_within = "3d"', f'wait_within = "{decided_within}"')
    text = re.sub(r'wait_within = "(\d+)d"', r'wait_within = "\1s"', text).replace('wait = "10s"', 'wait = "1s"')
    workflow.write_text(text)
    return into


def asked(server: Server) -> dict[str, Any]:
    """A journey that waits for an approval."""
    order = json.loads((EXAMPLE / "order.json").read_text())
    posted = server.order(wait=False, **{**order, "Total": 1_200, "Customer": "Ada Lovelace"})
    return server.seen(posted["OrderID"], lambda task: "approve" in task.get("Actions", []))
