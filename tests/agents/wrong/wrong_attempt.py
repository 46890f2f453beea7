"""Answers every attempt as if it were the first: a failure of the second is then taken for one of the first."""

from __future__ import annotations

import dataclasses
from typing import Any

from _right import Agent, Request, main


class WrongAttempt(Agent):
    def reply(self, request: Request, outcome: dict[str, Any], may_run_until: float) -> None:
        attempt = 1 if request.direction == "Forward" else request.attempt
        super().reply(dataclasses.replace(request, attempt=attempt), outcome, may_run_until)


main(WrongAttempt)
