"""Supervisors: on a schedule, two at once all the time, and with a job to carry out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import ClientError
from harness.deployment import ALIAS, Deployment, client
from harness.report import expect, expect_equal, until
from world import World


# The lease of a run, the time between two runs, and when the emulator makes the first at the latest.
RUN = "supervisor/run"
PERIOD_S = 60
FIRES_WITHIN_S = 100.0


class Supervisors:
    """Runs two supervisors at the same time, again and again, and takes the leases from the one that has them: then
    both believe that they lead, and still every attempt must be counted once.
    """

    def __init__(self, world: World, pause_s: float = 1.0) -> None:
        self.rounds = 0
        self.errors: list[str] = []
        self._world = world
        self._pause_s = pause_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisors")

    def __enter__(self) -> Supervisors:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def went_well(self) -> None:
        """Fails where a supervisor ended with an error."""
        expect(not self.errors, f"{len(self.errors)} failures in {self.rounds} rounds, such as {self.errors[:1]}")
        expect(self.rounds > 3, f"more than 3 rounds, found {self.rounds}")

    def _run(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            while not self._end.wait(self._pause_s):
                first = pool.submit(self._try, self._world.supervise)
                self._try(lambda: take_leases(self._world))
                second = pool.submit(self._try, self._world.supervise)
                first.result()
                second.result()
                self.rounds += 1

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            self.errors.append(str(error))


def refused(call: Callable[[], object]) -> bool:
    """Whether a call is refused for want of a right. What fails for another reason was let through."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"]).startswith("AccessDenied")
    return False


def take_leases(world: World) -> None:
    """Deletes all leases, as if their terms were over."""
    table = world.deployment.table("Leases")
    for item in world.dynamo.scan(TableName=table, ConsistentRead=True)["Items"]:
        world.dynamo.delete_item(TableName=table, Key={"Name": item["Name"]})


def a_schedule_calls_them(world: World) -> None:
    """Every minute. From then on it rests: the checks call supervisors themselves, and count what they do."""
    found = client(world.deployment.emulator, "scheduler").get_schedule(Name=world.deployment.function("supervisor"))
    expect_equal("state and rate", (found["State"], found["ScheduleExpression"]), ("ENABLED", "rate(1 minute)"))
    arn = world.lambdas.get_alias(FunctionName=world.deployment.function("supervisor"), Name=ALIAS)["AliasArn"]
    expect_equal("whom it calls", found["Target"]["Arn"], arn)
    switch_schedule(world, "DISABLED")


def the_schedule_fires_by_itself(deployment: Deployment) -> str:
    """Where nobody else calls a supervisor: each run renews its lease. The emulator does not ask what the role of a schedule
    may do, so the role is tried with keys of its own."""
    dynamo, table = client(deployment.emulator, "dynamodb"), deployment.table("Leases")
    found = client(deployment.emulator, "scheduler").get_schedule(Name=deployment.function("supervisor"))

    def renewed_s(after_s: float) -> float | None:
        lease = dynamo.get_item(TableName=table, Key={"Name": {"S": RUN}}).get("Item")
        at_s = int(lease["RenewedAt"]["N"]) / 1_000 if lease else 0.0
        return at_s if at_s > after_s else None

    first_s = until("the lease of a run", lambda: renewed_s(0.0), FIRES_WITHIN_S)
    after_s = until("the lease of the next run", lambda: renewed_s(first_s), FIRES_WITHIN_S) - first_s
    expect(abs(after_s - PERIOD_S) < PERIOD_S / 4, f"a run a minute, found one after {after_s:.0f} s")
    arn = found["Target"]["RoleArn"]
    keys = client(deployment.emulator, "sts").assume_role(RoleArn=arn, RoleSessionName="schedule")["Credentials"]
    names = {"AWS_ACCESS_KEY_ID": "AccessKeyId", "AWS_SECRET_ACCESS_KEY": "SecretAccessKey", "AWS_SESSION_TOKEN": "SessionToken"}
    lambdas = client(deployment.emulator, "lambda", {name: keys[key] for name, key in names.items()})

    def calls(function: str) -> Callable[[], object]:
        return lambda: lambdas.invoke(FunctionName=deployment.live(function), Payload=b"{}")

    others = ("api", "submission", "scheduler", "agents")
    may = {function for function in ("supervisor", *others) if not refused(calls(function))}
    expect_equal("functions that the schedule may call", may, {"supervisor"})
    iam, role = client(deployment.emulator, "iam"), arn.rpartition("/")[2]
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        iam.delete_role_policy(RoleName=role, PolicyName=policy)
    expect(refused(calls("supervisor")), "without its policy the schedule may not call the supervisor")
    return f"after {after_s:.0f} s"


def switch_schedule(world: World, state: str) -> None:
    """Has the supervisors' schedule rest, or call them again."""
    schedules = client(world.deployment.emulator, "scheduler")
    found = schedules.get_schedule(Name=world.deployment.function("supervisor"))
    kept = {key: found[key] for key in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
    schedules.update_schedule(**kept, State=state)


def compensated_orders_are_posted_again_by_a_job(world: World) -> None:
    """Each becomes one new order, whose card is declined again."""
    declined = {"payment": {"Decline": "card_declined"}}
    old = [world.post("Compensated", declined) for _ in range(2)]
    since = world.reach(old[0], "Compensated")["SubmittedAt"]
    world.reach(old[1], "Compensated")
    selector = {"ReasonCode": "rejected", "Step": "charge-payment", "FailedSince": since}
    author = {"By": "ann", "Reason": "the bank is back"}
    plan = {**author, "Action": "Again", "Selector": selector, "Canary": 2, "StopAtFailedPercent": 100}
    planned = world.operator.post("/bulk", plan)
    expect_equal("the plan", (planned.status, planned.body.get("DryRun", {}).get("Matching")), (201, 2))
    job = f"/bulk/{planned.body['JobID']}"
    expect_equal("its start", world.operator.post(f"{job}/start", author).status, 202)

    def done() -> dict[str, int] | None:
        world.supervise()
        found = world.operator.get(job).body
        return dict(found["Tally"]) if found["State"] == "Done" else None

    tally = until("the job is done", done, 120, pause_s=2.0)
    expect_equal("begun and failed again", (tally["Begun"], tally["FailedAgain"]), (2, 2))
    for order_id in old:
        again = world.operator.get(f"/orders/{order_id}/document").body["Again"]
        world.reach(world.expect_end(again, "Compensated"), "Compensated")
