"""A service that cannot answer now: patience, and no failure."""

from __future__ import annotations

import time

from ..scene import When, scene
from ..service import CUT, DONE, Answer, busy, busy_until
from ..stage import Request, Stage

RETRY_AFTER_S = 2
# The service is in trouble for so long, and in that time it is called so often at most.
TROUBLE_S = 4.0
CALLS_MAX = 15
PATIENT_MS = 40_000
# Timers are not exact.
TOLERANCE_S = 0.1


@scene(When.FAILING)
def retry_after(stage: Stage) -> None:
    """503 with Retry-After: not called earlier, then done."""
    request = stage.request()
    stage.script(request, busy(503, RETRY_AFTER_S), DONE)
    stage.send(request)
    stage.expect(request, "Done")
    _was_left_alone(stage, request, RETRY_AFTER_S)


@scene(When.FAILING)
def retry_after_a_date(stage: Stage) -> None:
    """429 with a date in Retry-After: not called earlier, then done."""
    request = stage.request()
    until = float(int(time.time()) + 4)
    stage.script(request, busy_until(until), DONE)
    stage.send(request)
    stage.expect(request, "Done")
    calls = stage.calls(request)
    if len(calls) > 1 and calls[1].at < until - TOLERANCE_S:
        stage.fault(f"the service was called {until - calls[1].at:.1f} s before the date in its Retry-After")


@scene(When.FAILING)
def errors_for_a_while(stage: Stage) -> None:
    """A service that answers 500 for 4 s is asked again, ever more patiently, then done."""
    # Whoever has become patient needs time to come back.
    request = stage.request(BudgetMs=PATIENT_MS)
    stage.script(request, busy(500))
    stage.send(request)
    stage.linger(TROUBLE_S)
    stage.script(request, DONE)
    calls = len(stage.calls(request))
    if calls > CALLS_MAX:
        stage.fault(f"a failing service was called {calls} times in {TROUBLE_S:.0f} s: there is no back-off")
    stage.expect(request, "Done", within_s=PATIENT_MS / 1000)


@scene(When.FAILING)
def no_answer(stage: Stage) -> None:
    """A connection that breaks before the answer: asked again with the same key, never Failed."""
    request = stage.request()
    stage.script(request, CUT, CUT, DONE)
    stage.send(request)
    stage.expect(request, "Done")


@scene(When.FAILING)
def answer_of_somebody_else(stage: Stage) -> None:
    """200 with a page that is no JSON leaves open who answered: asked again, neither Done nor Failed."""
    request = stage.request()
    page = Answer(200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"})
    stage.script(request, page, DONE)
    stage.send(request)
    stage.expect(request, "Done")
    if len(stage.calls(request)) == 1 and stage.replies(request):
        stage.fault("a page of HTML was taken for the service's answer")


def _was_left_alone(stage: Stage, request: Request, seconds: float) -> None:
    calls = stage.calls(request)
    if len(calls) > 1 and calls[1].at - calls[0].at < seconds - TOLERANCE_S:
        gap_s = calls[1].at - calls[0].at
        stage.fault(f"the service asked to be left alone for {seconds:.0f} s, and was called again after {gap_s:.1f} s")
