"""An inventory service that a check can have refuse or hold its answers."""

from __future__ import annotations

from harness.report import until
from harness.stub import Answer, Call, Stub


class Inventory(Stub):
    """Reserves and releases. An order whose document has a `Tag` in `refusing` is refused its release. One with a tag
    in `holding` gets its answer only after the tag is taken out."""

    def __init__(self) -> None:
        self.refusing: set[str] = set()
        self.holding: set[str] = set()
        super().__init__()

    def close(self) -> None:
        """Stops it."""
        self.holding.clear()
        super().close()

    def answer(self, call: Call) -> Answer:
        """By the order's tag."""
        tag = call.order.get("Tag", "")
        if tag in self.holding:
            until(f"{tag} is let go", lambda: tag not in self.holding, pause_s=0.05)
        if call.path.endswith("/release") and tag in self.refusing:
            return 422, {"code": "stock-is-counted", "message": "no releases during stock-taking"}
        return 200, {"Reservation": f"R-{call.key[:8]}", "Shelf": "B7", "Price": 1}
