"""A new key for each attempt: the service does it twice when the first answer was lost."""

from __future__ import annotations

from _right import Agent, Request, main


class NewKey(Agent):
    def key(self, request: Request) -> str:
        key = super().key(request)
        return f"{key}/{request.attempt}" if request.direction == "Forward" and request.attempt > 1 else key


main(NewKey)
