"""Tests the deployed form on an AWS emulator with IAM enforced.

    tests/run deployed [--build-only | --checks-only] [--program FILE]
                       [--only WORDS | --update | --update-from DIR | --parameters [WORDS]]

Lints, builds and deploys the template, and tries the deployed functions. Needs Rust, a C compiler and package
registries; no AWS account.

--build-only    lints and builds the template, and deploys nothing
--checks-only   leaves the linters out and deploys the last build
--only WORDS    tries only the checks and runs with these words in their title
--update        tries only updates of the stack, with orders under way: from a copy of the last build with other programs
                and variables to the last build, of a parameter, of half of the calls, and the way back
--update-from DIR
                the same from the version in this checkout
--parameters [WORDS]
                tries only eight sets of other parameters, or those with these words in their title, each in a
                deployment of its own with an order. With tokens: every call as every role. One stack is deleted with
                orders under way, and a new one takes its tables
--program FILE  uses this `stepwarden` as client instead of a debug build
"""

from __future__ import annotations

import argparse
import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import audit
import conformance
import parameters
import template
import upgrade
from checks import alarms, callers, doctor, erased, kills, letters, logs, many_agents, own_callbacks, own_lines
from checks import own_workflows, passing, repeats, retained, supervision, ways
from harness import command, tools
from harness.deployment import Deployment, build, deploy
from harness.emulator import Emulator
from harness.report import STOPPED, Check, Report, expect
from world import World

LOG_LINES = 100
LOG_LINES_OF_FUNCTION = 30

# One after the other: they close lanes that the others need.
BY_THEMSELVES: list[tuple[str, Callable[[World], None]]] = [
    ("a schedule calls the supervisor every minute", supervision.a_schedule_calls_them),
    ("nobody comes in without the right to", callers.only_the_authorised_come_in),
    ("an order of high priority has lanes of its own, and its caller waits for the end", ways.high_priority_goes_its_own_lane),
    ("a submission delivered too often: held, alert, resubmitted", letters.an_order_that_could_not_be_stored_is_held),
    ("poison on two queues: settled, alert", letters.what_nobody_can_read_is_written_down),
    ("compensated orders are posted again by a job", supervision.compensated_orders_are_posted_again_by_a_job),
]

# Side by side.
TOGETHER: list[tuple[str, Callable[[World], None]]] = [
    ("ten orders are processed, and a reply channel is told", ways.orders_are_processed),
    ("a declined payment: compensated", ways.a_declined_order_is_undone),
    ("an undo that is refused: held with an alert", ways.an_undo_that_is_refused_is_not_called_undone),
    ("cancelled by an operator: undone", ways.an_operator_cancels),
    ("erased by an administrator alone: no table has it", erased.an_administrator_erases_an_order),
    ("an application sees its own orders alone", callers.an_application_sees_its_own_orders_alone),
    ("each policy lets its own calls through, and no other", callers.each_policy_lets_its_calls_through),
    ("a command of an agent, a reply of a stranger: refused, alert", repeats.what_a_sender_may_not_send_is_refused),
    ("alarms are judged by the rules of CloudWatch", alarms.the_rules_are_those_of_cloudwatch),
    ("each of the 25 alarms tells the topic when it begins and when it is over", alarms.the_topic_is_told),
    ("alarms on metrics of AWS ring once and are quiet again", alarms.they_ring_for_metrics_of_aws),
    ("alarms on our own metrics ring once and are quiet again", alarms.they_ring_for_our_metrics),
]

# Side by side, each invocation with one message.
KILLED: list[tuple[str, Callable[[World], None]]] = [
    (f"{name} is killed at three moments: one effect each", functools.partial(kills.a_function_is_killed, name))
    for name in ("api", "submission", "scheduler", "agents")
]

# In sequence, because no other check may call a supervisor meanwhile.
DISTURBED: list[tuple[str, Callable[[World], object]]] = [
    ("supervisor is killed at three moments: each attempt is counted once", kills.a_supervisor_is_killed),
]

# Only with `--only`: they take minutes.
PASSING: list[tuple[str, Callable[[World], object]]] = [
    ("each call of AWS fails once, in each way: 5 s at the median", passing.a_passing_fault_costs_little),
    ("each call of a supervisor fails once, in each way: the same", passing.a_fault_of_a_supervisor_costs_little),
]

# The runs of the suites `callbacks` and `lines`, one after the other.
RUNS: list[tuple[str, Callable[[Report, World], None]]] = [
    ("Results that come later, at the address of the call", own_callbacks.are_tried),
    ("Orders with lines", own_lines.are_tried),
]

# One after the other: they apply a folder.
MANY: list[tuple[str, Callable[[World], object]]] = [
    ("forty agents of one folder: all are served, and no other waits for one that is down", many_agents.all_are_served),
]

BOOKS: list[tuple[str, Callable[[World], object]]] = [
    ("all queues and dead-letter queues are empty", audit.queues_are_empty),
    ("every order ended as it should", audit.every_order_ended),
    ("the numbers are those of the tables", audit.numbers_are_those_of_the_tables),
    ("every effect was made once, and what was undone is undone", audit.effects_were_made_once),
    ("nothing is left to look after", audit.watch_is_empty),
    (
        "the doctor finds what was changed by hand, and otherwise nothing wrong",
        doctor.it_finds_what_was_changed_by_hand_and_otherwise_nothing_wrong,
    ),
    ("the doctor as an operator", doctor.an_operator_sees_the_api),
    ("logs and metrics are well formed and hold no document", logs.logs_name_orders_and_keep_documents_out),
]

# Only with `--only`: it applies a folder of its own, and sets times back.
ALONE: list[tuple[str, Callable[[World], object]]] = [
    ("ended orders are deleted by time to live, with all that is of them", retained.ended_orders_are_deleted),
]

BOOKS_OF_TABLES = [check for check in BOOKS if check[1].__module__ == audit.__name__]

Checks = Callable[[Report, World, Path], None]
Titled = Sequence[tuple[str, Callable[[World], object]]]


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("deployed")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--build-only", action="store_true")
    part.add_argument("--checks-only", action="store_true")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only")
    only.add_argument("--update", action="store_true")
    only.add_argument("--update-from", type=Path)
    only.add_argument("--parameters", nargs="?", const="")
    parser.add_argument("--program")
    options = parser.parse_args()
    program = tools.stepwarden(options.program)
    for name in ("sam", "checkov", "awscli"):
        tools.environment(name)
    report = Report()
    if not options.checks_only:
        before_deployment(report)
    if report.failed == 0 and not options.build_only:
        with tempfile.TemporaryDirectory(prefix="stepwarden-deployed-", ignore_cleanup_errors=True) as folder:
            if options.parameters is not None:
                parameters.are_tried(report, Path(folder), program, options.parameters)
            else:
                deployed(report, Path(folder), program, chosen(options), earlier_version(options, Path(folder)))
    return report.close()


def chosen(options: argparse.Namespace) -> Checks:
    """The checks that the options ask for."""
    if options.only is not None:
        return functools.partial(only_with, options.only)
    return everything


def earlier_version(options: argparse.Namespace, folder: Path) -> Callable[[], Path] | None:
    """What gives the template of the earlier version, if the options ask for an update."""
    if options.update:
        return functools.partial(upgrade.copy_of_last_build, folder)
    return functools.partial(upgrade.build_of, options.update_from) if options.update_from else None


def before_deployment(report: Report) -> None:
    """The template by itself, and the build."""
    report.section("The template")
    report.all(
        [
            Check("sam validate --lint", template.validate),
            Check("cfn-lint", template.cfn_lint),
            Check("checkov", template.checkov),
            Check("CodeDeploy only where a gradual shift is asked for", template.codedeploy_is_asked_for),
            Check("sam build", build),
            Check("every program is small", template.sizes),
        ]
    )


def deployed(report: Report, folder: Path, program: Path, checks: Checks, earlier: Callable[[], Path] | None) -> None:
    """The emulator, the deployment and what is tried on it."""
    with Emulator(folder) as emulator:
        try:
            report.section("The deployment, on an emulator with IAM enforced")
            if checks is everything:
                title = "without services and stand-ins: refused, with what to do"
                report.check(title, functools.partial(template.services_are_needed, emulator))
            of_earlier = None
            if earlier is not None:
                of_earlier = report.check("the earlier version is built", earlier)
                if of_earlier is None:
                    return
                checks = functools.partial(only_upgrade, of_earlier)
            deployment = report.check("sam deploy", functools.partial(deploy, emulator, of_earlier))
            if deployment is not None:
                tried(report, deployment, program, folder, checks)
            if checks is everything:
                report.section("The store")
                report.check("conformance suite on the emulator", functools.partial(conformance.suite_passes, emulator))
        finally:
            if report.failed and not STOPPED.is_set():
                print(f"\nThe last lines of the emulator and its functions:\n{emulator.log_tail(LOG_LINES)}")


def tried(report: Report, deployment: Deployment, program: Path, folder: Path, checks: Checks) -> None:
    """The checks of a deployment."""
    world = report.check("callers, alerts and a reply channel", functools.partial(World, deployment, program))
    if world is None:
        return
    try:
        checks(report, world, folder)
    finally:
        if report.failed and not STOPPED.is_set():
            print(f"\nThe last lines of each function:\n{logs.tails(world, LOG_LINES_OF_FUNCTION)}")


def everything(report: Report, world: World, folder: Path) -> None:
    """The checks, in an order in which they do not disturb each other."""
    report.all(bound(BY_THEMSELVES, world))
    report.section("Side by side, with two supervisors at once all the time")
    with supervision.Supervisors(world) as supervisors:
        report.all_at_once(bound(TOGETHER, world))
    report.check("no supervisor failed", supervisors.went_well)
    report.section("Functions that are killed")
    disturbed(report, world, KILLED, DISTURBED)
    for title, are_tried in RUNS:
        report.section(title)
        are_tried(report, world)
    report.section("Forty agents of one folder, with no deployment between")
    report.all(bound(MANY, world))
    report.section("Workflows and services of one's own, with no deployment between")
    own_workflows.are_tried(report, world, folder)
    report.section("The books")
    report.all(bound(BOOKS, world))


def only_upgrade(earlier: Path, report: Report, world: World, _folder: Path) -> None:
    """The stack goes from the earlier version to this one and back."""
    report.section("Orders under way while the stack is updated, and rolled back")
    with supervision.Supervisors(world) as supervisors:
        upgrade.is_tried(report, world, earlier)
    report.check("no supervisor failed", supervisors.went_well)
    report.all(bound([check for check in BOOKS_OF_TABLES if check[1] is not audit.queues_are_empty], world))


def only_with(words: str, report: Report, world: World, _folder: Path) -> None:
    """The checks with these words in their title."""
    lists = (BY_THEMSELVES, TOGETHER, KILLED, DISTURBED + PASSING, MANY + ALONE)
    by_themselves, together, killed, by_calls, alone = ([one for one in checks if words in one[0]] for checks in lists)
    runs = [are_tried for title, are_tried in RUNS if words in title]
    found = by_themselves or together or killed or by_calls or runs or alone
    expect(bool(found), f"a check has {words!r} in its title")
    report.all(bound(by_themselves, world))
    with supervision.Supervisors(world):
        report.all_at_once(bound(together, world))
    disturbed(report, world, killed, by_calls)
    for are_tried in runs:
        are_tried(report, world)
    report.all(bound(alone, world))


def disturbed(report: Report, world: World, killed: Titled, others: Titled) -> None:
    """Functions that carry orders on are killed, beside supervisors; and then these others."""
    with supervision.Supervisors(world), world.one_at_a_time():
        report.all_at_once(bound(killed, world))
    report.all(bound(others, world))


def bound(checks: Titled, world: World) -> list[Check]:
    """The checks, on this world."""
    return [Check(title, functools.partial(check, world)) for title, check in checks]


if __name__ == "__main__":
    command.run(main)
