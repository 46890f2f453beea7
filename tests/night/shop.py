"""The shop of the night: its folder of workflows and services, and the documents of its orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.serve import folder

SETTINGS = """\
default = "shop"

{agents}
[alerts.pager]
webhook = "{url}/alerts"

[alerts.team]
slack = "{url}/team"

[alerts.duty]
email = ["ops@example.org"]
from = "stepwarden@example.org"
smtp = "{mail}"
"""

AGENT = """\
[agents.{name}]
url = "{url}/{name}"
forward = "do"
undo = "undo"
call_timeout = "2s"
settles_within = "3s"
breaker = {{ longest_wait = "3s" }}
"""

# Each order is found by its e-mail. Only `shop` needs payment.
SHOP = """\
name = "shop"
version = 1
index = ["/Email"]

[[step]]
name = "reserve"
agent = "stock"
on_rejected = "hold"

[[step]]
name = "charge"
agent = "payment"
after = ["reserve"]
horizon = "{horizon_s}s"

[[step]]
name = "ship"
agent = "carrier"
after = ["charge"]
on_rejected = "hold"
"""

GIFT = """\
name = "gift"
version = 1
index = ["/Email"]

[[step]]
name = "pack"
agent = "stock"

[[step]]
name = "wrap"
agent = "stock"
after = ["pack"]
when = "/Order/Wrap == true"

[[step]]
name = "send"
agent = "carrier"
after = ["wrap"]
"""

# One in so many cards is declined.
DECLINED_EACH = 50
# One gift in three is not wrapped.
PLAIN_EACH = 3


def write(path: Path, url: str, mail: str, horizon_s: int) -> Path:
    """Writes the folder for services at this URL, and a mail server at the other one.

    Payment that fails for longer than the horizon needs an operator.
    """
    agents = "\n".join(AGENT.format(name=name, url=url) for name in ("stock", "payment", "carrier"))
    settings = SETTINGS.format(agents=agents, url=url, mail=mail)
    return folder(path, settings, {"shop-1": SHOP.format(horizon_s=horizon_s), "gift-1": GIFT})


def order(number: int, workflow: str, stub: dict[str, str] | None = None) -> dict[str, Any]:
    """The document of an order. `stub` says which of its calls go wrong."""
    if stub is None and workflow == "shop" and number % DECLINED_EACH == 3:
        stub = {"payment/do": "refuse for good"}
    document = {
        "Number": number,
        "Workflow": workflow,
        "CorrelationID": f"night-{number}",
        "Email": f"c{number}@example.org",
        "Wrap": number % PLAIN_EACH > 0,
        "Items": [{"Article": "mug", "Count": number % 4 + 1}],
    }
    return {**document, **({"Stub": stub} if stub else {})}


def only_shop(_: int) -> str:
    """The workflow with payment."""
    return "shop"


def mixed(number: int) -> str:
    """Seven of ten with payment."""
    return "shop" if number % 10 < 7 else "gift"
