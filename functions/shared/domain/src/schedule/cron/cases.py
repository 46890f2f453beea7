"""Writes cases.txt: when croniter (PyPI) says that a cron is due, for the tests of ours. Run with croniter 7.0.0."""

import random
from datetime import datetime, timezone

from croniter import croniter

random.seed(20261130)
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()


def part(first: int, last: int, names: list[str]) -> str:
    # croniter takes a range of one value for all values.
    one, other = sorted(random.sample(range(first, last + 1), k=2))
    if random.random() < 0.4:
        return names[one - first] if names and random.random() < 0.5 else str(one)
    step = random.randint(1, 5)
    return random.choice((f"{one}-{other}", f"{one}-{other}/{step}", f"*/{step}"))


def field(first: int, last: int, names: list[str]) -> str:
    if random.random() < 0.3:
        return "*"
    return ",".join(part(first, last, names) for _ in range(random.randint(1, 3)))


for _ in range(400):
    day, weekday = random.choice(((field(1, 31, []), "*"), ("*", field(0, 6, WEEKDAYS))))
    cron = " ".join((field(0, 59, []), field(0, 23, []), day, field(1, 12, MONTHS), weekday))
    after = datetime.fromtimestamp(random.randrange(1_600_000_000, 2_000_000_000), timezone.utc)
    due = croniter(cron, after)
    times = [due.get_next(datetime).strftime("%Y-%m-%dT%H:%MZ") for _ in range(5)]
    print(after.strftime("%Y-%m-%dT%H:%M:%SZ"), cron, "=", *times)
