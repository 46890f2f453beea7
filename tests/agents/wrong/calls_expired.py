"""Goes by BudgetMs alone: a message that lay on the queue for hours is called all the same."""

from __future__ import annotations

from _right import Agent, Request, main


class CallsExpired(Agent):
    def deadline(self, request: Request, received_at: float) -> float:
        return received_at + request.budget_s


main(CallsExpired)
