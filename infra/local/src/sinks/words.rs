//! The words of an alert, for people.

use domain::alert::Turn;
use domain::message::CloudEvent;
use domain::time::Timestamp;
use serde::Deserialize;

use crate::terminal::plain;

/// A title and lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
}

/// The parts of the event's data. Missing parts are left out: an alert is told in any case.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Data {
    text: String,
    to_do: String,
    since: Option<Timestamp>,
    count: u64,
    at_least: bool,
    #[serde(rename = "OrderID")]
    order_id: Option<String>,
    ended_at: Option<Timestamp>,
}

impl Words {
    pub(super) fn of(event: &CloudEvent) -> Self {
        let Data { text, to_do, since, count, at_least, order_id, ended_at } =
            serde_json::from_str(event.data.text()).unwrap_or_default();
        let is_over = *event.kind == *Turn::Ended.kind();
        let mut lines = vec![plain(&text)];
        if is_over {
            lines[0].insert_str(0, "It was: ");
        } else {
            let more = if at_least { "at least " } else { "" };
            match (count, order_id) {
                (0, _) => {}
                (1, Some(order_id)) => lines.push(format!("Order: {order_id}")),
                (count, Some(order_id)) => lines.push(format!("Orders so far: {more}{count}, one is {order_id}")),
                (count, None) => lines.push(format!("Orders so far: {more}{count}")),
            }
            lines.push(format!("To do: {}", plain(&to_do)));
        }
        match (since, ended_at.filter(|_| is_over)) {
            (Some(since), Some(ended_at)) => lines.push(format!("From {since} to {ended_at}")),
            (Some(since), None) => lines.push(format!("Since {since}")),
            (None, _) => {}
        }
        let title = if is_over { "Resolved" } else { "Alert" };
        Self { title: format!("{title}: {} (Stepwarden)", plain(&event.subject)), lines }
    }

    pub(super) fn as_one_text(&self) -> String {
        format!("{}\n{}", self.title, self.lines.join("\n"))
    }
}
