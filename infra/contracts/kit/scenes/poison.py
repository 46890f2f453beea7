"""Messages that no agent can read: they must hurt nobody, and end in the dead-letter queue, where they are settled."""

from __future__ import annotations

import json
import uuid
from typing import Any

from ..scene import When, scene
from ..stage import PATIENCE_S, Stage

REQUIRED = ("OrderID", "Step", "Direction", "Attempt", "IdempotencyKey", "CompleteBy", "BudgetMs", "Order")
WRONG: dict[str, dict[str, Any]] = {
    "an unknown Direction": {"Direction": "Sideways"},
    "an Attempt that is a text": {"Attempt": "1"},
    "an Attempt below 0": {"Attempt": -1},
    "a CompleteBy that is no time": {"CompleteBy": "tomorrow"},
    "a BudgetMs that is a text": {"BudgetMs": "20000"},
    "an IdempotencyKey that is a number": {"IdempotencyKey": 4711},
    "an OrderID that is none": {"OrderID": 4711},
    "Outputs that are a list": {"Outputs": []},
}


@scene(When.CALM)
def poison(stage: Stage) -> None:
    """Malformed messages are left for the dead-letter queue, and the agent goes on."""
    bodies = {
        "text that is no JSON": '{"OrderID": ',
        "JSON that is no object": "[1, 2, 3]",
        "300 KiB of rubbish": json.dumps({"OrderID": str(uuid.uuid4()), "Rubbish": "x" * 300_000}),
    }
    malformed = {f"a request without {name}": (name, None) for name in REQUIRED}
    about: dict[str, str] = {}
    for what, (name, _) in malformed.items():
        request = stage.request()
        about[what] = request["OrderID"]
        del request[name]
        bodies[what] = json.dumps(request)
    for what, members in WRONG.items():
        request = stage.request()
        about[what] = request["OrderID"]
        bodies[what] = json.dumps({**request, **members})
    for what, body in bodies.items():
        stage.send_poison(what, body)
    good = stage.request()
    stage.send(good)
    stage.expect(good, "Done")

    def look() -> None:
        for what, order_id in about.items():
            if stage.service.calls(order_id):
                stage.fault(f"the service was called for {what}")
            if stage.inbox.replies(order_id):
                stage.fault(f"a reply was sent to {what}")

    stage.at_the_end(look)


@scene(When.CALM)
def poison_in_a_batch(stage: Stage) -> None:
    """Of ten messages sent together one is malformed: the other nine are answered, once."""
    requests = [stage.request() for _ in range(9)]
    bodies = [json.dumps(request) for request in requests]
    stage.sent += requests
    ids = stage.requests.send_batch([*bodies[:4], "{nonsense", *bodies[4:]])
    stage.poison[ids.pop(4)] = "the malformed one of ten"
    stage.messages |= {message_id: f"no. {n} of nine good ones" for n, message_id in enumerate(ids, 1)}
    stage.wait(lambda: all(stage.replies(request) for request in requests), PATIENCE_S)
    for request in requests:
        stage.expect(request, "Done", within_s=0)

    def look() -> None:
        # Those that came with it must not come back with it.
        if any(len(stage.replies(request)) > 1 for request in requests):
            stage.fault("a good message was handled again, because it came with a bad one")

    stage.at_the_end(look)
