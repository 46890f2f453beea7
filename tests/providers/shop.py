"""A shop on the three providers: the shipped example, with the URLs and secrets of this run."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from card import CardProvider
from carrier import Carrier, Stock
from harness.report import expect, until
from harness.serve import Server
from harness.serve import folder as configured
from harness.tools import ROOT

EXAMPLE = ROOT / "infra" / "examples" / "providers"
POSTERS = 8


class Shop:
    """`stepwarden serve` with three providers. Leaving its `with` stops them all."""

    def __init__(self, program: Path, folder: Path, card: CardProvider, carrier: Carrier) -> None:
        """`folder` is a new one for its data, settings and secrets."""
        folder.mkdir()
        self.card, self.carrier, self.stock = card, carrier, Stock()
        (folder / "card").write_text(card.secret)
        (folder / "carrier").write_text(carrier.secret)
        text = (EXAMPLE / "stepwarden.toml").read_text()
        for of_example, of_run in {
            "https://stock.example": self.stock.url,
            "https://api.stripe.com": card.url,
            "https://carrier.example": carrier.url,
            "file:/run/secrets/stripe": f"file:{folder / 'card'}",
            "file:/run/secrets/carrier": f"file:{folder / 'carrier'}",
        }.items():
            expect(of_example in text, f"{of_example} is not in the example")
            text = text.replace(of_example, of_run)
        workflow = (EXAMPLE / "workflows" / "shop-1.toml").read_text()
        config = configured(folder / "config", text, {"shop-1": workflow})
        self.server = Server(program, folder / "data", "--config", str(config))

    def __enter__(self) -> Shop:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.card.release()
        self.server.stop()
        for provider in (self.card, self.carrier, self.stock):
            provider.__exit__()

    def post(self, documents: list[dict[str, Any]]) -> list[str]:
        """Posts orders; their ids, in the same order."""
        with ThreadPoolExecutor(POSTERS, "post") as posters:
            posted = posters.map(lambda document: self.server.post("/orders", document), documents)
            return [str(answer["OrderID"]) for answer in posted]

    def settled(self, order_ids: list[str], within_s: float) -> dict[str, dict[str, Any]]:
        """All these orders, once each is settled."""

        def is_settled() -> bool:
            faults = [fault for provider in (self.card, self.carrier, self.stock) for fault in provider.faults]
            expect(not faults, "\n".join(faults[:3]))
            counts = {one["State"]: one["Count"] for one in self.server.get("/overview")["Counts"]}
            return sum(counts.get(state, 0) for state in ("Processed", "Compensated", "Error")) >= len(order_ids)

        until(f"{len(order_ids)} orders are settled", is_settled, within_s, pause_s=1.0)
        with ThreadPoolExecutor(POSTERS, "look") as readers:
            tasks = readers.map(lambda order_id: self.server.get(f"/orders/{order_id}"), order_ids)
            return dict(zip(order_ids, tasks, strict=True))

    def alerts(self) -> list[str]:
        """The alerts that it showed."""
        return [line for line in self.server.log().splitlines() if " ERROR alerts: ALERT" in line]


def order(**changes: Any) -> dict[str, Any]:
    """An order of the example, with changes."""
    return {
        "Customer": "Ada",
        "ShipTo": {"City": "London", "PostalCode": "SW1Y 4JH"},
        "Items": [{"SKU": "MUG-BLUE", "Quantity": 2}],
        "Total": 25.00,
        "Currency": "eur",
        "PaymentMethod": "pm_card_visa",
        **changes,
    }


def failure_counts(tasks: dict[str, dict[str, Any]]) -> Counter[str]:
    """The failures that were counted, by step."""
    counts: Counter[str] = Counter()
    for task in tasks.values():
        for step in task["Steps"]:
            counts[step["Name"]] += step["FailureCount"]
    return +counts
