"""Plays the scenes, and sees at the end what the agent left on its queue."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import rules
from .inbox import Inbox
from .queues import RECEIVES_MAX, VISIBILITY_S, Queue, wait_until_drained
from .scene import Scene, When
from .service import Service
from .stage import PATIENCE_S, Stage, shown

# A message that is left alone comes back so often before it is given up, and somebody has to look.
# An agent may space the deliveries itself: the shipped one needs up to 1 + 3 + 7 + … + 127 s for these.
BACKOFF_S_MAX = 250.0
DRAIN_S_MAX = max(VISIBILITY_S * RECEIVES_MAX, BACKOFF_S_MAX) + 60.0
# Replies come this long after the last message is gone, and calls of an agent that deletes first.
SILENCE_S = 1.5


@dataclass
class Verdict:
    """How one scene went."""

    name: str
    title: str
    faults: list[str] = field(default_factory=list)
    skipped: str | None = None
    took_s: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the agent did nothing wrong."""
        return not self.faults


@dataclass(frozen=True)
class World:
    """What all scenes share."""

    service: Service
    inbox: Inbox
    requests: Queue
    replies: Queue
    dead_letters: Queue
    has_high: bool


def play(world: World, scenes: list[Scene], one_by_one: bool) -> list[Verdict]:
    """Plays the scenes, those that do not disturb each other at the same time, and gives what became of each."""
    stages = {scene.name: _stage(world) for scene in scenes}
    verdicts = {scene.name: Verdict(scene.name, scene.title) for scene in scenes}
    for when in When:
        together = [scene for scene in scenes if scene.when is when]
        workers = 1 if one_by_one or when is When.ALONE else len(together)
        with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
            list(pool.map(lambda scene: _play(scene, stages[scene.name], verdicts[scene.name]), together))
    _look_at_what_is_left(world, stages)
    for name, verdict in verdicts.items():
        for look in stages[name].looks:
            look()
        rules.hold(stages[name])
        verdict.faults, verdict.skipped = stages[name].faults, stages[name].skipped
    return [*verdicts.values(), _strays(world, stages)]


def _stage(world: World) -> Stage:
    return Stage(world.service, world.inbox, world.requests, world.replies, world.has_high)


def _play(scene: Scene, stage: Stage, verdict: Verdict) -> None:
    started = time.monotonic()
    scene.play(stage)
    verdict.took_s = time.monotonic() - started


def _look_at_what_is_left(world: World, stages: dict[str, Stage]) -> None:
    """A message that was not deleted comes again and again, and is given up. So what is in the dead-letter queue was
    left, and what is not was deleted.
    """
    left = wait_until_drained(world.requests, DRAIN_S_MAX)
    for queue in world.inbox.queues:
        wait_until_drained(queue, PATIENCE_S)
    time.sleep(SILENCE_S)
    dead: set[str] = set()
    while taken := world.dead_letters.take(2):
        dead |= {message["MessageId"] for message in taken}
    for stage in stages.values():
        for message_id, what in stage.messages.items():
            if message_id in dead:
                stage.fault(f"the message was never deleted, and became a dead letter: {what}")
        for message_id, what in stage.poison.items():
            if message_id not in dead and left == 0:
                stage.fault(f"a message that cannot be read was deleted, and nobody will ever see it: {what}")
            elif message_id not in dead:
                stage.fault(f"a message that cannot be read is not given up within {DRAIN_S_MAX:.0f} s: {what}")
    if left and not any(stage.faults for stage in stages.values()):
        for stage in stages.values():
            stage.fault(f"{left} messages were still on the queue long after the last scene, and nobody takes them")


def _strays(world: World, stages: dict[str, Stage]) -> Verdict:
    """What belongs to no request at all."""
    verdict = Verdict("strays", "No call and no reply without a request")
    known = {request["OrderID"] for stage in stages.values() for request in stage.sent}
    # Of malformed requests the scene of poison speaks.
    malformed = world.service.strays(known) if "poison" not in stages else []
    for call in malformed:
        verdict.faults.append(f"a call to {call.path} is for the order {shown(call.order_id)}, which nobody asked for")
    for reply in world.inbox.strays(known):
        is_own = isinstance(reply.message, dict) and "Filler" in reply.message
        of_poison = "poison" in stages and reply.member("OrderID") is not None
        if not is_own and not of_poison:
            verdict.faults.append(f"a message on the queue of replies is no reply to a request: {shown(reply.text)}")
    return verdict
