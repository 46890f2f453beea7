"""The emulator's own process. Started by `emulator.py` in the emulator's environment; not for use by hand.

It is `ministack`, corrected where it differs from AWS in a point that these tests rely on. It ends with the process
that started it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import socketserver
import sys
import threading
from pathlib import Path
from typing import Any

# The emulator's process gets no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import interception  # noqa: E402

PR_SET_PDEATHSIG = 1


def end_with_parent(parent_pid: int) -> None:
    """Has the kernel end this process when its parent dies, also where the parent was killed and cannot clean up."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        sys.exit("the process that started the emulator is gone")


def answer_at_once() -> None:
    """Small packets of the Lambda runtime API wait for more to come, which costs each invocation 40 ms."""
    socketserver.StreamRequestHandler.disable_nagle_algorithm = True


def batches_need_the_right_to_one() -> None:
    """On AWS `sqs:SendMessage` is the right to SendMessageBatch as well, and there is no other."""
    from ministack.core import iam_actions

    as_it_was = iam_actions.extract_iam_action

    def action(*arguments: object) -> str | None:
        found = as_it_was(*arguments)
        return found.removesuffix("Batch") if found and found.startswith("sqs:") else found

    iam_actions.extract_iam_action = action


def take_concurrency_for_a_number() -> None:
    """A parameter's value is a text there, and to compare it with a count ends every look at the queues in an error. A
    client is given the number as well."""
    from ministack.services import lambda_svc

    as_it_was = lambda_svc._sqs_esm_concurrency

    def concurrency(mapping: dict, *arguments: object) -> int:
        scaling = mapping.get("ScalingConfig") or {}
        if "MaximumConcurrency" in scaling:
            scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
        return int(as_it_was(mapping, *arguments))

    lambda_svc._sqs_esm_concurrency = concurrency


def windows_name_their_shard() -> None:
    """On AWS the event of a tumbling window names the shard of a DynamoDB stream, and an answer without a state is a
    failure. There the window is left out, and a table has one shard."""
    from ministack.services import lambda_svc

    as_it_was = lambda_svc._execute_function

    def execute(function: dict, event: dict, *arguments: object, **more: object) -> dict:
        records = event.get("Records") if isinstance(event, dict) else None
        if not records or records[0].get("eventSource") != "aws:dynamodb" or "shardId" in event:
            return as_it_was(function, event, *arguments, **more)
        window = {"state": {}, "shardId": "shardId-1", "eventSourceARN": records[0]["eventSourceARN"]}
        result = as_it_was(function, {**event, **window}, *arguments, **more)
        body = result.get("body")
        answer = json.loads(body) if isinstance(body, (str, bytes)) else body
        if not result.get("error") and not (isinstance(answer, dict) and "state" in answer):
            result = {**result, "error": True, "body": {"errorType": "NoState", "errorMessage": str(answer)}}
        return result

    lambda_svc._execute_function = execute


def messages_name_their_sender() -> None:
    """On AWS the sender of a message is the unique id of a role with its session. There it is always the account."""
    from ministack.core.iam_evaluator import caller_arn
    from ministack.services import lambda_svc, sqs, sts

    sent_as_it_was, passed_as_it_was = sqs._build_send_sys_attrs, lambda_svc._dispatch_esm_batch

    def sent(*arguments: object) -> dict:
        kind, *names = caller_arn().rsplit(":", 1)[-1].split("/")
        if kind not in ("role", "assumed-role"):
            return sent_as_it_was(*arguments)
        name = names[-1] if kind == "role" else names[-2]
        role = sts._role_id(f"arn:aws:iam::{os.environ['MINISTACK_ACCOUNT_ID']}:role/{name}")
        return {**sent_as_it_was(*arguments), "SenderId": f"{role}:{names[-1]}"}

    def passed(esm_id: str, run: object, *arguments: Any) -> None:
        _esm, _function, event, batch, *_ = arguments
        senders = {message["id"]: message["sys"]["SenderId"] for message in batch if "sys" in message}
        for record in event["Records"]:
            record["attributes"]["SenderId"] = senders.get(record["messageId"], record["attributes"]["SenderId"])
        passed_as_it_was(esm_id, run, *arguments)

    sqs._build_send_sys_attrs, lambda_svc._dispatch_esm_batch = sent, passed


def alarms_may_have_several_metrics() -> None:
    """There an alarm has one metric, and one with an expression over several fails the deployment."""
    from ministack.services.cloudformation import provisioners

    as_it_was = provisioners._cw_metric_alarm_record
    single = ("MetricName", "Namespace", "Statistic", "Period", "Dimensions")

    def record(name: str, props: dict) -> dict:
        several = props.get("Metrics")
        if not several:
            return as_it_was(name, props)
        props = {**{key: value for key, value in props.items() if key != "Metrics"}, "MetricName": "-", "Namespace": "-"}
        found = as_it_was(name, props)
        return {**{key: value for key, value in found.items() if key not in single}, "Metrics": several}

    provisioners._cw_metric_alarm_record = record


def expired_items_reach_the_stream() -> None:
    """On AWS the stream of a table has what its time to live deletes. There it does not."""
    from ministack.services import dynamodb

    as_it_was, built_as_it_was = dynamodb._remove_item, dynamodb._build_change_record
    (reaper,) = (thread for thread in threading.enumerate() if thread.name == "dynamodb-ttl-reaper")

    def removed(table: dict, *key: object) -> dict | None:
        item = as_it_was(table, *key)
        if item is not None and threading.current_thread() is reaper:
            dynamodb._emit_stream_event(table["TableName"], "REMOVE", item, None)
        return item

    def built(*arguments: object) -> dict:
        record = built_as_it_was(*arguments)
        if threading.current_thread() is reaper:
            record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        return record

    dynamodb._remove_item, dynamodb._build_change_record = removed, built


def keys_and_networks_are_kept() -> None:
    """There CloudFormation makes tables and functions without their key, and functions without their network."""
    from ministack.services import dynamodb, lambda_svc
    from ministack.services.cloudformation import provisioners

    tables, functions = (provisioners._RESOURCE_HANDLERS[f"AWS::{kind}"] for kind in ("DynamoDB::Table", "Lambda::Function"))
    table_as_it_was, function_as_it_was = tables["create"], functions["create"]

    def table(logical_id: str, properties: dict, *arguments: object) -> tuple:
        made = tuple(table_as_it_was(logical_id, properties, *arguments))
        asked = properties.get("SSESpecification", {})
        described = dynamodb._sse_description_from_spec({**asked, "Enabled": asked.get("SSEEnabled", False)})
        dynamodb._tables[made[0]]["SSEDescription"] = described
        return made

    def function(logical_id: str, properties: dict, *arguments: object) -> tuple:
        made = tuple(function_as_it_was(logical_id, properties, *arguments))
        config = lambda_svc._functions[made[0]]["config"]
        config["VpcConfig"] = lambda_svc._vpc_config_with_id(properties.get("VpcConfig"))
        config["KMSKeyArn"] = properties.get("KmsKeyArn", "")
        return made

    tables["create"], functions["create"] = table, function


def sources_follow_their_alias() -> None:
    """There an update that gives an event source an alias, or takes it away, changes its ARN and not whom it calls."""
    from ministack.services import lambda_svc
    from ministack.services.cloudformation import provisioners

    handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"]
    as_it_was = handlers["update"]

    def update(physical_id: str, *arguments: object) -> tuple:
        answer = as_it_was(physical_id, *arguments)
        mapping = lambda_svc._esms[answer[0]]
        mapping["Qualifier"] = lambda_svc._resolve_name_and_qualifier(mapping["FunctionArn"])[1]
        return tuple(answer)

    handlers["update"] = update


def aliases_share_calls() -> None:
    """On AWS an alias may send a share of its calls to another version. There it does not. A client that invokes an
    alias gets its main version still, and event sources, the gateway and the schedule get either."""
    from ministack.services import lambda_svc

    as_it_was = lambda_svc._effective_func_record_for_qualifier

    def effective(function: dict | None, qualifier: str | None) -> tuple:
        alias = (function or {}).get("aliases", {}).get(qualifier, {})
        for version, weight in alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {}).items():
            if random.random() < weight:
                return tuple(as_it_was(function, version))
        return tuple(as_it_was(function, qualifier))

    lambda_svc._effective_func_record_for_qualifier = effective


def invocations_outlive_updates() -> None:
    """On AWS an invocation goes on when its function gets another program or other variables, and its process takes
    no more of them. There the process is killed at once."""
    from ministack.core import lambda_runtime
    from ministack.services import lambda_svc

    invalidated_as_it_was, released_as_it_was = lambda_svc.invalidate_worker, lambda_svc.release_worker
    retired: list = []

    def invalidated(function: str, qualifier: str | None = None, **scope: Any) -> None:
        # Of a published version only a process that failed is given up so.
        if qualifier == "$LATEST":
            with lambda_runtime._lock:
                for key, workers in lambda_runtime._workers.items():
                    if key.endswith(f":{function}:$LATEST"):
                        retired.extend(worker for worker in workers if worker.in_use)
                        workers[:] = [worker for worker in workers if not worker.in_use]
        invalidated_as_it_was(function, qualifier, **scope)

    def released(worker: Any) -> None:
        released_as_it_was(worker)
        if worker in retired:
            retired.remove(worker)
            lambda_runtime.kill_workers([worker])

    lambda_svc.invalidate_worker, lambda_svc.release_worker = invalidated, released


def main() -> None:
    """Serves until told to stop; everything else comes from the environment."""
    end_with_parent(int(sys.argv.pop(1)))
    answer_at_once()
    from ministack.app import main as serve  # reads the environment when it is imported

    batches_need_the_right_to_one()
    take_concurrency_for_a_number()
    windows_name_their_shard()
    messages_name_their_sender()
    alarms_may_have_several_metrics()
    expired_items_reach_the_stream()
    keys_and_networks_are_kept()
    sources_follow_their_alias()
    aliases_share_calls()
    invocations_outlive_updates()
    interception.install()
    serve()


if __name__ == "__main__":
    main()
