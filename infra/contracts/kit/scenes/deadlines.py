"""No call when it is too late for one, and silence after CompleteBy."""

from __future__ import annotations

import time

from ..rules import TOLERANCE_S
from ..scene import When, scene
from ..service import Answer
from ..stage import Request, Stage, time_text

# The time for a call that takes longer than it may, and how long it takes. The first is long enough for agents that
# start no call shortly before their deadline.
SHORT_MS = 5_000
SLOW = Answer(after_s=6.5)
HOUR_MS = 3_600_000


@scene(When.CALM)
def expired(stage: Stage) -> None:
    """A request whose CompleteBy has passed is neither called nor answered, and its message goes."""
    past = time_text(time.time() - 5)
    requests = [stage.request(CompleteBy=past), stage.request("Undo", Attempt=2, CompleteBy=past)]
    stage.send(*requests)
    for request in requests:
        stage.expect_silence(request)


@scene(When.CALM)
def budget_spent(stage: Stage) -> None:
    """A request without BudgetMs left is neither called nor answered, whatever CompleteBy says."""
    request = stage.request(BudgetMs=0, CompleteBy=time_text(time.time() + 3600))
    stage.send(request)
    stage.expect_silence(request)


@scene(When.FAILING)
def slow_service(stage: Stage) -> None:
    """A service that is slower than CompleteBy: silence, and no further call."""
    _is_silent_at_the_end(stage, stage.request(BudgetMs=SHORT_MS))


@scene(When.FAILING)
def budget_is_earlier(stage: Stage) -> None:
    """Where BudgetMs is over before CompleteBy, silence begins with the budget's end."""
    _is_silent_at_the_end(stage, stage.request(BudgetMs=SHORT_MS, CompleteBy=time_text(time.time() + 3600)))


@scene(When.FAILING)
def complete_by_is_earlier(stage: Stage) -> None:
    """Where CompleteBy comes before the end of BudgetMs, silence begins with CompleteBy."""
    _is_silent_at_the_end(stage, stage.request(BudgetMs=HOUR_MS, CompleteBy=time_text(time.time() + SHORT_MS / 1000)))


def _is_silent_at_the_end(stage: Stage, request: Request) -> None:
    stage.script(request, SLOW)
    stage.send(request)
    sent_at = time.time()
    called = stage.wait(lambda: bool(stage.calls(request)), SHORT_MS / 1000 - 1)
    if not called and not stage.replies(request):
        stage.fault(f"the service was not called within {SHORT_MS / 1000 - 1:.0f} s, though there was time for it")
    stage.linger(max(0.0, sent_at + SHORT_MS / 1000 + SLOW.after_s - time.time()))
    # An attempt may be given back, in time.
    deadline = sent_at + SHORT_MS / 1000 + TOLERANCE_S

    def look() -> None:
        if any(not reply.is_outcome("Deferred") or reply.sent_at > deadline for reply in stage.replies(request)):
            stage.fault(
                "a reply was sent after the deadline (the service took longer than CompleteBy and BudgetMs allow)"
            )
        if any(call.at > deadline for call in stage.calls(request)):
            stage.fault("a call was started after the deadline")

    stage.at_the_end(look)
