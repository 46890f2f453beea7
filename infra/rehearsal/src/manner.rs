//! How services put their answers into HTTP, each with the settings by which an agent understands it.

use agent::Answer;
use domain::message::Failure;
use serde_json::{Value, json};

use crate::seen::Way;

/// The code of a 409 while a call with the same key is at work.
pub const IN_USE: &str = "in-use";

/// The manner of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// By the contract of the shipped agents.
    Contract,
    /// By statuses of its own.
    Statuses,
    /// Each answer is a success with a state in its body, but for a failure of what stands before the service.
    States,
}

impl Manner {
    /// The settings of an agent in TOML, below its table.
    #[must_use]
    pub fn settings(self) -> String {
        // 299 and 207 are a success elsewhere, and 420 a rejection.
        let statuses = "299 = \"no\", 207 = \"under-way\", 412 = \"conflict\", 420 = \"failing\"";
        let states = [
            ("declined", "no"),
            ("undone", "no"),
            ("pending", "under-way"),
            ("taken", "conflict"),
            ("busy", "failing"),
        ];
        match self {
            Self::Contract => String::new(),
            Self::Statuses => {
                format!("forward.status = {{ {statuses} }}\nundo.status = {{ 404 = \"done\", {statuses} }}\n")
            }
            Self::States => {
                let one = |(state, means): (&str, &str)| {
                    format!("{{ status = 200, when = \"/state == '{state}'\", means = \"{means}\" }}")
                };
                let answers = states.map(one).join(", ");
                format!("forward.answers = [{answers}]\nundo.answers = [{answers}]\n")
            }
        }
    }

    /// Status and body of the answer to the call with this number.
    pub(crate) fn puts(self, answer: &Answer, way: Way, id: u64) -> (u16, String) {
        let first = |one: u16, other: u16| if id.is_multiple_of(2) { one } else { other };
        let pick = |[contract, statuses]: [u16; 2]| match self {
            Self::Contract => contract,
            Self::Statuses => statuses,
            Self::States => 200,
        };
        let body = |state: &str, mut body: Value| {
            if self == Self::States {
                body["state"] = state.into();
            }
            body.to_string()
        };
        match answer {
            Answer::Done(output) => {
                let status = pick(if way == Way::Forward { [first(200, 201), 200] } else { [200, 404] });
                (status, output.text().to_owned())
            }
            Answer::Fail(failure) => (pick([422, 299]), body(&failure.code, reason(failure, id))),
            Answer::UnderWay { unless_alone: None, .. } => (pick([202, 207]), body("pending", json!({"id": id}))),
            Answer::UnderWay { unless_alone: Some(failure), .. } => {
                (pick([first(409, 423), 412]), body("taken", reason(failure, id)))
            }
            Answer::Retry { after_ms, .. } => {
                let contract = if after_ms.is_some() { first(429, 503) } else { 503 };
                (pick([contract, 420]), body("busy", json!({})))
            }
            Answer::Unknown { .. } => (first(502, 504), "<html>".to_owned()),
            Answer::Misconfigured { .. } | Answer::NotCalled { .. } => (401, String::new()),
        }
    }
}

/// It has the members of a result too: only a meaning tells the one from the other. A service that is at work on the key
/// says where its state is asked.
fn reason(Failure { code, message }: &Failure, id: u64) -> Value {
    let mut body = json!({"code": &**code, "message": &**message, "Number": 0});
    if **code == *IN_USE {
        body["id"] = id.into();
    }
    body
}

#[cfg(test)]
mod tests {
    use agents::{NetworkBody, answer_to};
    use bytes::Bytes;
    use config::Settings;
    use domain::json::Json;
    use domain::time::Timestamp;
    use futures_util::FutureExt;
    use http::Response;

    use super::*;

    /// What counts of an answer.
    fn meaning(answer: &Answer) -> String {
        match answer {
            Answer::Done(output) => format!("done {}", output.text()),
            Answer::Fail(failure) => format!("no {}", failure.code),
            Answer::UnderWay { unless_alone: Some(failure), .. } => format!("under way or {}", failure.code),
            Answer::UnderWay { unless_alone: None, .. } => "under way".to_owned(),
            Answer::Retry { .. } => "failing".to_owned(),
            Answer::Unknown { .. } => "unknown".to_owned(),
            Answer::Misconfigured { .. } | Answer::NotCalled { .. } => "misconfigured".to_owned(),
        }
    }

    fn answers() -> [Answer; 8] {
        let no = |code: &str| Failure { code: code.into(), message: "no".into() };
        let conflict = |code: &str| Answer::UnderWay { after_ms: None, unless_alone: Some(no(code)), poll: None };
        let busy = Answer::Retry { after_ms: Some(1), problem: String::new() };
        [
            Answer::Done(Json::of(&json!({"Step": 1, "Number": 1}))),
            Answer::Fail(no("declined")),
            Answer::Fail(no("undone")),
            conflict(IN_USE),
            conflict("declined"),
            Answer::under_way(),
            busy,
            Answer::unknown("504"),
        ]
    }

    #[test]
    fn rule_17_the_agent_of_a_service_understands_its_manner() {
        for manner in [Manner::Contract, Manner::Statuses, Manner::States] {
            let text = format!("[agents.money]\nurl = \"https://money.example\"\n{}", manner.settings());
            let settings = Settings::parse("stepwarden.toml", &text).unwrap();
            let settings = settings.of("money").unwrap();
            for (way, statuses) in [(Way::Forward, settings.forward_statuses()), (Way::Undo, settings.undo_statuses())]
            {
                for (answer, id) in answers().into_iter().flat_map(|answer| [(answer.clone(), 1), (answer, 2)]) {
                    let (status, body) = manner.puts(&answer, way, id);
                    let response =
                        Response::builder().status(status).body(NetworkBody::from(Bytes::from(body))).unwrap();
                    let heard =
                        answer_to(response, statuses, None, Timestamp::from_epoch_ms(0)).now_or_never().unwrap();
                    assert_eq!(meaning(&heard), meaning(&answer), "{manner:?} {way:?}: {status}");
                }
            }
        }
    }
}
