//! Queues: there, with a way for what is delivered too often, and read by their function.

use std::collections::BTreeSet;

use super::shapes::{Function, Mapping, QueueAttributes};
use crate::commands::doctor::finding::Finding;
use serde::Deserialize;

/// A message comes again no sooner than after so many times its function's time-out.
const VISIBILITY_FACTOR: u64 = 6;
/// The queue of alerts that could not be delivered. People read it, and no function.
const ALERTS: &str = "-alerts-dead";
const BATCH_FAILURES: &str = "ReportBatchItemFailures";

/// A queue as it was found.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: String,
    arn: String,
    visibility_s: u64,
    waiting: u64,
    dead_letters: Option<String>,
}

#[derive(Deserialize)]
struct Redrive {
    #[serde(rename = "deadLetterTargetArn")]
    target: String,
}

impl Queue {
    /// Of the last part of its URL and what it tells of itself.
    pub(super) fn of(url: &str, QueueAttributes { attributes }: &QueueAttributes) -> Self {
        let number = |name: &str| attributes.get(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        let redrive = attributes.get("RedrivePolicy").and_then(|text| serde_json::from_str::<Redrive>(text).ok());
        Self {
            name: url.rsplit('/').next().unwrap_or(url).to_owned(),
            arn: attributes.get("QueueArn").cloned().unwrap_or_default(),
            visibility_s: number("VisibilityTimeout"),
            waiting: number("ApproximateNumberOfMessages"),
            dead_letters: redrive.map(|redrive| redrive.target),
        }
    }
}

/// A finding for each queue.
pub(super) fn judge(queues: &[Queue], mappings: &[Mapping], functions: &[Function]) -> Vec<Finding> {
    let dead: BTreeSet<&str> = queues.iter().filter_map(|queue| queue.dead_letters.as_deref()).collect();
    let arns: BTreeSet<&str> = queues.iter().map(|queue| &*queue.arn).collect();
    let judged = queues.iter().map(|queue| {
        if queue.name.ends_with(ALERTS) {
            return undelivered(queue);
        }
        let mut faults = Vec::new();
        let is_dead = dead.contains(&*queue.arn);
        match &queue.dead_letters {
            Some(target) if !arns.contains(&**target) => faults.push(format!("its dead letters go to {target}")),
            None if !is_dead => faults.push("it has no dead-letter queue".to_owned()),
            Some(_) | None => {}
        }
        faults.extend(read_by(queue, mappings, functions));
        let check = format!("queue {}", queue.name);
        if !faults.is_empty() {
            return Finding::wrong(check, faults.join("; "), DEPLOY);
        }
        if is_dead && queue.waiting > 0 {
            let found = format!("{} dead letters wait for the supervisor", queue.waiting);
            return Finding::warning(
                check,
                found,
                "look at them with `stepwarden dead-letters` and at the supervisor's log",
            );
        }
        Finding::ok(check, format!("{} messages, comes again after {} s", queue.waiting, queue.visibility_s))
    });
    judged.collect()
}

fn undelivered(queue: &Queue) -> Finding {
    let check = format!("queue {}", queue.name);
    if queue.waiting == 0 {
        return Finding::ok(check, "every alert was delivered");
    }
    let found = format!("{} alerts could not be delivered", queue.waiting);
    let to_do = "read and delete them there; `stepwarden alerts` shows what is on. Mend the topic or its subscription";
    Finding::warning(check, found, to_do)
}

pub(super) const DEPLOY: &str = "deploy the template again; somebody changed this by hand";

/// What is wrong with how a queue is read.
fn read_by(queue: &Queue, mappings: &[Mapping], functions: &[Function]) -> Vec<String> {
    let Some(mapping) = mappings.iter().find(|mapping| mapping.event_source_arn == queue.arn) else {
        return vec!["no function reads it".to_owned()];
    };
    let mut faults = Vec::new();
    // What is being changed reads on, or is about to.
    if !matches!(mapping.state.as_str(), "Enabled" | "Enabling" | "Updating" | "Creating") {
        faults.push(format!("its event source mapping is {}", mapping.state));
    }
    if !mapping.function_response_types.iter().any(|kind| kind == BATCH_FAILURES) {
        faults.push(format!("its event source mapping lacks {BATCH_FAILURES}, so one bad message fails its batch"));
    }
    match functions.iter().find(|function| function.is_named_by(&mapping.function_arn)) {
        Some(function) if queue.visibility_s < VISIBILITY_FACTOR * function.timeout => faults.push(format!(
            "messages come again after {} s, less than {VISIBILITY_FACTOR} times the {} s of {}",
            queue.visibility_s, function.timeout, function.function_name
        )),
        Some(_) => {}
        None => faults.push(format!("it is read by {}, which is not of this stack", mapping.function_arn)),
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::doctor::finding::State;

    const ARN: &str = "arn:aws:sqs:eu-central-1:1:";

    fn queue(name: &str, visibility_s: u32, waiting: u32, dead_letters: Option<&str>) -> Queue {
        let mut attributes = json!({
            "QueueArn": format!("{ARN}{name}"), "VisibilityTimeout": visibility_s.to_string(),
            "ApproximateNumberOfMessages": waiting.to_string(),
        });
        if let Some(target) = dead_letters {
            attributes["RedrivePolicy"] =
                json!({"deadLetterTargetArn": format!("{ARN}{target}"), "maxReceiveCount": 10}).to_string().into();
        }
        let attributes = serde_json::from_value(json!({ "Attributes": attributes })).unwrap();
        Queue::of(&format!("https://sqs.eu-central-1.amazonaws.com/1/{name}"), &attributes)
    }

    fn mapping(queue: &str, state: &str, kinds: &[&str]) -> Mapping {
        serde_json::from_value(json!({
            "EventSourceArn": format!("{ARN}{queue}"), "State": state, "FunctionResponseTypes": kinds,
            "FunctionArn": "arn:aws:lambda:eu-central-1:1:function:s-scheduler",
        }))
        .unwrap()
    }

    fn function() -> Function {
        serde_json::from_value(json!({
            "FunctionName": "s-scheduler", "FunctionArn": "arn:aws:lambda:eu-central-1:1:function:s-scheduler",
            "Timeout": 30,
        }))
        .unwrap()
    }

    fn judged(queues: &[Queue], mappings: &[Mapping]) -> Vec<Finding> {
        judge(queues, mappings, &[function()])
    }

    /// Spoils queues or mappings; words of what is told then.
    type Fault = (fn(&mut Vec<Queue>, &mut Vec<Mapping>), &'static str);

    fn well() -> (Vec<Queue>, Vec<Mapping>) {
        let queues =
            vec![queue("s-scheduler", 180, 3, Some("s-scheduler-dead")), queue("s-scheduler-dead", 360, 0, None)];
        let mappings = ["s-scheduler", "s-scheduler-dead"].map(|name| mapping(name, "Enabled", &[BATCH_FAILURES]));
        (queues, mappings.to_vec())
    }

    #[test]
    fn queues_as_the_template_makes_them_are_well() {
        let (queues, mappings) = well();
        let findings = judged(&queues, &mappings);
        assert!(findings.iter().all(|finding| finding.state == State::Ok), "{findings:?}");
        assert_eq!(findings[0].check, "queue s-scheduler");
    }

    #[test]
    fn each_fault_of_a_queue_is_told() {
        let spoilt: [Fault; 8] = [
            (|queues, _| queues[0].dead_letters = None, "no dead-letter queue"),
            (|queues, _| queues[0].dead_letters = Some("elsewhere".to_owned()), "go to elsewhere"),
            (|queues, _| queues[0].visibility_s = 179, "less than 6 times the 30 s of s-scheduler"),
            (|_, mappings| mappings[0].state = "Disabled".to_owned(), "is Disabled"),
            (|_, mappings| mappings[0].function_response_types.clear(), "lacks ReportBatchItemFailures"),
            (|_, mappings| drop(mappings.remove(0)), "no function reads it"),
            (|_, mappings| mappings[0].function_arn = "other".to_owned(), "read by other"),
            (
                |_, mappings| mappings[0].function_arn.push_str("-2"),
                "function:s-scheduler-2, which is not of this stack",
            ),
        ];
        for (spoil, words) in spoilt {
            let (mut queues, mut mappings) = well();
            spoil(&mut queues, &mut mappings);
            let finding = judged(&queues, &mappings).remove(0);
            assert!(finding.state == State::Wrong && finding.found.contains(words), "{words}: {finding:?}");
        }
    }

    #[test]
    fn a_mapping_that_is_being_changed_or_names_an_alias_is_well() {
        for (state, alias) in [("Updating", ""), ("Enabling", ""), ("Creating", ""), ("Enabled", ":live")] {
            let (queues, mut mappings) = well();
            mappings[0].state = state.to_owned();
            mappings[0].function_arn.push_str(alias);
            assert_eq!(judged(&queues, &mappings).remove(0).state, State::Ok, "{state}{alias}");
        }
    }

    #[test]
    fn the_queue_of_undelivered_alerts_needs_no_reader_and_warns_of_each() {
        let of = |waiting| judged(&[queue("s-alerts-dead", 30, waiting, None)], &[]).remove(0);
        assert_eq!(of(0).state, State::Ok);
        assert_eq!((of(2).state, &*of(2).found), (State::Warning, "2 alerts could not be delivered"));
    }

    #[test]
    fn dead_letters_that_wait_are_a_warning() {
        let (mut queues, mappings) = well();
        queues[1].waiting = 2;
        let finding = judged(&queues, &mappings).remove(1);
        assert_eq!((finding.state, finding.found.as_str()), (State::Warning, "2 dead letters wait for the supervisor"));
    }
}
