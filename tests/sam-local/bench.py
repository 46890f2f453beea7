"""What the functions in containers work on, and what a check looks at: the tables and queues of a deployment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boto3.dynamodb.types import TypeDeserializer
from harness.engine import Engine
from harness.deployment import ALIAS, Deployment, client, deploy
from harness.emulator import ACCOUNT, Emulator
from harness.inbox import subscribe_to_alerts
from harness.report import expect
from harness.tools import ROOT
from local import Sam

# The functions in the template, and the last part of their deployed names.
FUNCTIONS = {
    "Api": "api",
    "Submission": "submission",
    "Scheduler": "scheduler",
    "AgentsFunction": "agents",
    "Supervisor": "supervisor",
    "StandInServices": "stand-ins",
}
# What stands for the stack's id in `sam local`, and so for the token of the stand-ins.
TOKEN = "51af3dc0-da77-11e4-872e-1234567db123"

# The sender of all messages in infra/events.
SENDERS = {"System": ["AIDAEXAMPLE"], "Agents": "none"}


class Bench:
    """A deployment whose functions stand still, so that those in containers do the work."""

    def __init__(self, engine: Engine, emulator: Emulator, folder: Path) -> None:
        # A local caller has no signature, and so no role.
        self.deployment: Deployment = deploy(emulator, others={"IamRoles": "{}"})
        self.emulator = emulator
        self.sqs: Any = client(emulator, "sqs")
        self.dynamo: Any = client(emulator, "dynamodb")
        self.lambdas: Any = client(emulator, "lambda")
        self.sample = json.loads((ROOT / "infra" / "examples" / "order.json").read_text())
        self._feed(enabled=False)
        self._trust_the_account()
        client(emulator, "scheduler").delete_schedule(Name=self.deployment.function("supervisor"))
        self._alerts = subscribe_to_alerts(self.deployment)
        variables = folder / "variables.json"
        variables.write_text(json.dumps({name: self._variables(name) for name in FUNCTIONS}))
        self.sam = Sam(engine, emulator.url, variables, folder)

    # ---- functions

    def failures(self, function: str, event: str) -> list[str]:
        """The messages of a sample batch that a function did not deal with."""
        return [one["itemIdentifier"] for one in self.sam.invoke(function, event)["batchItemFailures"]]

    def feed_deployed_functions(self) -> None:
        """Lets the deployed functions take what is on their queues, from now on."""
        self._feed(enabled=True)

    # ---- tables

    def item(self, table: str, order_id: str) -> dict[str, Any]:
        """The item of an order."""
        key = {"OrderID": {"S": order_id}}
        found = self.dynamo.get_item(TableName=self.deployment.table(table), Key=key, ConsistentRead=True)
        expect("Item" in found, f"{table} holds no {order_id}")
        return {name: TypeDeserializer().deserialize(value) for name, value in found["Item"].items()}

    def brief(self, order_id: str) -> tuple[str, list[str]]:
        """The state of an order, and state and attempt of each step."""
        task = self.item("Tasks", order_id)
        return task["ProcessState"], [f"{step['ProcessState']} #{step['Attempt']}" for step in task["Steps"]]

    def watch_now(self, order_id: str) -> None:
        """Has the supervisor look at an order at its next run, earlier than it has to."""
        self.dynamo.update_item(
            TableName=self.deployment.table("Tasks"),
            Key={"OrderID": {"S": order_id}},
            UpdateExpression="SET WatchAt = :early",
            ExpressionAttributeValues={":early": {"N": "1"}},
        )

    def stand_in_effects(self, key: str) -> int:
        """How often a stand-in did what it was asked for under a key."""
        name = self.deployment.outputs["StandInsTableName"]
        found = self.dynamo.get_item(TableName=name, Key={"Key": {"S": key}}, ConsistentRead=True)
        expect("Item" in found, f"the stand-ins know no {key}")
        return int(found["Item"]["ForwardEffects"]["N"])

    # ---- queues

    def taken(self, queue: str) -> list[dict[str, Any]]:
        """The messages of a queue's normal lane, which are then gone."""
        return self._take(self.deployment.queue(queue))

    def alerts(self) -> list[tuple[str, str]]:
        """Type and order of the alerts that the topic passed on."""
        return [(event["type"], event["subject"]) for event in self._alerts.all()]

    def print_logs(self, lines: int) -> None:
        """What the emulator and the functions wrote last."""
        print(f"\nThe last {lines} lines of the emulator:\n{self.emulator.log_tail(lines)}")
        for log in (self.sam.log, self.sam.folder / "start-api.log"):
            if log.exists():
                last = log.read_text(errors="replace").splitlines()[-lines:]
                print(f"\nThe last {lines} lines of {log.name}:\n" + "\n".join(last))

    def _take(self, url: str) -> list[dict[str, Any]]:
        bodies = []
        while True:
            found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            if not found.get("Messages"):
                return bodies
            for message in found["Messages"]:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(json.loads(message["Body"]))

    def _feed(self, *, enabled: bool) -> None:
        for mapping in self.lambdas.list_event_source_mappings()["EventSourceMappings"]:
            self.lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def _trust_the_account(self) -> None:
        """No message has a role as its sender here: the emulator enforces none, and names the account."""
        name = self.deployment.function("scheduler")
        variables = self.lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        variables.pop("AGENT_SENDERS", None)
        variables["SENDERS"] = json.dumps({"System": [ACCOUNT], "Agents": ACCOUNT})
        self.lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
        version = self.lambdas.publish_version(FunctionName=name)["Version"]
        self.lambdas.update_alias(FunctionName=name, Name=ALIAS, FunctionVersion=version)

    def _variables(self, function: str) -> dict[str, str]:
        """What a function is told when deployed, and where the emulator is."""
        name = self.deployment.function(FUNCTIONS[function])
        variables = self.lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        told = {**variables, "AWS_ENDPOINT_URL": self.emulator.url}
        # What is not told comes from the template.
        own = {"StandInServices": {"STANDINS_TOKEN": TOKEN}, "Scheduler": {"SENDERS": json.dumps(SENDERS)}}
        return {**told, **own.get(function, {})}
