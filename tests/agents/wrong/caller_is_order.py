"""Takes 401 and the like for a no: orders are undone because a token expired."""

from __future__ import annotations

from _right import Again, Agent, Conflict, Done, Failed, Request, main

ABOUT_THE_CALLER = {"HTTP 401", "HTTP 403", "HTTP 404"}


class CallerIsOrder(Agent):
    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        answer = super().called(request, timeout_s)
        if isinstance(answer, Again) and answer.problem in ABOUT_THE_CALLER:
            return Failed("refused", answer.problem)
        return answer


main(CallerIsOrder)
