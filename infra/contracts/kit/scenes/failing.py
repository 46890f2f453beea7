"""A service that cannot answer now: patience, and no failure."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ..scene import When, scene
from ..service import CUT, DONE, PAGE, Answer, busy, elsewhere, retry_at
from ..stage import PATIENCE_S, Request, Stage, shown

RETRY_AFTER_S = 2
RETRY_AT_S = 3
# The service is in trouble for so long, and in that time it is called so often at most. Waits are drawn: truncated
# exponential back-off of slots of 100 ms makes 8 calls; more than 15 once in 750 times, more than 30 never in a life.
TROUBLE_S = 6.0
CALLS_MAX = 30
PATIENT_MS = 40_000
# Timers are not exact.
TOLERANCE_S = 0.5
# They say nothing about the order: a time-out, a gateway's trouble, a page of somebody else. 500 and 503 have scenes of
# their own.
UNSURE = (408, 425, 429, 502, 504, 599)
ELSEWHERE = (301, 302, 307, 308)


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
    stage.script(request, Answer(429, b"{}", retry_at_s=RETRY_AT_S), DONE)
    stage.send(request)
    stage.expect(request, "Done")
    calls = stage.calls(request)
    if len(calls) > 1 and (early_s := retry_at(calls[0], RETRY_AT_S) - calls[1].at) > TOLERANCE_S:
        stage.fault(f"the service was called {early_s:.1f} s before the date in its Retry-After")


@scene(When.FAILING)
def errors_for_a_while(stage: Stage) -> None:
    """A service that answers 500 for 6 s is asked again, ever more patiently, then done."""
    # Whoever has become patient needs time to come back.
    request = stage.request(BudgetMs=PATIENT_MS)
    stage.script(request, busy(500))
    stage.send(request)
    stage.wait(lambda: bool(stage.calls(request)), PATIENCE_S)
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
    stage.script(request, PAGE, DONE)
    stage.send(request)
    stage.expect(request, "Done")
    if len(stage.calls(request)) == 1 and stage.replies(request):
        stage.fault("a page of HTML was taken for the service's answer")


@scene(When.ALONE)
def unsure_statuses(stage: Stage) -> None:
    """408, 425, 429, 502, 504, 599 and redirects leave open what was done: asked again, never Failed."""
    first = {status: busy(status) for status in UNSURE} | {status: elsewhere(status) for status in ELSEWHERE}
    requests = {status: stage.request(BudgetMs=PATIENT_MS) for status in first}
    for status, request in requests.items():
        stage.script(request, first[status], DONE)
    stage.send(*requests.values())
    # Side by side, so that an attempt that is given back does not hold up the others.
    with ThreadPoolExecutor(len(requests)) as pool:
        replies = pool.map(lambda request: stage.answer(request, within_s=PATIENT_MS / 1000), requests.values())
        for status, reply in zip(requests, replies, strict=True):
            if reply is not None and not reply.is_outcome("Done"):
                got = shown(reply.member("Outcome"))
                stage.fault(f"the service answered {status}, which leaves open what it did, and the reply was {got}")
            elif reply is not None and len(stage.calls(requests[status])) == 1:
                stage.fault(f"the service answered {status}, which was taken for its consent")


def _was_left_alone(stage: Stage, request: Request, seconds: float) -> None:
    calls = stage.calls(request)
    if len(calls) > 1 and calls[1].at - calls[0].at < seconds - TOLERANCE_S:
        gap_s = calls[1].at - calls[0].at
        stage.fault(f"the service asked to be left alone for {seconds:.0f} s, and was called again after {gap_s:.1f} s")
