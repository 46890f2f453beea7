"""Tests `sam local`: each function in a container, with the events of infra/events.

    tests/run sam-local [--built]

Runs each function with its events, and the HTTP API with a posted order, on the tables and queues of an AWS emulator.
Needs Rust, a C compiler and package registries, and apt and root where no Docker engine answers. No AWS account, and
none of its images.

--built  uses the last `sam build` as it is
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import image
from bench import Bench
from harness.engine import Engine
from harness import command, tools
from harness.deployment import BUILD, build
from harness.emulator import Emulator
from harness.report import Check, Report, expect, expect_equal, until
from harness.serve import ask

LOG_LINES = 100
ORDER = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011"
LATE_ORDER = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be012"
SETTLE_S_MAX = 60.0
ALERT_S_MAX = 20.0


def the_stand_ins_answer(bench: Bench) -> None:
    """The stand-ins charge, once for one key."""
    for _ in range(2):
        answer = bench.sam.invoke("StandInServices", "stand-ins-charge")
        expect_equal("status", answer["statusCode"], 200)
    expect_equal("effects", bench.stand_in_effects(f"payment/{ORDER}/charge-payment"), 1)


def the_submission_stores(bench: Bench) -> None:
    """Order and task are stored with the first claim, and its request is sent once. A repeat changes nothing."""
    for expected in ([("reserve-inventory", 1)], []):
        expect_equal("failures", bench.failures("Submission", "submission"), [])
        requests = bench.taken("agents")
        expect_equal("requests", [(one["Step"], one["Attempt"]) for one in requests], expected)
    expect_equal("messages for the scheduler", bench.taken("scheduler"), [])
    stored = bench.item("Orders", ORDER)
    expect_equal("document", json.loads(stored["Document"]), bench.sample)
    expect_equal("task", bench.brief(ORDER), ("Processing", ["Processing #1", "Pending #0", "Pending #0"]))


def the_supervisor_runs(bench: Bench) -> None:
    """A tick finds an order that is watched too early, and moves the watch to where it belongs."""
    bench.watch_now(ORDER)
    bench.sam.invoke("Supervisor", "supervisor-tick")
    expect(int(bench.item("Tasks", ORDER)["WatchAt"]) > 1, "the watch was not moved")
    expect_equal("task", bench.brief(ORDER), ("Processing", ["Processing #1", "Pending #0", "Pending #0"]))


def the_scheduler_is_woken(bench: Bench) -> None:
    """A wake that comes to an order under way changes nothing, and sends nothing."""
    expect_equal("failures", bench.failures("Scheduler", "scheduler-wake"), [])
    expect_equal("task", bench.brief(ORDER), ("Processing", ["Processing #1", "Pending #0", "Pending #0"]))
    expect_equal("requests", bench.taken("agents"), [])


def the_agents_call(bench: Bench) -> None:
    """Each agent of the function calls its service and replies to the scheduler."""
    for agent, step in (("inventory", "reserve-inventory"), ("payment", "charge-payment"), ("shipping", "ship-order")):
        expect_equal(f"failures of {agent}", bench.failures("AgentsFunction", f"agent-{agent}"), [])
        replies = [one["Reply"] for one in bench.taken("scheduler")]
        outcomes = [(reply["Step"], list(reply["Outcome"])) for reply in replies]
        expect_equal(f"replies of {agent}", outcomes, [(step, ["Done"])])
        expect_equal(f"effects of {agent}", bench.stand_in_effects(f"{agent}/{ORDER}/{step}"), 1)


def the_scheduler_goes_on(bench: Bench) -> None:
    """A reply completes its step and starts the next one."""
    expect_equal("failures", bench.failures("Scheduler", "scheduler-reply"), [])
    expect_equal("task", bench.brief(ORDER), ("Processing", ["Processed #1", "Processing #1", "Pending #0"]))
    expect_equal("requests", [one["Step"] for one in bench.taken("agents")], ["charge-payment"])


def a_dead_letter_is_settled(bench: Bench) -> None:
    """A submission that ended as a dead letter is stored in Error and an operator is called."""
    expect_equal("failures", bench.failures("Supervisor", "supervisor-dead-letter"), [])
    state, _ = bench.brief(LATE_ORDER)
    expect_equal("state", state, "Error")
    until("the alert of the order", lambda: ("OrderNeedsOperator", LATE_ORDER) in bench.alerts(), ALERT_S_MAX)


def an_operator_resubmits(bench: Bench) -> None:
    """The order of the dead letter starts."""
    expect_equal("failures", bench.failures("Scheduler", "scheduler-command"), [])
    expect_equal("task", bench.brief(LATE_ORDER), ("Processing", ["Processing #1", "Pending #0", "Pending #0"]))
    bench.taken("agents")


def the_api_answers(bench: Bench) -> None:
    """The sample is accepted and put on the submission queue; the order of before is shown."""
    posted = bench.sam.invoke("Api", "api-post-order")
    expect_equal("status of POST /orders", posted["statusCode"], 202)
    accepted = bench.taken("submission")
    expect_equal("documents on the queue", [one["Document"] for one in accepted], [bench.sample])
    expect_equal("submitter", accepted[0]["Submitter"], "arn:aws:iam::000000000000:user/shop")
    expect_equal("id", json.loads(posted["body"])["OrderID"], accepted[0]["OrderID"])
    shown = bench.sam.invoke("Api", "api-get-order")
    expect_equal("status of GET /orders/{id}", shown["statusCode"], 200)
    task = json.loads(shown["body"])
    expect_equal("task shown", (task["OrderID"], task["ProcessState"]), (ORDER, "Processing"))


def a_posted_order_is_read_back(bench: Bench) -> None:
    """`sam local start-api` takes an order; the deployed functions process it; the API shows its end."""
    with bench.sam.start_api() as url:
        status, health = ask("GET", f"{url}/health")
        expect_equal("GET /health", (status, health["Status"]), (200, "ok"))
        status, answer = ask("POST", f"{url}/orders", bench.sample)
        expect_equal("status of POST /orders", status, 202)
        path = f"{url}/orders/{answer['OrderID']}"
        expect_equal("state of what is not stored yet", ask("GET", path)[0], 404)
        bench.feed_deployed_functions()
        until(f"{path} is processed", lambda: ask("GET", path)[1].get("ProcessState") == "Processed", SETTLE_S_MAX)
        expect_equal("status of an unknown route", ask("GET", f"{url}/nowhere")[0], 403)


CHECKS: list[tuple[str, Callable[[Bench], None]]] = [
    ("StandInServices: a charge, twice under one key", the_stand_ins_answer),
    ("Submission: an order, twice", the_submission_stores),
    ("Supervisor: a tick", the_supervisor_runs),
    ("Scheduler: a wake", the_scheduler_is_woken),
    ("AgentsFunction: a request of each agent", the_agents_call),
    ("Scheduler: a reply", the_scheduler_goes_on),
    ("Supervisor: a dead letter", a_dead_letter_is_settled),
    ("Scheduler: an operator's command", an_operator_resubmits),
    ("Api: POST /orders and GET /orders/{id}", the_api_answers),
]


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("sam-local")
    parser.add_argument("--built", action="store_true")
    built = parser.parse_args().built
    tools.environment("sam")
    report = Report()
    if not built:
        report.section("The functions")
        report.check("sam build", build)
    if report.failed == 0:
        with tempfile.TemporaryDirectory(prefix="stepwarden-sam-local-", ignore_cleanup_errors=True) as folder:
            with_engine(report, Path(folder))
    return report.close()


def with_engine(report: Report, folder: Path) -> None:
    """A Docker engine with a base image, and the emulator where containers find it."""
    report.section("The surroundings")
    started = time.monotonic()
    with Engine(folder / "engine") as engine:
        whose = "started for this" if engine.is_own else "the machine's own"
        print(f"{'ok':6} {time.monotonic() - started:6.1f} s  Docker engine, {whose}", flush=True)
        programs = sorted(BUILD.glob("*/bootstrap"))
        report.check("base image", functools.partial(image.make, engine, programs, folder))
        try:
            # IAM is for `tests/deployed`: in a container a function has the keys of whoever started it.
            address = engine.host_address()
            emulator = Emulator(folder / "emulator", enforce_iam=False, host=address)
            with emulator:
                with_emulator(report, engine, emulator, folder)
        finally:
            image.remove(engine)


def with_emulator(report: Report, engine: Engine, emulator: Emulator, folder: Path) -> None:
    """The tables and queues, and all that is tried on them."""
    make = functools.partial(Bench, engine, emulator, folder)
    bench = report.check("tables and queues, as sam deploy makes them", make)
    if bench is None:
        return
    try:
        report.section("sam local invoke, with the events of infra/events")
        report.all([Check(title, functools.partial(check, bench)) for title, check in CHECKS])
        report.section("sam local start-api")
        read_back = functools.partial(a_posted_order_is_read_back, bench)
        report.check("an order is posted, processed and read back", read_back)
    finally:
        if report.failed or sys.exc_info()[0]:
            bench.print_logs(LOG_LINES)


if __name__ == "__main__":
    command.run(main)
