"""Taking back."""

from __future__ import annotations

from ..scene import When, scene
from ..service import DONE, rejected
from ..stage import Stage


@scene(When.CALM)
def undo(stage: Stage) -> None:
    """An undo calls another operation, under the key of the undo."""
    forward = stage.request()
    stage.send(forward)
    stage.expect(forward, "Done")
    back = stage.request("Undo", of=forward)
    stage.send(back)
    stage.expect(back, "Done")
    calls = stage.calls(forward)
    paths = {call.key: call.path for call in calls}
    if len(calls) >= 2 and len(set(paths.values())) < 2:
        stage.fault(f"forward and undo called the same operation, {calls[0].path}")
    if len(calls) >= 2 and back["IdempotencyKey"] not in paths:
        stage.fault("the undo was called under the key of the forward call")


@scene(When.CALM)
def undo_of_nothing(stage: Stage) -> None:
    """Undoing what was never done succeeds."""
    request = stage.request("Undo", Attempt=2)
    stage.send(request)
    stage.expect(request, "Done")


@scene(When.CALM)
def forward_after_undo(stage: Stage) -> None:
    """A late forward request after its undo is refused, not done."""
    back = stage.request("Undo", Attempt=2)
    stage.script(back, DONE, rejected("undone"))
    stage.send(back)
    stage.expect(back, "Done")
    late = {**stage.request(), **{name: back[name] for name in ("OrderID", "Step")}, "Attempt": 1}
    late["IdempotencyKey"] = back["IdempotencyKey"].removesuffix("/undo")
    stage.send(late)
    stage.expect(late, "Failed")
