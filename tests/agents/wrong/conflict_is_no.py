"""Takes 409 for a no: the order is undone while the service is at work on it."""

from __future__ import annotations

from _right import Again, Agent, Conflict, Done, Failed, Request, main


class ConflictIsNo(Agent):
    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        answer = super().called(request, timeout_s)
        return answer.no if isinstance(answer, Conflict) else answer


main(ConflictIsNo)
