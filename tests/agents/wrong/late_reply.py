"""Replies whenever the service has answered, be it after CompleteBy: another attempt may be under way by then."""

from __future__ import annotations

import math

from _right import Again, Agent, Conflict, Done, Failed, Request, main


class LateReply(Agent):
    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        return super().called(request, 10.0)

    def answer(self, request: Request, answer: Done | Failed, deadline: float, may_run_until: float) -> bool:
        return super().answer(request, answer, math.inf, may_run_until)


main(LateReply)
