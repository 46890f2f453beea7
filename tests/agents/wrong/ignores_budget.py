"""Goes by CompleteBy alone: with a clock that is late it works on attempts that were given up long ago."""

from __future__ import annotations

from _right import Agent, Request, main


class IgnoresBudget(Agent):
    def deadline(self, request: Request, received_at: float) -> float:
        return request.complete_by


main(IgnoresBudget)
