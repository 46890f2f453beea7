"""An order whose id is known before it is posted, so that the first call of a function for it can be acted on."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import Any

from harness.deployment import USER
from harness.report import expect_equal, until
from world import INSTALLATION, World, document

SUBMITTER = f"{USER}application"
POSTED_S_MAX = 90.0


@dataclass(frozen=True)
class Planned:
    """An order under an idempotency key, from which its id follows."""

    document: dict[str, Any]
    key: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def order_id(self) -> str:
        """A UUID of version 8."""
        part = b"".join(((2**64 - 2).to_bytes(8, "big"), INSTALLATION[-1].encode())) if INSTALLATION[-1] else b""
        submitter = len(SUBMITTER).to_bytes(8, "big") + SUBMITTER.encode()
        digest = hashlib.sha256(part + submitter + self.key.encode()).digest()
        octets = bytearray(digest[:16])
        octets[6], octets[8] = octets[6] & 0x0F | 0x80, octets[8] & 0x3F | 0x80
        return str(uuid.UUID(bytes=bytes(octets)))

    def post(self, world: World, end: str = "Processed") -> int:
        """Posts it until it is accepted, as a caller does who gets no answer. Gives the number of posts."""
        posts = []

        def accepted() -> bool:
            answer = world.application.post("/orders", self.document, {"Idempotency-Key": self.key})
            posts.append(answer.status)
            if answer.status == 202:
                expect_equal("the id of the order", answer.body["OrderID"], self.order_id)
            return answer.status == 202

        until(f"{self.order_id} is accepted ({posts})", accepted, POSTED_S_MAX)
        world.expect_end(self.order_id, end)
        return len(posts)


def planned(stand_in: dict[str, Any] | None = None, /, **members: Any) -> Planned:
    """An order unlike any other, to be posted."""
    return Planned(document(stand_in, **members))
