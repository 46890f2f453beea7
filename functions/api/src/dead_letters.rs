//! `GET /dead-letters`: the dead letters, and the outcome of each.

use std::sync::Arc;

use bytes::Bytes;
use domain::ports::{DEAD_LETTERS_KEPT, DeadLetterRecord, Records, SourceQueue};
use domain::time::Timestamp;
use http::{Response, StatusCode};
use wire::DeadLetterList;

use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::view::text;
use crate::{cursor, query, reply};

/// The list name in the cursors of this list.
const LIST: &str = "dead-letters";

/// The last record of a page.
struct Position {
    settled_at: Timestamp,
    message_id: Arc<str>,
}

/// `GET /dead-letters?limit=&cursor=`: a page of records, the last settled first. Pages reach back over the
/// [`DEAD_LETTERS_KEPT`] newest.
pub(crate) async fn dead_letters(ports: &impl ApiPorts, query: &str) -> Result<Response<Bytes>, Problem> {
    let [limit, cursor] = query::parameters(query, ["limit", "cursor"])?;
    let limit = query::page_limit(limit.as_deref())?;
    let after = cursor.map(|cursor| Position::open(&cursor)).transpose()?;
    // One more than the first page shows whether there is a second.
    let reach = if after.is_some() { DEAD_LETTERS_KEPT } else { limit + 1 };
    let records = ports.records().list::<DeadLetterRecord>(reach).await.map_err(Problem::unread)?;
    let rest = &records[after.map_or(0, |place| place.next_in(&records))..];
    let (page, more) = rest.split_at(limit.min(rest.len()));
    let next = page.last().filter(|_| !more.is_empty());
    let list = DeadLetterList {
        dead_letters: page.iter().map(shown).collect::<Vec<_>>(),
        next_cursor: next.map(|last| Position::of(last).seal()),
    };
    Ok(reply::json(StatusCode::OK, &list))
}

/// The record without the body, which may contain anything.
fn shown(record: &DeadLetterRecord) -> wire::DeadLetter<'_> {
    let DeadLetterRecord { message_id, queue, order_id, receive_count, at, settled_at, outcome, message, body } =
        record;
    let (queue, agent) = match queue {
        None => (None, None),
        Some(SourceQueue::Submission) => (Some("Submission"), None),
        Some(SourceQueue::Scheduler) => (Some("Scheduler"), None),
        Some(SourceQueue::Agent(agent)) => (Some("Agent"), Some(&**agent)),
    };
    wire::DeadLetter {
        message_id: text(message_id),
        queue: queue.map(text),
        agent: agent.map(text),
        order_id: *order_id,
        receive_count: *receive_count,
        at: *at,
        settled_at: *settled_at,
        outcome: text(outcome.name()),
        message: text(message),
        body_bytes: body.as_ref().map(|body| body.len()),
    }
}

impl Position {
    fn of(record: &DeadLetterRecord) -> Self {
        Self { settled_at: record.settled_at, message_id: record.message_id.clone() }
    }

    fn seal(&self) -> String {
        cursor::seal(LIST, &format!("{}:{}", self.settled_at.epoch_ms(), self.message_id))
    }

    fn open(cursor: &str) -> Result<Self, Problem> {
        let place = cursor::open(LIST, cursor)?;
        let (epoch_ms, message_id) = place.split_once(':').ok_or_else(cursor::made_up)?;
        let epoch_ms = epoch_ms.parse().map_err(|_| cursor::made_up())?;
        Ok(Self { settled_at: Timestamp::from_epoch_ms(epoch_ms), message_id: message_id.into() })
    }

    /// Where the records after this one begin. If this record was deleted since, the records follow that were settled at
    /// its time or before: a repeat is better than a gap.
    fn next_in(&self, records: &[DeadLetterRecord]) -> usize {
        let is_here =
            |record: &DeadLetterRecord| (record.settled_at, &record.message_id) == (self.settled_at, &self.message_id);
        match records.iter().position(is_here) {
            Some(at) => at + 1,
            None => records.iter().position(|record| record.settled_at <= self.settled_at).unwrap_or(records.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use domain::ports::DeadLetterOutcome;
    use serde_json::json;

    use super::*;
    use crate::testing::{Answer, Fake};

    fn record(n: i64) -> DeadLetterRecord {
        DeadLetterRecord {
            message_id: format!("m:{n}").into(),
            queue: Some(SourceQueue::Scheduler),
            order_id: Some(OrderId::from_idempotency_key("shop", "a")),
            receive_count: 5,
            at: Timestamp::from_epoch_ms(1_000),
            // Two records with the same time.
            settled_at: Timestamp::from_epoch_ms(2_000 + n / 2),
            outcome: DeadLetterOutcome::Stale,
            message: "in words".into(),
            body: None,
        }
    }

    /// Records 0 to `count`, the last settled last.
    fn with_dead_letters(count: i64) -> Fake {
        let fake = Fake::default();
        (0..count).for_each(|n| fake.stores_record(&record(n)));
        fake
    }

    fn ids(answer: &Answer) -> Vec<String> {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let dead_letters = answer.body["DeadLetters"].as_array().unwrap();
        dead_letters.iter().map(|dead_letter| dead_letter["MessageID"].as_str().unwrap().to_owned()).collect()
    }

    fn next_page(fake: &Fake, answer: &Answer, limit: usize) -> Answer {
        let cursor = answer.body["NextCursor"].as_str().unwrap();
        fake.get(&format!("/dead-letters?limit={limit}&cursor={cursor}"))
    }

    #[test]
    fn a_dead_letter_is_shown_with_its_fate_and_without_its_body() {
        let fake = Fake::default();
        let (queue, body) = (Some(SourceQueue::Agent("payment".into())), Some("{\"Card\":\"4111\"".into()));
        fake.stores_record(&DeadLetterRecord {
            queue,
            body,
            order_id: None,
            outcome: DeadLetterOutcome::Unreadable,
            ..record(0)
        });
        fake.stores_record(&record(1));
        let answer = fake.get("/dead-letters");
        let (at, settled_at) = ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z");
        let expected = json!({"DeadLetters": [
            {
                "MessageID": "m:1", "Queue": "Scheduler", "ReceiveCount": 5, "At": at, "SettledAt": settled_at,
                "OrderID": OrderId::from_idempotency_key("shop", "a").to_string(), "Outcome": "Stale",
                "Message": "in words",
            },
            {
                "MessageID": "m:0", "Queue": "Agent", "Agent": "payment", "ReceiveCount": 5, "At": at,
                "SettledAt": settled_at, "Outcome": "Unreadable", "Message": "in words", "BodyBytes": 14,
            },
        ]});
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }

    #[test]
    fn dead_letters_go_page_by_page_the_last_settled_first() {
        let fake = with_dead_letters(7);
        let first = fake.get("/dead-letters?limit=3");
        let second = next_page(&fake, &first, 3);
        let third = next_page(&fake, &second, 3);
        assert_eq!(third.body.get("NextCursor"), None);
        let seen = [ids(&first), ids(&second), ids(&third)].concat();
        assert_eq!(seen, ["m:6", "m:5", "m:4", "m:3", "m:2", "m:1", "m:0"]);
        assert_eq!(fake.get("/dead-letters?limit=7").body.get("NextCursor"), None);
        assert_eq!(Fake::default().get("/dead-letters").body, json!({"DeadLetters": []}));
        assert_eq!((ids(&with_dead_letters(200).get("/dead-letters")).len()), 50);
    }

    #[test]
    fn a_page_goes_on_where_it_was_whatever_is_settled_in_the_meantime() {
        let fake = with_dead_letters(6);
        let first = fake.get("/dead-letters?limit=2");
        fake.stores_record(&record(8));
        assert_eq!(ids(&next_page(&fake, &first, 2)), ["m:3", "m:2"]);
        let erased = Position { message_id: "m:9".into(), ..Position::of(&record(4)) }.seal();
        let next = fake.get(&format!("/dead-letters?limit=2&cursor={erased}"));
        assert_eq!(ids(&next), ["m:5", "m:4"], "the last of the page before was deleted");
    }

    #[test]
    fn a_bad_parameter_is_400_and_named() {
        let fake = with_dead_letters(3);
        let of_orders = cursor::seal("", "1000:m:1");
        let no_place = cursor::seal(LIST, "m1");
        let no_time = cursor::seal(LIST, "soon:m:1");
        for (query, name) in [
            ("limit=0".to_owned(), "limit"),
            ("limit=101".to_owned(), "limit"),
            ("cursor=x".to_owned(), "cursor"),
            (format!("cursor={of_orders}"), "cursor"),
            (format!("cursor={no_place}"), "cursor"),
            (format!("cursor={no_time}"), "cursor"),
            ("outcome=Held".to_owned(), "outcome"),
        ] {
            fake.get(&format!("/dead-letters?{query}")).names(400, "invalid-parameter", name);
        }
    }

    #[test]
    fn a_store_that_is_down_is_503() {
        let fake = Fake::default();
        fake.all_down();
        fake.get("/dead-letters").is_problem(503, "unavailable");
    }
}
