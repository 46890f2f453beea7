"""Writes decimals.txt: what an independent decimal arithmetic computes, for the tests of expressions."""

import random
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

random.seed(20261129)
EXACT = Context(prec=200)


def drawn(digits: int, places: int) -> Decimal:
    number = random.randrange(10 ** random.randint(1, digits))
    return Decimal(random.choice((number, -number))).scaleb(-random.randint(0, places))


for _ in range(150):
    one, other = drawn(18, 9), drawn(18, 9)
    print(f"{one:f} + {other:f} = {EXACT.add(one, other):f}")
    print(f"{one:f} * {other:f} = {EXACT.multiply(one, other):f}")
    places = random.randint(0, 4)
    # Half is rare among drawn numbers.
    for number in (one, Decimal(random.randrange(-9999, 9999) * 10 + 5).scaleb(-places - 1)):
        for word, rounding in (("half-even", ROUND_HALF_EVEN), ("half-up", ROUND_HALF_UP)):
            rounded = number.quantize(Decimal(1).scaleb(-places), rounding, EXACT)
            print(f"round({number:f}, {places}, {word}) = {abs(rounded) if rounded == 0 else rounded:f}")
for _ in range(50):
    one, other = (random.randrange(10**37, 10**38) for _ in range(2))
    print(f"{one} - {other} = {one - other}")
    print(f"{one} + -{other} = {one - other}")
prices = [f"{random.randrange(10**6) / 100:.2f}" for _ in range(100)]
print(" + ".join(prices), "=", EXACT.create_decimal(sum(map(Decimal, prices))))
