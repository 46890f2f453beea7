//! Conditions on the body of an answer, for a service whose statuses do not say enough.

use config::{Condition, Meaning};
use domain::json::Json;
use domain::template::NoValue;
use http::StatusCode;

/// What conditions say about an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The meaning. `None`: no condition is met, and the status decides.
    pub(super) means: Option<Meaning>,
    /// The text at the first position that a condition names, for the reason of a rejection.
    pub(super) text: Option<String>,
}

impl Verdict {
    /// The place of a condition at which a reader could find another value than the one that is taken.
    pub(super) fn ambiguous(conditions: &[Condition], status: StatusCode, body: &Json) -> Option<String> {
        asked(conditions, status).find_map(|condition| condition.when.ambiguous_in(body))
    }

    /// The meaning of the first condition that is met.
    ///
    /// # Errors
    /// [`NoValue`] if one before it cannot be computed for a success, which the status must not decide then.
    pub(super) fn of(conditions: &[Condition], status: StatusCode, body: &str) -> Result<Self, NoValue> {
        for Condition { means, when, .. } in asked(conditions, status) {
            match when.holds_in(body) {
                Ok(true) => return Ok(Self { means: Some(*means), text: when.text_in(body) }),
                Err(problem) if status.is_success() => return Err(problem),
                Ok(false) | Err(_) => {}
            }
        }
        let text = asked(conditions, status).find_map(|condition| condition.when.text_in(body));
        Ok(Self { means: None, text })
    }
}

/// The conditions on answers with this status.
fn asked(conditions: &[Condition], status: StatusCode) -> impl Iterator<Item = &Condition> {
    conditions.iter().filter(move |condition| condition.status == status.as_u16())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agent::{Answer, OUTPUT_TOO_LARGE};
    use bytes::Bytes;
    use config::StatusTable;
    use domain::limits::ANSWER_BYTES_MAX;
    use domain::template::BodyCondition;
    use http::Response;
    use http_body_util::Full;

    use super::*;
    use crate::answer::answer_to;
    use crate::tests::NOW;

    /// A payment that is done only if it succeeded, and an undo that is done if there is nothing to undo.
    fn table() -> StatusTable {
        let condition = |status, when, means| Condition { status, when: BodyCondition::parse(when).unwrap(), means };
        StatusTable {
            statuses: BTreeMap::from([(200, Meaning::No)]),
            conditions: vec![
                condition(200, "/status in ['succeeded', 'captured']", Meaning::Done),
                condition(200, "/status == 'processing'", Meaning::UnderWay),
                condition(200, "/live == false", Meaning::Misconfigured),
                condition(400, "/error/code == 'not_charged'", Meaning::Done),
            ],
        }
    }

    async fn answer(status: u16, body: &str) -> Answer {
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        answer_to(Response::builder().status(status).body(body).unwrap(), &table(), None, NOW).await
    }

    fn done(text: &str) -> Answer {
        Answer::Done(Json::document(text.as_bytes()).unwrap())
    }

    #[tokio::test]
    async fn the_first_condition_that_is_met_decides_and_else_the_status() {
        for (body, expected) in [
            (r#"{"status":"succeeded"}"#, done(r#"{"status":"succeeded"}"#)),
            (r#"{"status":"captured","live":false}"#, done(r#"{"status":"captured","live":false}"#)),
            (r#"{"status":"processing"}"#, Answer::under_way()),
            (r#"{"status":"new","live":false}"#, Answer::misconfigured("HTTP 200 OK")),
        ] {
            assert_eq!(answer(200, body).await, expected, "{body}");
        }
        let refunded = r#"{"error":{"code":"not_charged"}}"#;
        assert_eq!(answer(400, refunded).await, done(refunded));
        // No condition is about this status.
        assert_eq!(answer(201, r#"{"status":"new"}"#).await, done(r#"{"status":"new"}"#));
    }

    #[tokio::test]
    async fn a_success_that_means_no_names_what_was_found_and_nothing_else_of_the_body() {
        for (body, code) in [
            (r#"{"status":"requires_action","secret":"hidden"}"#, "requires_action"),
            (r#"{"status":"two words hidden"}"#, "http-200"),
            (r#"{"hidden":1}"#, "http-200"),
            ("", "http-200"),
        ] {
            let Answer::Fail(failure) = answer(200, body).await else { panic!("a failure expected for {body}") };
            assert_eq!(&*failure.code, code, "{body}");
            assert_eq!(&*failure.message, format!("HTTP 200 OK, and the answer means no: {code}"));
        }
    }

    #[tokio::test]
    async fn a_rejection_keeps_its_own_reason() {
        let body = r#"{"error":{"code":"unexpected_state","message":"it is processing"}}"#;
        assert_eq!(answer(400, body).await, Answer::fail("unexpected_state", "it is processing"));
        assert_eq!(answer(400, "<h1>no</h1>").await, Answer::fail("http-400", "<h1>no</h1>"));
    }

    #[tokio::test]
    async fn rule_17_a_condition_sees_what_can_be_read_and_no_success_with_two_readings() {
        for corner in [r#""cut \ud83d"}"#, "1e999}", "[[[[[", &format!("\"{}", "x".repeat(ANSWER_BYTES_MAX))] {
            let body = format!(r#"{{"error":{{"code":"not_charged"}},"trace":{corner}"#);
            let answer = answer(400, &body).await;
            assert!(!matches!(answer, Answer::Fail(failure) if &*failure.code == "http-400"), "the condition is met");
        }
        let twice = answer(200, r#"{"status":"failed","status":"succeeded"}"#).await;
        assert!(matches!(twice, Answer::Unknown { problem, .. } if problem.contains("/status is there twice")));
    }

    #[tokio::test]
    async fn rule_17_a_condition_that_cannot_be_computed_makes_a_success_no_answer() {
        let items = "0,".repeat(ANSWER_BYTES_MAX / 4);
        let body = format!("{{\"live\":1,\"l\":[{items}0]}}");
        for (when, status, is_answer) in [
            ("sum(/l, sum(/l, 1)) > 0", 200, false),
            ("/live / 0 == 1", 200, false),
            ("/live == 1 or /live / 0 == 1", 200, true),
            ("/nothing + 1 == 1", 200, true),
            ("/live / 0 == 1", 400, true),
        ] {
            let when = BodyCondition::parse(when).unwrap();
            let conditions = vec![Condition { status, when, means: Meaning::No }];
            let table = StatusTable { statuses: BTreeMap::from([(200, Meaning::No)]), conditions };
            let response = Response::builder().status(status).body(Full::new(Bytes::from(body.clone()))).unwrap();
            let answer = answer_to(response, &table, None, NOW).await;
            assert_eq!(matches!(answer, Answer::Fail(_)), is_answer, "{answer:?}");
            assert_eq!(matches!(answer, Answer::Unknown { .. }), !is_answer, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_json_does_not_count_for_the_service() {
        assert!(matches!(answer(200, "<h1>maintenance</h1>").await, Answer::Unknown { .. }));
        let large = format!(r#"{{"status":"succeeded","x":"{}"}}"#, "x".repeat(ANSWER_BYTES_MAX));
        assert!(matches!(answer(200, &large).await, Answer::Fail(failure) if *failure.code == *OUTPUT_TOO_LARGE));
        assert!(matches!(answer(400, &large).await, Answer::Fail(failure) if &*failure.code == "http-400"));
    }
}
