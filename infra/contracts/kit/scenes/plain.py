"""Requests that go well, or get a clear no."""

from __future__ import annotations

import json

from ..contract import OUTPUT_BYTES_MAX
from ..inbox import Reply
from ..scene import When, scene
from ..service import Answer, receipt, rejected
from ..stage import OUTPUTS, Request, Stage, shown

TEXTS = {
    "é": "Zoë Müller-Łukasz",
    "emoji": "🫖 for two 👩‍👩‍👧",
    "right-to-left": "שלום",
    "escapes": 'tab\t quote" back\\ \u2028',
}


@scene(When.CALM)
def plain(stage: Stage) -> None:
    """A request leads to one call and one reply."""
    request = stage.request()
    stage.send(request)
    reply = stage.expect(request, "Done")
    _took_output(stage, reply, receipt(request["IdempotencyKey"]))
    _handed_on(stage, request)

    def look() -> None:
        if len(stage.calls(request)) != 1:
            stage.fault(f"{len(stage.calls(request))} calls were made for one request that was answered at once")
        if len(stage.replies(request)) > 1:
            stage.fault(f"{len(stage.replies(request))} replies were sent to one request")

    stage.at_the_end(look)


@scene(When.CALM)
def unicode(stage: Stage) -> None:
    """Texts in any script pass through unharmed, both ways."""
    request = stage.request(Order=TEXTS)
    stage.script(request, Answer(200, json.dumps(TEXTS, ensure_ascii=False).encode()))
    stage.send(request)
    _took_output(stage, stage.expect(request, "Done"), TEXTS)
    _handed_on(stage, request)


@scene(When.CALM)
def unknown_members(stage: Stage) -> None:
    """Members that the agent does not know are ignored."""
    request = stage.request(Weather={"Sky": "clear"}, Traces=[1, 2], orderID="not this one")
    stage.send(request)
    stage.expect(request, "Done")


@scene(When.CALM)
def optional_members(stage: Stage) -> None:
    """A request without the members that may be missing is carried out."""
    request = stage.request()
    stage.sent.append(request)
    bare = {name: value for name, value in request.items() if name not in ("Hops", "Outputs", "Priority")}
    request["Hops"] = 0  # what its absence means
    stage.messages[stage.requests.send(json.dumps(bare))] = "a request without optional members"
    stage.expect(request, "Done")


@scene(When.CALM)
def rejected_for_good(stage: Stage) -> None:
    """A 4xx of the service is a Failed reply with a code, after one call."""
    request = stage.request()
    stage.script(request, rejected("card-declined"))
    stage.send(request)
    stage.expect(request, "Failed")

    def look() -> None:
        if len(stage.calls(request)) > 1:
            stage.fault(f"the service said no for good and was called {len(stage.calls(request))} times")

    stage.at_the_end(look)


@scene(When.CALM)
def output_limit(stage: Stage) -> None:
    """An output over 16 KiB fails the step, and never its undo."""
    small, large, undo = stage.request(), stage.request(), stage.request("Undo", Attempt=2)
    for request, size in (
        (small, OUTPUT_BYTES_MAX - 1024),
        (large, OUTPUT_BYTES_MAX + 1024),
        (undo, 2 * OUTPUT_BYTES_MAX),
    ):
        stage.script(request, Answer(200, json.dumps({"Label": "x" * size}).encode()))
    stage.send(small, large, undo)
    stage.expect(small, "Done")
    stage.expect(large, "Failed")
    stage.expect(undo, "Done")


@scene(When.CALM)
def high_lane(stage: Stage) -> None:
    """The reply to a request of high priority goes to the high queue."""
    if not stage.has_high:
        stage.skipped = "no --replies-high was given"
        return
    request = stage.request(Priority="high")
    stage.send(request)
    stage.expect(request, "Done")


def _took_output(stage: Stage, reply: Reply | None, expected: object) -> None:
    if reply is not None and reply.is_outcome("Done") and reply.outcome("Done") != expected:
        stage.fault(
            f"the output should be what the service answered, {shown(expected)}; got {shown(reply.outcome('Done'))}"
        )


def _handed_on(stage: Stage, request: Request) -> None:
    for call in stage.calls(request)[:1]:
        expected = {"OrderID": request["OrderID"], "Order": request["Order"], "Outputs": OUTPUTS}
        if not isinstance(call.body, dict) or any(call.body.get(name) != value for name, value in expected.items()):
            stage.fault(
                f"the service should be called with OrderID, Order and Outputs of the request; got {shown(call.body)}"
            )
