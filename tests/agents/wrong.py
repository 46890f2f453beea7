"""The example agent with one thing wrong: `wrong.py NAME`, and the options of the example."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "infra" / "contracts" / "examples" / "python"))

from agent import Agent, Request, main  # noqa: E402
from service import Again, Conflict, Done, Failed  # noqa: E402

Called = Done | Failed | Again | Conflict
LATER = "the result comes later"
ABOUT_THE_CALLER = {"HTTP 401", "HTTP 403", "HTTP 404"}
KNOWN = {"HTTP 429", "HTTP 500", "HTTP 503"}


def failed(problem: str) -> Failed:
    """A no that the service did not say."""
    return Failed("refused", problem)


class AcceptedIsDone(Agent):
    """Takes 202 for done: the order is shipped before it is paid."""

    def called(self, request: Request, timeout_s: float) -> Called:
        answer = super().called(request, timeout_s)
        is_accepted = isinstance(answer, Again) and answer.problem == LATER
        return Done({"status": "pending"}) if is_accepted else answer


class CallerIsOrder(Agent):
    """Takes 401 and the like for a no: orders are undone because a token expired."""

    def called(self, request: Request, timeout_s: float) -> Called:
        answer = super().called(request, timeout_s)
        is_about_caller = isinstance(answer, Again) and answer.problem in ABOUT_THE_CALLER
        return failed(answer.problem) if is_about_caller else answer


class CallsExpired(Agent):
    """Goes by BudgetMs alone: a message that lay on the queue for hours is called all the same."""

    def deadline(self, request: Request, received_at: float) -> float:
        return received_at + request.budget_s


class ConflictIsNo(Agent):
    """Takes 409 for a no: the order is undone while the service is at work on it."""

    def called(self, request: Request, timeout_s: float) -> Called:
        answer = super().called(request, timeout_s)
        return answer.no if isinstance(answer, Conflict) else answer


class DeletesAnyway(Agent):
    """Deletes the message whatever became of its reply: where the sending fails, nobody ever learns of the answer."""

    def work(self, queue: str, message: dict[str, Any], request: Request, received_at: float) -> bool:
        try:
            return super().work(queue, message, request, received_at)
        except Exception:
            return True


class DeletesPoison(Agent):
    """Deletes what it cannot read: nobody will ever learn of it, and the order waits in vain."""

    def unreadable(self, queue: str, message: dict[str, Any]) -> None:
        self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


class FailsWhenUnsure(Agent):
    """Takes no answer for a no: an order is undone because a connection broke."""

    def called(self, request: Request, timeout_s: float) -> Called:
        answer = super().called(request, timeout_s)
        is_unsure = isinstance(answer, Again) and answer.problem.startswith("no answer")
        return failed(answer.problem) if is_unsure else answer


class FewStatuses(Agent):
    """Knows 429, 500 and 503 and takes any other status for a no: an order is undone for a gateway's bad minute."""

    def called(self, request: Request, timeout_s: float) -> Called:
        answer = super().called(request, timeout_s)
        is_other = isinstance(answer, Again) and answer.problem.startswith("HTTP ") and answer.problem not in KNOWN
        return failed(answer.problem) if is_other else answer


class ForgetsCalls(Agent):
    """Says nothing of a call without an answer: its effect comes after the undo."""

    def reply(self, request: Request, outcome: dict[str, Any], may_run_until: float) -> None:
        super().reply(request, outcome, 0.0)


class Hammers(Agent):
    """Asks again at once, whatever the service says: it is never left in peace to recover."""

    def back_off(self, answer: Again, tries: int) -> float:
        return 0.05


class IgnoresBudget(Agent):
    """Goes by CompleteBy alone: with a clock that is late it works on attempts that were given up long ago."""

    def deadline(self, request: Request, received_at: float) -> float:
        return request.complete_by


class LateReply(Agent):
    """Replies whenever the service has answered, be it after CompleteBy: another attempt may be under way by then."""

    def called(self, request: Request, timeout_s: float) -> Called:
        return super().called(request, 10.0)

    def answer(self, request: Request, answer: Done | Failed, deadline: float, may_run_until: float) -> bool:
        return super().answer(request, answer, math.inf, may_run_until)


class NewKey(Agent):
    """A new key for each attempt: the service does it twice when the first answer was lost."""

    def key(self, request: Request) -> str:
        key = super().key(request)
        return f"{key}/{request.attempt}" if request.direction == "Forward" and request.attempt > 1 else key


class WrongAttempt(Agent):
    """Answers every attempt as if it were the first: a failure of the second is then taken for one of the first."""

    def reply(self, request: Request, outcome: dict[str, Any], may_run_until: float) -> None:
        attempt = 1 if request.direction == "Forward" else request.attempt
        super().reply(dataclasses.replace(request, attempt=attempt), outcome, may_run_until)


if __name__ == "__main__":
    main(globals()[sys.argv.pop(1)])
