"""A stack that is deleted with orders of every kind in its tables, and a new one that takes these over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import audit
from checks import logs
from checks.letters import letters
from checks.supervision import Supervisors
from harness.deployment import POLICIES, STACK, Deployment, client, deploy
from harness.emulator import Emulator
from harness.report import CheckFailed, expect, expect_equal, until
from harness.serve import ask
from harness.tools import ToolError
from world import World, step

# Its agents are services beside the stack: the stand-ins in it are deleted with it.
WORKFLOW = """name = "kept"
version = 1
[[step]]
name = "reserve"
agent = "stock"
[[step]]
name = "pay"
agent = "bank"
after = ["reserve"]
on_rejected = "hold"
[[step]]
name = "approve"
kind = "approval"
after = ["pay"]
when = "/Order/Approve exists"
wait_within = "1h"
[[step]]
name = "ship"
agent = "courier"
after = ["approve"]
complete_within = "30s"
"""
AGENTS = {"reserve": "stock", "pay": "bank", "ship": "courier"}
BY = {"By": "ann", "Reason": "the stack was deleted"}
PERSON = "kim"
# The courier has not done its work by the time that the stack is gone.
PENDING_MS = 90_000
SLOW_MS = 8_000
TABLES = ("Orders", "Tasks", "Memos", "Jobs", "Definitions", "DeadLetters", "Index", "Numbers")
LISTS = (f"/orders?correlation={PERSON}", "/orders?limit=100", "/workflows", "/configuration", "/dead-letters")
DELETED_S_MAX = 120.0
ENDED_S_MAX = 300.0
SUPERVISED_EVERY_S = 5.0


class Takeover:
    """The checks, one after the other."""

    def __init__(self) -> None:
        self._world: World
        self._services = ""
        # The orders by what is to be known of them.
        self._orders: dict[str, str] = {}
        self._shown: dict[str, object] = {}
        self._logged: set[str] = set()

    def begins(self, deployment: Deployment, program: Path, services: str) -> None:
        """A workflow is applied, and an order goes through it."""
        self._world, self._services = World(deployment, program), services
        agents = "".join(f'[agents.{name}]\nurl = "{services}/{name}"\n' for name in AGENTS.values())
        files = [{"Name": "stepwarden.toml", "Text": f'default = "kept"\n{agents}'}]
        files.append({"Name": "workflows/kept-1.toml", "Text": WORKFLOW})
        applied = self._world.operator.post("/configuration", {**BY, "Files": files})
        expect(applied.status // 100 == 2, f"{applied.status} {applied.body}")
        self._world.reach(self._post("processed", "Processed"), "Processed")

    def _post(self, kind: str, end: str, stand_in: dict[str, Any] | None = None, **members: object) -> str:
        self._orders[kind] = self._world.post(end, stand_in, Workflow="kept", CorrelationID=PERSON, **members)
        return self._orders[kind]

    def orders_of_every_kind(self) -> None:
        """One has ended compensated, one waits for people, one is held in Error, and two are under way. A dead letter
        is written down."""
        world = self._world
        compensated = self._post("compensated", "Compensated", {"courier": {"Decline": "no_such_street"}})
        held = self._post("held", "Compensated", {"bank": {"Decline": "card_declined"}})
        waiting = self._post("waiting", "Processed", Approve=True)
        # The tests' own keys are those of no role of the stack, so this is refused.
        forged = json.dumps({"Command": {"OrderID": compensated, "Action": "Cancel", "CommandID": "1", **BY}})
        world.sqs.send_message(QueueUrl=world.deployment.queue("scheduler"), MessageBody=forged)
        world.reach(compensated, "Compensated")
        world.reach(held, "Error")
        world.reach_step(waiting, "approve", ProcessState="Processing")
        until("the dead letter is written down", lambda: letters(world))
        self._post("pending", "Processed", {"courier": {"PendingMs": PENDING_MS}})
        self._post("slow", "Processed", {"courier": {"SlowMs": SLOW_MS}})
        for kind in ("pending", "slow"):
            world.reach_step(self._orders[kind], "ship", ProcessState="Processing")
        world.supervise()
        self._shown = self._look()
        self._logged = set(logs.own_lines(world, "supervisor"))

    def _look(self) -> dict[str, object]:
        """What the API shows of orders that nothing moves, and of all orders together."""
        still = [self._orders[kind] for kind in ("processed", "compensated", "held", "waiting")]
        paths = [f"/orders/{order_id}{part}" for order_id in still for part in ("", "/document")]
        shown: dict[str, object] = {path: self._world.operator.get(path).body for path in (*paths, *LISTS)}
        for path in LISTS[:2]:
            shown[path] = [order["OrderID"] for order in self._world.operator.get(path).body["Orders"]]
        shown["causes"] = [alert["Cause"] for alert in self._world.operator.get("/alerts").body["Alerts"]]
        return shown

    def stack_is_deleted(self) -> None:
        """Functions, queues, roles and the other tables are gone. Its callers had to lose its policies before."""
        deployment = self._world.deployment
        emulator = deployment.emulator
        cloudformation, iam = client(emulator, "cloudformation"), client(emulator, "iam")
        for arn in (deployment.outputs[policy] for policy in POLICIES):
            for user in iam.list_entities_for_policy(PolicyArn=arn)["PolicyUsers"]:
                iam.detach_user_policy(UserName=user["UserName"], PolicyArn=arn)
        stack = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]["StackId"]
        cloudformation.delete_stack(StackName=STACK)

        def deleted() -> bool:
            found = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
            expect(found["StackStatus"] != "DELETE_FAILED", f"{found.get('StackStatusReason')}")
            return bool(found["StackStatus"] == "DELETE_COMPLETE")

        until("the stack is deleted", deleted, DELETED_S_MAX)
        expect_equal("functions", client(emulator, "lambda").list_functions()["Functions"], [])
        expect_equal("queues", self._world.sqs.list_queues(QueueNamePrefix=STACK).get("QueueUrls", []), [])
        expect_equal("roles", iam.list_roles()["Roles"], [])
        expect_equal("tables", left(emulator), {deployment.table(name) for name in TABLES})
        groups = client(emulator, "logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/")["logGroups"]
        expect_equal("logs", [group["logGroupName"] for group in groups], [f"/aws/lambda/{STACK}-supervisor"])
        item = self._world.item("Tasks", "OrderID", self._orders["pending"])
        expect_equal("the order with the slow service", item["ProcessState"]["S"], "Processing")

    def wrong_list_is_refused(self) -> None:
        """One that lacks a table is told what is right, before anything is made."""
        deployment = self._world.deployment
        names = deployment.outputs["Tables"].split(",")
        try:
            deploy(deployment.emulator, None, {"Tables": ",".join([*names[:3], *names[4:]])})
        except ToolError as refused:
            expect("eight tables" in str(refused), f"it says what is right: {str(refused)[-1000:]}")
            return
        raise CheckFailed("it was deployed")

    def new_stack_takes_them(self) -> None:
        """It makes none of them, and shows what the other one showed."""
        old = self._world
        tables = old.deployment.outputs["Tables"]
        deployment = deploy(old.deployment.emulator, None, {"Tables": tables})
        self._world = World(deployment, old.program)
        self._world.ends = old.ends
        expect_equal("its output", deployment.outputs["Tables"], tables)
        own = {deployment.table(name) for name in ("Leases", "Services", "StandIns")}
        expect_equal("tables", left(deployment.emulator), {old.deployment.table(name) for name in TABLES} | own)
        for path, found in self._look().items():
            expect_equal(path, found, self._shown[path])

    def old_orders_end(self) -> None:
        """Those under way are found by the supervisor, as their messages are lost. People go on with the others."""
        world = self._world
        expect_equal("approve", world.operator.post(f"/orders/{self._orders['waiting']}/approve", BY).status, 202)
        world.command(self._orders["held"], "cancel", BY["Reason"])
        until("it is taken up", lambda: world.state(self._orders["held"]) != "Error")
        with Supervisors(world, SUPERVISED_EVERY_S) as supervisors:
            for order_id, end in world.ends.items():
                world.reach(order_id, end, ENDED_S_MAX)
        expect_equal("what supervisors failed of", supervisors.errors, [])
        attempts = step(world.task(self._orders["pending"]) or {}, "ship")["Attempt"]
        expect(attempts > 1, f"the courier is asked in another attempt, found {attempts}")

    def new_orders_go_through(self) -> None:
        """By the workflow that was applied to the other stack. Each order of both has each effect once."""
        world = self._world
        new = [world.post("Processed", CorrelationID=PERSON) for _ in range(3)]
        for order_id in new:
            world.reach(order_id, "Processed")
        found = {order["OrderID"] for order in world.operator.get(LISTS[0]).body["Orders"]}
        expect_equal("orders that are found", found, set(world.ends))
        books = ask("GET", f"{self._services}/effects")[1]
        for order_id, end in world.ends.items():
            for name, agent in AGENTS.items():
                keys = [f"{order_id}/{name}{suffix}" for suffix in ("", "/undo")]
                done, undone = (books[agent]["Keys"].get(key, {}).get("Effects", 0) for key in keys)
                kept = 1 if end == "Processed" else 0
                words = f"{name} of {order_id}, {end}: done {done}, undone {undone}"
                expect(done <= 1 and done - undone == kept, words)

    def books_are_right(self) -> str:
        """The indexes, the numbers and the audit stream, as if there had been one stack."""
        world = self._world
        audit.every_order_ended(world)
        audit.watch_is_empty(world)
        told = audit.numbers_are_those_of_the_tables(world)
        lines = set(logs.own_lines(world, "supervisor"))
        expect(self._logged <= lines, "the log has what the other stack wrote")
        for order_id in world.ends:
            expect(any(order_id in line and '"audit"' in line for line in lines), f"the audit stream has {order_id}")
        return told


def left(emulator: Emulator) -> set[str]:
    """The tables that are there."""
    return set(client(emulator, "dynamodb").list_tables()["TableNames"])
