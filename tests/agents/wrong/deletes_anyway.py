"""Deletes the message whatever became of its reply: where the sending fails, nobody ever learns of the answer."""

from __future__ import annotations

from typing import Any

from _right import Agent, Request, main


class DeletesAnyway(Agent):
    def work(self, queue: str, message: dict[str, Any], request: Request, received_at: float) -> bool:
        try:
            return super().work(queue, message, request, received_at)
        except Exception:
            return True


main(DeletesAnyway)
