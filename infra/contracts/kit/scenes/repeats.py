"""The same request again: SQS delivers at least once, and the scheduler asks again what it got no reply to."""

from __future__ import annotations

from ..scene import When, scene
from ..stage import Request, Stage, shown


@scene(When.CALM)
def twice_at_once(stage: Stage) -> None:
    """Two copies of a request at the same time have one key, and one outcome."""
    request = stage.request()
    stage.send(request, request)
    stage.expect(request, "Done")
    stage.at_the_end(lambda: _is_one(stage, request))


@scene(When.CALM)
def again_later(stage: Stage) -> None:
    """A copy of a request that was answered is answered again, the same."""
    request = stage.request()
    stage.send(request)
    if stage.expect(request, "Done") is None:
        return
    stage.send(request)
    if stage.answer(request, count=2) is None:
        stage.fault("the reply to the first copy may have been lost, so the second must be answered as well")
    stage.at_the_end(lambda: _is_one(stage, request))


@scene(When.CALM)
def second_attempt(stage: Stage) -> None:
    """The next attempt of a step has the same key, and its reply the new number."""
    first = stage.request()
    stage.send(first)
    stage.expect(first, "Done")
    second = stage.request(of=first)
    stage.send(second)
    stage.expect(second, "Done")


def _is_one(stage: Stage, request: Request) -> None:
    keys = {call.key for call in stage.calls(request)}
    if len(keys) > 1:
        stage.fault(f"copies of one request were called under {len(keys)} keys")
    # What was given back has no outcome yet.
    settled = [reply for reply in stage.replies(request) if not reply.is_outcome("Deferred")]
    outcomes = {shown(reply.member("Outcome")) for reply in settled}
    if len(outcomes) > 1:
        stage.fault(f"copies of one request got different outcomes: {' and '.join(sorted(outcomes))}")
