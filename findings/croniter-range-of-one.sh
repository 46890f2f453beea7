#!/usr/bin/env bash
# A range of one value in a cron means every value to the cron library of Python's schedulers.
#
# Subject:   croniter 7.0.0 of PyPI. Needs Python 3.10 or later with venv.
# Guess:     10-10 is a range from 10 to 10, so "10-10 * * * *" is due once an hour, as in Vixie cron and crontab(5).
# Behaviour: croniter takes it for the whole field, in all five fields, also with a step, which then counts from the
#            first value of the field. A range of two values is as guessed. So a job that is meant once a day at 10
#            ("0 10-10 * * *", for instance written by a program) runs 24 times.
# Output:    minute 4 of 4 in a row, hour 4 of 4 in a row, a range of two: 10 11 10 11, with a step: 7 14 21 28
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check croniter==7.0.0
"$folder/venv/bin/python" - <<'PYTHON'
from datetime import datetime, timezone
from importlib.metadata import version

from croniter import croniter

BEGIN = datetime(2026, 11, 30, tzinfo=timezone.utc)


def due(cron: str) -> list[str]:
    times = croniter(cron, BEGIN)
    return [times.get_next(datetime).strftime("%d %H:%M") for _ in range(4)]


expected = {
    "10-10 * * * *": ["30 00:01", "30 00:02", "30 00:03", "30 00:04"],
    "0 10-10 * * *": ["30 01:00", "30 02:00", "30 03:00", "30 04:00"],
    "0 0 5-5 * *": ["01 00:00", "02 00:00", "03 00:00", "04 00:00"],
    "0 0 * * 2-2": ["01 00:00", "02 00:00", "03 00:00", "04 00:00"],
    "10-11 * * * *": ["30 00:10", "30 00:11", "30 01:10", "30 01:11"],
    "10-10/7 * * * *": ["30 00:07", "30 00:14", "30 00:21", "30 00:28"],
}
found = {cron: due(cron) for cron in expected}
print("croniter", version("croniter"), found)
assert found == expected, expected
PYTHON
