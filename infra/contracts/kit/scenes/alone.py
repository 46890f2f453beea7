"""Scenes that change something for everybody."""

from __future__ import annotations

import json
import time

from botocore.exceptions import ClientError

from ..queues import VISIBILITY_S
from ..scene import When, scene
from ..service import Answer
from ..stage import PATIENCE_S, Stage

# Long enough for a call into it on a busy machine.
AWAY_S = 4.0
REFUSAL_S = 4.0
PATIENT_MS = 40_000
SMALLEST_BYTES_MAX = 1024
USUAL_BYTES_MAX = 1024 * 1024
# SQS says that a change of a queue takes up to a minute.
CHANGE_S_MAX = 60.0


@scene(When.ALONE)
def no_connection(stage: Stage) -> None:
    """A service that nobody can reach for 4 s: asked again, never Failed."""
    # Whoever has become patient needs time to come back.
    request = stage.request(BudgetMs=PATIENT_MS)
    stage.service.away()
    stage.send(request)
    stage.linger(AWAY_S)
    stage.service.back()
    stage.expect(request, "Done", within_s=PATIENT_MS / 1000)


@scene(When.ALONE)
def reply_not_taken(stage: Stage) -> None:
    """A reply that the queue does not take: the request stays, and is answered when it can be."""
    request = stage.request(BudgetMs=60_000)
    stage.script(request, Answer(200, json.dumps({"Label": "x" * 2 * SMALLEST_BYTES_MAX}).encode()))
    try:
        stage.reply_queue.set_bytes_max(SMALLEST_BYTES_MAX)
    except ClientError as error:
        stage.skipped = f"the queue of replies cannot be made to refuse one: {error}"
        return
    try:
        if not stage.wait(lambda: _refuses(stage), CHANGE_S_MAX):
            stage.skipped = "the queue of replies did not begin to refuse large messages"
            return
        stage.send(request)
        stage.wait(lambda: bool(stage.calls(request)), PATIENCE_S)
        # Time for the reply that is refused, and for deleting what must not be deleted.
        stage.linger(REFUSAL_S)
    finally:
        stage.reply_queue.set_bytes_max(USUAL_BYTES_MAX)
    if stage.answer(request, within_s=2 * VISIBILITY_S + PATIENCE_S) is None and stage.calls(request):
        stage.fault("the message was deleted before its reply was sent: when the sending failed, the reply was lost")


def _refuses(stage: Stage) -> bool:
    try:
        stage.reply_queue.send(json.dumps({"Filler": "x" * 2 * SMALLEST_BYTES_MAX}))
    except ClientError:
        return True
    time.sleep(1)
    return False
