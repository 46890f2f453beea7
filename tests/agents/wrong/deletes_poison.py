"""Deletes what it cannot read: nobody will ever learn of it, and the order waits in vain."""

from __future__ import annotations

from typing import Any

from _right import Agent, main


class DeletesPoison(Agent):
    def unreadable(self, queue: str, message: dict[str, Any]) -> None:
        self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


main(DeletesPoison)
