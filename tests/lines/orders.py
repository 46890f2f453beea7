"""The orders of the suite `lines`: drawn from a seed, each with what must become of it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from decimal import Decimal

LINES_MAX = 40
# Of 100 lines, those that the warehouse is out of, and those that the carrier does not take.
GONE, HEAVY = 3, 2
# Of 100 orders, those whose last step is refused.
REFUSED = 4
# Of 100 lines of an order, those that may be dropped.
DROP_MAX = 50


@dataclass(frozen=True)
class Line:
    """A line of an order."""

    sku: str
    price: Decimal
    quantity: int
    luck: int

    @property
    def is_gone(self) -> bool:
        """Whether the warehouse is out of it."""
        return self.sku.startswith("gone")

    @property
    def is_dropped(self) -> bool:
        """Whether a service says no to it."""
        return self.is_gone or self.sku.startswith("heavy")

    @property
    def amount(self) -> Decimal:
        """What it costs."""
        return self.price * self.quantity

    def text(self) -> str:
        """Its JSON, the price digit for digit."""
        members = f'"SKU":"{self.sku}","Price":{self.price},"Quantity":{self.quantity},"Luck":{self.luck}'
        return f"{{{members}}}"


@dataclass(frozen=True)
class Order:
    """An order."""

    number: int
    lines: tuple[Line, ...]
    is_refused: bool

    @property
    def is_compensated(self) -> bool:
        """Whether it ends so: its last step is refused, or too many of its lines are."""
        dropped = sum(line.is_dropped for line in self.lines)
        is_allowed = dropped < len(self.lines) and 100 * dropped <= DROP_MAX * len(self.lines)
        return self.is_refused or not is_allowed

    @property
    def carried(self) -> list[Line]:
        """The lines that are carried out if it is processed."""
        return [line for line in self.lines if not line.is_dropped]

    @property
    def dropped(self) -> list[Line]:
        """The lines that are dropped then."""
        return [line for line in self.lines if line.is_dropped]

    def body(self) -> bytes:
        """Its document."""
        lines = ",".join(line.text() for line in self.lines)
        return f'{{"Number":{self.number},"Refuse":{json.dumps(self.is_refused)},"Lines":[{lines}]}}'.encode()


def draw(count: int, seed: int) -> list[Order]:
    """So many orders. The first have one line and the most lines, of which one is dropped."""
    rng = random.Random(seed)
    return [draw_one(rng, number) for number in range(count)]


def draw_one(rng: random.Random, number: int) -> Order:
    """One order."""
    size = {0: 1, 1: LINES_MAX}.get(number, rng.randint(1, LINES_MAX))

    def line(place: int) -> Line:
        kind = rng.randrange(100)
        word = "gone" if kind < GONE or (number, place) == (1, 0) else "heavy" if kind < GONE + HEAVY else "mug"
        price = Decimal(rng.randint(1, 99_999)).scaleb(-rng.randint(0, 3))
        return Line(f"{word}-{place}", price, rng.randint(1, 9), rng.randrange(10_000))

    lines = tuple(line(place) for place in range(size))
    return Order(number, lines, number > 1 and rng.randrange(100) < REFUSED)
