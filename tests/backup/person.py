"""A person with orders, and the texts about them that orders, services and operators bring."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.report import expect, until
from harness.serve import Server, bury
from harness.stub import Answer, Call, Stub

# Longer than a page of the database.
LONG = 700
SETTINGS = """default = "visit"
[agents.clinic]
url = "{url}"
memo = true
call_timeout = "1s"
settles_within = "2s"
[agents.lab]
url = "{url}"
call_timeout = "1s"
settles_within = "2s"
"""
WORKFLOW = """name = "visit"
version = 1
index = ["/Person/Email"]
[[step]]
name = "agree"
kind = "approval"
when = "/Order/Fate exists"
[[step]]
name = "book"
agent = "clinic"
after = ["agree"]
[[step]]
name = "test"
agent = "lab"
after = ["book"]
[[step]]
name = "pay"
agent = "clinic"
after = ["test"]
on_rejected = "hold"
[[step]]
name = "confirm"
kind = "approval"
when = "/Order/Confirm exists"
after = ["pay"]
"""
# What becomes of an order. A held one is resubmitted by a job.
FATES = {"done": "Processed", "declined": "Compensated", "closed": "Closed", "held": "Processed"}
# The lines of a history, beside notes and the first one.
HISTORY_MAX = 50
# All texts about a person that the API shows, and one that only a file has.
PLACES: tuple[str, ...] = ("correlation", "email", "street", "letter", "output", "long-output", "declined", "held")
PLACES += ("note", "taker", "pause", "resume", "approver", "approval", "close", "job", "start", "post", "go", "again")
PLACES += ("lost",)
UNREAD = "unread"


class Services(Stub):
    """Both services. They repeat what they know of the person."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """By the fate of the order."""
        order, (_, step, *undo) = call.order, call.key.split("/")
        tag, fate = order["Tag"], order.get("Fate")
        is_first = call.key not in self.seen
        self.seen.add(call.key)
        if undo:
            return 200, {}
        if (fate, step) == ("declined", "test"):
            return 422, {"code": "declined", "detail": f"{tag}/declined"}
        if step == "pay" and (fate == "closed" or (fate == "held" and is_first)):
            return 422, {"code": "held", "detail": f"{tag}/held"}
        return 200, {"Said": f"{tag}/output", "Long": f"{tag}/long-output " * (LONG // 4)}


class Person:
    """A person with their orders. All texts about them begin with their tag."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        # No escape changes it, neither of JSON nor of a URL.
        self.core = uuid.uuid4().hex
        self.tag = f"{name}-{self.core}"
        self.ids: dict[str, str] = {}
        self.jobs: list[str] = []

    def document(self, **more: object) -> dict[str, Any]:
        """A document about them."""
        person = {"Email": f"{self.tag}/email", "Homes": [{"Street": f"{self.tag}/street"}]}
        known = {"Tag": self.tag, "CorrelationID": f"{self.tag}/correlation", "Person": person}
        return {**known, "Letter": f"{self.tag}/letter " * LONG, **more}

    def act(self, fate: str, action: str, by: str, reason: str, **more: object) -> bool:
        """An operator's command, with a reason about them. Gives whether it is accepted."""
        wish = {"By": by, "Reason": f"{self.tag}/{reason}", **more}
        return self.server.ask("POST", f"/orders/{self.ids[fate]}/{action}", wish)[0] == 202

    def post(self, fate: str) -> str:
        """Posts an order under its key, the first time and later."""
        document, header = self.document(Fate=fate), {"Idempotency-Key": f"{self.core}/key-{fate}"}
        return str(self.server.post("/orders", document, header)["OrderID"])

    def live(self) -> None:
        """Their orders, until services have answered."""
        for fate in FATES:
            self.ids[fate] = self.post(fate)
            self.seen(fate, lambda task: task["Steps"][0]["ProcessState"] == "Processing")
            self.act(fate, "note", f"{self.tag}/taker", "note", Take=True)
            self.act(fate, "pause", "ann", "pause")
            self.seen(fate, lambda task: "Paused" in task and "Taken" in task)
            self.act(fate, "resume", "ann", "resume")
            self.seen(fate, lambda task: "Paused" not in task)
            self.act(fate, "approve", f"{self.tag}/approver", "approval")

    def end(self) -> None:
        """Operators close one, resubmit one by a job, and post one again, by a job and by hand. Then all have ended."""
        for fate in ("closed", "held"):
            self.failed(fate)
        until("the alert is there", lambda: "order/rejected/pay" in str(self.server.get("/alerts")))
        until("no call can have its effect any more", lambda: self.act("closed", "close", "ann", "close"))
        self.reach("closed", "Closed")
        self.work("job", "start", ReasonCode="rejected")
        for fate, state in FATES.items():
            self.reach(fate, state)
        since = self.server.get(f"/orders/{self.ids['declined']}")["History"][0]["At"]
        self.work("post", "go", action="Again", Step="test", FailedSince=since)
        document = f"/orders/{self.ids['declined']}/document"
        self.ids["copy"] = until("it is posted again", lambda: self.server.get(document).get("Again"))
        self.approve("copy", "Compensated")
        wish = {"By": "ann", "Reason": f"{self.tag}/again"}
        self.ids["again"] = self.server.post(f"/orders/{self.ids['copy']}/again", wish)["OrderID"]
        self.approve("again", "Compensated")
        for job in self.jobs:
            self.worked(job)

    def approve(self, fate: str, state: str) -> None:
        """Lets an order that waits go on, to its end."""
        self.seen(fate, lambda task: "Processing" in [task["Steps"][at]["ProcessState"] for at in (0, -1)])
        self.act(fate, "approve", f"{self.tag}/approver", "approval")
        self.reach(fate, state)

    def reach(self, fate: str, state: str) -> None:
        """Waits until an order is in a state."""
        self.seen(fate, lambda task: bool(task["ProcessState"] == state))

    def failed(self, fate: str) -> None:
        """Waits until an order is in Error, and its alert is sent."""
        self.seen(fate, lambda task: task["ProcessState"] == "Error" and task["Watch"].startswith("error"))

    def work(self, reason: str, start: str, action: str = "Resubmit", **selector: str) -> None:
        """A bulk job of an operator, and its start."""
        wish = {"By": "ann", "Reason": f"{self.tag}/{reason}", "Action": action, "Selector": selector}
        job = self.server.post("/bulk", wish)["JobID"]
        self.jobs.append(job)
        until("the job is planned", lambda: "DryRun" in self.server.get(f"/bulk/{job}"))
        self.server.post(f"/bulk/{job}/start", {"By": "ann", "Reason": f"{self.tag}/{start}"})

    def worked(self, job: str) -> None:
        """Waits until a job is over."""
        until("the job is over", lambda: self.server.get(f"/bulk/{job}")["State"] in ("Done", "Stopped"))

    def long(self) -> None:
        """An order that a job resubmitted, with so many lines after it that its history has the job no more."""
        self.ids["held"] = self.server.post("/orders", self.document(Fate="held", Confirm=True))["OrderID"]
        self.seen("held", lambda task: task["Steps"][0]["ProcessState"] == "Processing")
        self.act("held", "approve", "ann", "approval")
        self.failed("held")
        self.work("job", "start", ReasonCode="rejected")
        self.seen("held", lambda task: task["Steps"][-1]["ProcessState"] == "Processing")
        for _ in range(HISTORY_MAX // 2):
            self.act("held", "pause", "ann", "pause")
            self.seen("held", lambda task: "Paused" in task)
            self.act("held", "resume", "ann", "resume")
            self.seen("held", lambda task: "Paused" not in task)
        self.approve("held", "Processed")
        self.worked(self.jobs[0])
        history = self.server.get(f"/orders/{self.ids['held']}")["History"]
        expect(self.jobs[0] not in str(history), f"the history still has the job: {history}")

    def seen(self, fate: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """One of the orders, as soon as a condition holds."""
        return self.server.seen(self.ids[fate], holds)

    def bury(self, data: Path) -> None:
        """Puts dead letters about an order into the data of a stopped server: a lost command, and one that is none."""
        wish = {"OrderID": self.ids["done"], "Action": "Note", "By": "ann", "Reason": f"{self.tag}/lost", "CommandID": "1"}
        bodies = [wish, {**wish, "Action": f"{self.tag}/{UNREAD}"}]
        bury(data, [json.dumps({"Command": body}) for body in bodies])

    def prints(self) -> list[bytes]:
        """Hashes by which they are found, or guessed: the terms of the index, the fingerprint of a document."""
        texts = [("CorrelationID", f"{self.tag}/correlation"), ("/Person/Email", f"{self.tag}/email")]
        hashed = [len(name).to_bytes(8, "big") + (name + text).encode() for name, text in texts]
        document = json.dumps(self.document(Fate="done"), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        terms = [hashlib.sha256(bytes_).hexdigest()[:32] for bytes_ in hashed]
        return [text.encode() for text in (*terms, hashlib.sha256(document.encode()).hexdigest())]

    def traces(self, text: bytes) -> list[str]:
        """Where a text has anything of them, in whatever encoding."""
        found = [(text.find(form), form) for form in (*forms(self.core), *self.prints())]
        return [f"{form!r} at {at}: {text[max(0, at - 200) : at + 200]!r}" for at, form in found if at >= 0]


def forms(text: str) -> Iterator[bytes]:
    """A text in UTF-8, UTF-16, hexadecimal and base64. In base64 it has three forms, by the bytes before it."""
    plain = text.encode()
    yield from (plain, text.encode("utf-16-le"), text.encode("utf-16-be"))
    yield from (plain.hex().encode(), plain.hex().upper().encode())
    for before in range(3):
        whole = (before + len(plain)) // 3 * 4
        yield base64.b64encode(bytes(before) + plain)[(0, 2, 3)[before] : whole]


def coded(text: str) -> list[bytes]:
    """A text within others, in encodings."""
    texts = [f"{'x' * before}{text}x" for before in range(3)]
    whole = [(one.encode(), one.encode("utf-16-le"), one.encode("utf-16-be")) for one in texts]
    return [one for plain, *wide in whole for one in (plain, *wide, plain.hex().encode(), base64.b64encode(plain))]
