"""Calls that may still be at work when the agent gives them up, and answers that are about the caller."""

from __future__ import annotations

import json

from ..inbox import Reply
from ..rules import TOLERANCE_S
from ..scene import When, scene
from ..service import CUT, DONE, Answer, busy, receipt, rejected
from ..stage import Stage, shown, time_of

# Whoever has become patient needs time to come back.
PATIENT_MS = 40_000
# Not the default: the agent must read it.
SETTLES_MS = 60_000
IN_USE = Answer(409, json.dumps({"code": "in-use", "detail": "a call with this key is at work"}).encode())
PENDING = Answer(202, json.dumps({"status": "pending"}).encode(), {"Retry-After": "1"})
TOKEN_EXPIRED = Answer(401, json.dumps({"code": "token-expired"}).encode())


@scene(When.FAILING)
def at_work(stage: Stage) -> None:
    """409 while an earlier call may be at work: asked again, never Failed."""
    request = stage.request(BudgetMs=PATIENT_MS)
    stage.script(request, CUT, IN_USE, IN_USE, DONE)
    stage.send(request)
    stage.expect(request, "Done", within_s=PATIENT_MS / 1000)


@scene(When.CALM)
def accepted(stage: Stage) -> None:
    """202 says that the result comes later: asked again, then done with the result."""
    request = stage.request()
    stage.script(request, PENDING, PENDING, DONE)
    stage.send(request)
    reply = stage.expect(request, "Done")
    result = receipt(request["IdempotencyKey"])
    if reply is not None and reply.is_outcome("Done") and reply.outcome("Done") != result:
        stage.fault(f"the result is {shown(result)}; 202 was taken for it: {shown(reply.outcome('Done'))}")


@scene(When.FAILING)
def about_the_caller(stage: Stage) -> None:
    """401, 403, and 404 without a code, say nothing about the order: asked again, never Failed."""
    request = stage.request(BudgetMs=PATIENT_MS)
    stage.script(request, TOKEN_EXPIRED, busy(403), busy(404), DONE)
    stage.send(request)
    stage.expect(request, "Done", within_s=PATIENT_MS / 1000)


@scene(When.ALONE)
def may_run_until(stage: Stage) -> None:
    """Failed after a call without an answer says until when that call may still have its effect."""
    request = stage.request(BudgetMs=PATIENT_MS, SettlesWithinMs=SETTLES_MS)
    stage.script(request, CUT, rejected("card-declined"))
    stage.send(request)
    stage.expect(request, "Failed", within_s=PATIENT_MS / 1000)
    calls, replies = stage.calls(request), stage.inbox.replies(request["OrderID"])
    if calls and replies and _latest(replies) < calls[0].at + SETTLES_MS / 1000 - TOLERANCE_S:
        stage.fault(f"a call had no answer, and no reply has MayRunUntil {SETTLES_MS} ms after it (SettlesWithinMs)")


def _latest(replies: list[Reply]) -> float:
    """The scheduler keeps the latest of all attempts."""
    times = [reply.member("MayRunUntil") for reply in replies]
    return max((time_of(at) for at in times if isinstance(at, str)), default=0.0)
