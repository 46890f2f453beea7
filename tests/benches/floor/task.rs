//! The task of an order, about as long as Stepwarden's.

use std::io;

use bytes::Bytes;
use domain::time::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

/// The steps, each with the path of its call.
pub(crate) const STEPS: [(&str, &str); 3] =
    [("reserve-inventory", "/reserve"), ("charge-payment", "/charge"), ("create-shipment", "/ship")];

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Task {
    #[serde(rename = "OrderID")]
    pub(crate) order_id: String,
    process_state: &'static str,
    version: u32,
    submitter: &'static str,
    workflow: &'static str,
    submitted_at: Timestamp,
    updated_at: Timestamp,
    steps: Vec<Step>,
    history: Vec<Line>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Step {
    name: &'static str,
    agent: &'static str,
    process_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete_by: Option<Timestamp>,
    attempt: u32,
    failure_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Line {
    at: Timestamp,
    version: u32,
    who: &'static str,
    kind: &'static str,
    step: &'static str,
}

const WHO: &str = "scheduler-7f3a90c1";
const ATTEMPT_MS: u64 = 30_000;

impl Task {
    pub(crate) fn new(key: &str) -> Self {
        let at = now();
        let step = |(name, _): (&'static str, &str)| Step {
            name,
            agent: name,
            process_state: "Pending",
            locked_by: None,
            complete_by: None,
            attempt: 0,
            failure_count: 0,
            output: None,
        };
        let mut task = Self {
            order_id: format!("0193f2a0-7c11-7000-8000-{key:0>12}"),
            process_state: "Pending",
            version: 0,
            submitter: "local",
            workflow: "order/1",
            submitted_at: at,
            updated_at: at,
            steps: STEPS.map(step).into(),
            history: Vec::with_capacity(8),
        };
        task.change("Submitted", "");
        task
    }

    pub(crate) fn claim(&mut self, step: usize) {
        self.process_state = "Processing";
        let complete_by = now().plus_ms(ATTEMPT_MS);
        let claimed = &mut self.steps[step];
        (claimed.process_state, claimed.attempt) = ("Processing", 1);
        (claimed.locked_by, claimed.complete_by) = (Some(WHO), Some(complete_by));
        self.change("Claimed", STEPS[step].0);
    }

    pub(crate) fn done(&mut self, step: usize, output: &[u8]) -> io::Result<()> {
        let done = &mut self.steps[step];
        (done.process_state, done.locked_by, done.complete_by) = ("Processed", None, None);
        done.output = Some(serde_json::from_slice(output)?);
        self.change("Done", STEPS[step].0);
        Ok(())
    }

    pub(crate) fn end(&mut self) {
        self.process_state = "Processed";
        self.change("Processed", "");
    }

    pub(crate) fn json(&self) -> io::Result<Bytes> {
        Ok(serde_json::to_vec(self)?.into())
    }

    fn change(&mut self, kind: &'static str, step: &'static str) {
        self.version += 1;
        self.updated_at = now();
        self.history.push(Line { at: self.updated_at, version: self.version, who: WHO, kind, step });
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_task_is_about_as_long_as_an_answer_of_the_api() {
        let mut task = Task::new("bench-7");
        for step in 0..STEPS.len() {
            task.claim(step);
            task.done(step, br#"{"Reference":"R-5b1d0fa35c0b1e77","Status":"done"}"#).unwrap();
        }
        task.end();
        let length = task.json().unwrap().len();
        assert!((1_500..=2_000).contains(&length), "{length}");
    }
}
