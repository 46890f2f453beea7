"""The emulator's own process. Started by `emulator.py` in the emulator's environment; not for use by hand.

It is `ministack`, corrected where it differs from AWS in a point that these tests rely on. It ends with the process
that started it.
"""

from __future__ import annotations

import ctypes
import json
import os
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
    """There an alarm has one metric, and one with an expression over several fails the deployment. It gets the first."""
    from ministack.services.cloudformation import provisioners

    as_it_was = provisioners._cw_metric_alarm_record

    def record(name: str, props: dict) -> dict:
        several = props.get("Metrics")
        if several:
            stat = next(one["MetricStat"] for one in several if "MetricStat" in one)
            single = {**stat["Metric"], "Statistic": stat["Stat"], "Period": stat["Period"]}
            props = {**{key: value for key, value in props.items() if key != "Metrics"}, **single}
        return as_it_was(name, props)

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
    interception.install()
    serve()


if __name__ == "__main__":
    main()
