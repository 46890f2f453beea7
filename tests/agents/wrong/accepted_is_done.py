"""Takes 202 for done: the order is shipped before it is paid."""

from __future__ import annotations

from _right import Again, Agent, Conflict, Done, Failed, Request, main

LATER = "the result comes later"


class AcceptedIsDone(Agent):
    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        answer = super().called(request, timeout_s)
        if isinstance(answer, Again) and answer.problem == LATER:
            return Done({"status": "pending"})
        return answer


main(AcceptedIsDone)
