"""Takes no answer for a no: an order is undone because a connection broke."""

from __future__ import annotations

from _right import Again, Agent, Conflict, Done, Failed, Request, main


class FailsWhenUnsure(Agent):
    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        answer = super().called(request, timeout_s)
        if isinstance(answer, Again) and answer.problem.startswith("no answer"):
            return Failed("unreachable", answer.problem)
        return answer


main(FailsWhenUnsure)
