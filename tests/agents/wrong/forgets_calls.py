"""Says nothing of a call without an answer: its effect comes after the undo."""

from __future__ import annotations

from typing import Any

from _right import Agent, Request, main


class ForgetsCalls(Agent):
    def reply(self, request: Request, outcome: dict[str, Any], may_run_until: float) -> None:
        super().reply(request, outcome, 0.0)


main(ForgetsCalls)
