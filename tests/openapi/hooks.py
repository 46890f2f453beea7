"""What schemathesis cannot know of a contract and a deployment: ids and versions that are there, the cursors that a list
gave, the name of the registered channel, that one time is before another, and which outcome has an output. Requests that are meant to be wrong are left as they are.

And the contract made strict: an answer may have no member that it does not name.
"""

from __future__ import annotations

import json
import os
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import schemathesis
from hypothesis import strategies
from schemathesis import Case, HookContext
from schemathesis.core.parameters import ParameterLocation
from strict import strict

SEEDS: dict[str, list[str]] = json.loads(os.environ["OPENAPI_SEEDS"])
CHANNEL = os.environ["OPENAPI_CHANNEL"]
# By path: the query that a cursor came with, and the cursor.
CURSORS: dict[str, tuple[dict[str, Any], str]] = {}

# Left alone it makes no header that needs a quote.
schemathesis.openapi.format(
    "entity-tags",
    strategies.one_of(
        strategies.just("*"),
        strategies.integers(1, 9).map(lambda version: f'"{version}"'),
        strategies.from_regex(r'(W/)?"[!#-~]{0,9}"( ?, ?(W/)?"[!#-~]{0,9}")*', fullmatch=True),
    ),
)


@schemathesis.hook
def before_load_schema(_: HookContext, raw_schema: dict[str, Any]) -> None:
    """Before any case is made."""
    strict(raw_schema)


@schemathesis.hook
def before_call(_: HookContext, case: Case, __: dict[str, Any]) -> None:
    """Before a request is sent."""
    if case.meta is None:
        return
    # What is wrong elsewhere shows better on an order that is there: 404 would hide it.
    if not case.meta.is_negative_at(ParameterLocation.PATH):
        given_ids(case)
    if not case.meta.generation.mode.is_positive:
        return
    given_tags(case)
    given_cursors(case)
    near_day(case.query)
    if isinstance(case.body, dict):
        # A try has its order within.
        for order in (case.body, case.body.get("Order")):
            if isinstance(order, dict):
                known_names(order)
                near_time(order)
        output_of_done(case.body)
        step_of_settle(case.body)
        state_of_action(case.body)
        ordered_times(case.body.get("Selector"))


@schemathesis.hook
def after_call(_: HookContext, case: Case, response: Any) -> None:
    """After an answer: keeps its cursor."""
    if case.path in ("/orders", "/dead-letters") and response.status_code == 200:
        cursor = response.json().get("NextCursor")
        if cursor is not None:
            query = {name: value for name, value in (case.query or {}).items() if name != "cursor"}
            CURSORS[case.path] = (query, cursor)


def given_ids(case: Case) -> None:
    """An action gets an id that is there, and so do two of three looks at something. The ids of links are there already."""
    kind = "orders" if case.path.startswith("/orders/") else "jobs"
    if "id" not in (case.path_parameters or {}) or is_linked(case):
        return
    number = number_of(case)
    if case.method == "POST" or number % 3:
        case.path_parameters["id"] = SEEDS[kind][number // 3 % len(SEEDS[kind])]


def given_tags(case: Case) -> None:
    """Most actions are on a version that is there, so that more comes of them than 412."""
    if "If-Match" in (case.headers or {}) and number_of(case) % 8:
        case.headers["If-Match"] = "*"


def number_of(case: Case) -> int:
    """Some number, the same for the same case in every run."""
    return zlib.crc32(json.dumps([case.path, dict(case.query or {}), str(case.body)]).encode())


def is_linked(case: Case) -> bool:
    """Whether a case goes on from the answer to another one."""
    return "stateful" in str(getattr(case.meta, "phase", "")).lower()


def given_cursors(case: Case) -> None:
    """A cursor is what a list gave, with the query that it gave it for; where no list gave any, there is none."""
    if "cursor" not in (case.query or {}):
        return
    if case.path in CURSORS:
        query, cursor = CURSORS[case.path]
        case.query.clear()
        case.query.update({**query, "cursor": cursor})
    else:
        del case.query["cursor"]


def near_day(query: dict[str, Any] | None) -> None:
    """A day of the numbers is not long ago. No schema says that."""
    if query and "day" in query:
        query["day"] = datetime.now(UTC).date().isoformat()


def known_names(body: dict[str, Any]) -> None:
    """A channel or workflow is known by its name to the deployment alone, and what is applied changes the workflows."""
    if isinstance(body.get("ReplyChannel"), str):
        body["ReplyChannel"] = CHANNEL
    if isinstance(body.get("Workflow"), str):
        del body["Workflow"]


def near_time(body: dict[str, Any]) -> None:
    """No schema says how far ahead a time may be, and that a deadline is not over."""
    if isinstance(body.get("NotBefore"), str):
        body["NotBefore"] = "2026-01-01T08:00:00+01:00"
    if isinstance(body.get("CompleteBy"), str):
        body["CompleteBy"] = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="milliseconds")


def ordered_times(selector: object) -> None:
    """No schema says that one time is before another."""
    if isinstance(selector, dict) and {"FailedSince", "FailedUntil"} <= selector.keys():
        del selector["FailedSince"]


def step_of_settle(body: dict[str, Any]) -> None:
    """A job that settles names the step. No schema of a member says what another one must have."""
    if body.get("Action") == "Settle" and isinstance(body.get("Selector"), dict):
        body["Selector"].setdefault("Step", "reserve-inventory")


def state_of_action(body: dict[str, Any]) -> None:
    """Each action of a job is for orders in one state."""
    selector = body.get("Selector")
    if isinstance(selector, dict) and selector.get("State") in ("Error", "Compensated"):
        selector["State"] = "Compensated" if body.get("Action") == "Again" else "Error"


def output_of_done(body: dict[str, Any]) -> None:
    """Only a step that is settled as done has an output."""
    if body.get("Outcome") in ("Undone", "Skipped", "Dropped"):
        body.pop("Output", None)
