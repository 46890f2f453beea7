//! The queues: their delivery limits, and how long they keep dead letters.

use domain::limits::{DOCUMENT_BYTES_MAX, OUTPUTS_BYTES_MAX};
use serde_json::{Value, json};

use super::cloudformation::{Resource, Template};

const QUEUE: &str = "AWS::SQS::Queue";
const WHOSE: [(&str, u64); 3] = [("Submission", 1_000), ("Scheduler", 1_000), ("Agents", 1_000)];

fn number(queue: Resource<'_>, name: &str) -> u64 {
    queue.properties[name].as_u64().unwrap_or_else(|| panic!("{} has no {name}", queue.id))
}

#[test]
fn both_priorities_deliver_so_often_before_they_give_up() {
    let template = Template::main();
    for (whose, deliveries) in WHOSE {
        for priority in ["Queue", "HighQueue"] {
            let id = format!("{whose}{priority}");
            let redrive = &template.resource(&id).properties["RedrivePolicy"];
            assert_eq!(redrive["maxReceiveCount"], json!(deliveries), "{id}");
            assert_eq!(
                redrive["deadLetterTargetArn"],
                json!({"Fn::GetAtt": format!("{whose}DeadLetters.Arn")}),
                "{id}"
            );
        }
    }
}

#[test]
fn dead_letters_are_kept_as_long_as_can_be_and_longer_than_messages() {
    const DAY_S: u64 = 24 * 60 * 60;
    let template = Template::main();
    for (whose, _) in WHOSE {
        let dead = format!("{whose}DeadLetters");
        let kept_s = number(template.resource(&dead), "MessageRetentionPeriod");
        // A copy begins anew, and no submission may be older than 14 days (rules 44 and 47).
        let queued_s = number(template.resource(&format!("{whose}Queue")), "MessageRetentionPeriod");
        let expected_s = if whose == "Submission" { 14 * DAY_S - queued_s } else { 14 * DAY_S };
        assert_eq!(kept_s, expected_s, "{dead}");
        for priority in ["Queue", "HighQueue"] {
            let id = format!("{whose}{priority}");
            assert!(number(template.resource(&id), "MessageRetentionPeriod") < kept_s, "{id}");
        }
    }
}

#[test]
fn a_message_that_nobody_can_handle_is_a_dead_letter_before_its_time_is_up() {
    let template = Template::main();
    for (whose, deliveries) in WHOSE {
        for priority in ["Queue", "HighQueue"] {
            let id = format!("{whose}{priority}");
            let queue = template.resource(&id);
            let longest_s = deliveries * number(queue, "VisibilityTimeout");
            assert!(longest_s < number(queue, "MessageRetentionPeriod"), "{id}: {longest_s} s");
        }
    }
}

#[test]
fn a_dead_letter_queue_takes_dead_letters_of_its_own_queues_only() {
    let template = Template::main();
    for (whose, _) in WHOSE {
        let dead = format!("{whose}DeadLetters");
        let allow = &template.resource(&dead).properties["RedriveAllowPolicy"];
        assert_eq!(allow["redrivePermission"], "byQueue", "{dead}");
        let arns = ["Queue", "HighQueue"].map(|queue| format!("{whose}{queue}")).map(|priority| {
            let redrive = &template.resource(&priority).properties["RedrivePolicy"]["deadLetterTargetArn"];
            assert_eq!(*redrive, json!({"Fn::GetAtt": format!("{dead}.Arn")}), "{priority}");
            let name = template.resource(&priority).properties["QueueName"]["Fn::Sub"].as_str().unwrap().to_owned();
            json!({"Fn::Sub": format!("arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:{name}")})
        });
        assert_eq!(allow["sourceQueueArns"], Value::from_iter(arns), "{dead}");
    }
}

#[test]
fn every_queue_takes_a_request_with_the_largest_document_and_outputs() {
    let template = Template::main();
    let largest = DOCUMENT_BYTES_MAX + OUTPUTS_BYTES_MAX;
    for queue in template.of_kind(QUEUE) {
        assert!(number(queue, "MaximumMessageSize") > largest as u64, "{}", queue.id);
    }
}
