"""What holds in every scene: for each call and each reply, whatever the scene is about."""

from __future__ import annotations

import json

from .contract import OUTPUT_BYTES_MAX
from .inbox import Reply
from .service import Call
from .stage import Request, Stage, shown, time_of, whose

# Clocks of queue, kit and agent may differ, and a busy machine holds up what was started in time: by so many seconds.
TOLERANCE_S = 1.0


def hold(stage: Stage) -> None:
    """Finds what breaks the rules in all that happened to the scene's orders."""
    for order_id in {request["OrderID"]: None for request in stage.sent}:
        requests = [request for request in stage.sent if request["OrderID"] == order_id]
        for call in stage.service.calls(order_id):
            _call(stage, call, requests)
        for reply in stage.inbox.replies(order_id):
            _reply(stage, reply, requests)


def _call(stage: Stage, call: Call, requests: list[Request]) -> None:
    keys = {request["IdempotencyKey"] for request in requests}
    if call.key is None:
        stage.fault("a call came without the header Idempotency-Key")
    elif call.key not in keys:
        stage.fault(f"a call came with the key {shown(call.key)}, where the request said {' or '.join(sorted(keys))}")
    deadlines = [time_of(request["CompleteBy"]) for request in requests]
    if call.at > max(deadlines) + TOLERANCE_S:
        stage.fault(f"a call was started {call.at - max(deadlines):.1f} s after CompleteBy")


def _reply(stage: Stage, reply: Reply, requests: list[Request]) -> None:
    stage.is_well_formed(reply)
    named = {name: reply.member(name) for name in ("Step", "Direction", "Attempt")}
    asked = [request for request in requests if all(request[name] == value for name, value in named.items())]
    if not asked:
        stage.fault(f"a reply says {shown(named)}, and no request of its order does")
        return
    deadline = max(time_of(request["CompleteBy"]) for request in asked)
    if reply.sent_at > deadline + TOLERANCE_S:
        stage.fault(f"a reply to {whose(asked[0])} was sent {reply.sent_at - deadline:.1f} s after CompleteBy")
    if reply.member("Hops") != asked[0]["Hops"] + 1:
        stage.fault(f"a reply has Hops {shown(reply.member('Hops'))}: one more than the request's {asked[0]['Hops']}")
    if stage.has_high and reply.is_high != (asked[0].get("Priority") == "high"):
        stage.fault(f"the reply to a request of priority {asked[0].get('Priority', 'normal')} came on the other queue")
    if len(shown_whole(reply.outcome("Done"))) > OUTPUT_BYTES_MAX:
        stage.fault(f"a reply has an output over the limit of {OUTPUT_BYTES_MAX} bytes")


def shown_whole(value: object) -> bytes:
    """The shortest JSON of a value. Half a character, which JSON can write with an escape, counts as well."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
