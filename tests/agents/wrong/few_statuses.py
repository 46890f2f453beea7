"""Knows 429, 500 and 503 and takes any other status for a no: an order is undone for a gateway's bad minute."""

from __future__ import annotations

from _right import Again, Agent, Conflict, Done, Failed, Request, main

KNOWN = {"HTTP 429", "HTTP 500", "HTTP 503"}


class FewStatuses(Agent):
    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        answer = super().called(request, timeout_s)
        if isinstance(answer, Again) and answer.problem.startswith("HTTP ") and answer.problem not in KNOWN:
            return Failed("refused", answer.problem)
        return answer


main(FewStatuses)
