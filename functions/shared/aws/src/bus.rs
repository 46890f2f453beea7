//! The outgoing notices: events on EventBridge, and status messages on the queues of the reply channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use domain::message::CloudEvent;
use domain::ports::{Events, PortError};
use domain::trace;

use crate::batching::{Batcher, Carrier, SendOutcome};
use crate::environment::Random;
use crate::queues::{Message, SqsCarrier};
use crate::scope::Scope;
use crate::sdk_error::port_error;

const PUBLISH: &str = "events.publish";
const NOTIFY: &str = "events.notify";

/// The `Source` of our events. EventBridge rules match on it.
const SOURCE: &str = "stepwarden";
/// The suffix of a FIFO queue's URL.
const FIFO: &str = ".fifo";

/// The event bus and the reply channels.
#[derive(Debug)]
pub struct Bus {
    events: Batcher<EventCarrier>,
    event_bus: Arc<str>,
    messages: Batcher<SqsCarrier>,
    reply_channels: BTreeMap<Arc<str>, Arc<str>>,
}

impl Bus {
    pub(crate) fn new(
        client: Client,
        event_bus: Arc<str>,
        messages: Batcher<SqsCarrier>,
        reply_channels: BTreeMap<Arc<str>, Arc<str>>,
        random: Arc<Random>,
    ) -> Self {
        Self { events: Batcher::new(EventCarrier { client }, random), event_bus, messages, reply_channels }
    }
}

impl Events for Bus {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        let detail = serde_json::to_string(&event).map_err(|error| PortError::refused(PUBLISH, error))?;
        let event = Event { kind: event.kind, detail, trace_header: Scope::current().trace_header };
        self.events.send(&self.event_bus, event).await.map_err(|error| PortError { operation: PUBLISH, ..error })
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        let url = self.reply_channels.get(channel).ok_or_else(|| {
            PortError::refused(NOTIFY, format!("REPLY_CHANNELS names no queue for the channel {channel:?}"))
        })?;
        let message = Message::of(&event).map_err(|error| PortError::refused(NOTIFY, error))?;
        let mut message = message.traced(Scope::current().trace_header).from(trace::current());
        if url.ends_with(FIFO) {
            message = message.of_group(event.subject).once(event.id);
        }
        self.messages.send(url, message).await.map_err(|error| PortError { operation: NOTIFY, ..error })
    }
}

/// One event of a request.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    kind: Arc<str>,
    detail: String,
    trace_header: Option<Arc<str>>,
}

/// Sends events to EventBridge.
#[derive(Debug)]
pub(crate) struct EventCarrier {
    client: Client,
}

impl Carrier for EventCarrier {
    type Entry = Event;
    const OPERATION: &'static str = "eventbridge.put";
    /// The limit of every target of a rule.
    const BYTES_MAX: usize = 256 * 1024;

    fn bytes(event: &Event) -> usize {
        SOURCE.len() + event.kind.len() + event.detail.len()
    }

    async fn carry(&self, event_bus: &str, events: &[&Event]) -> Result<Vec<SendOutcome>, PortError> {
        let entries = events.iter().map(|event| {
            PutEventsRequestEntry::builder()
                .event_bus_name(event_bus)
                .source(SOURCE)
                .detail_type(&*event.kind)
                .detail(&event.detail)
                .set_trace_header(event.trace_header.as_deref().map(str::to_owned))
                .build()
        });
        let put = self.client.put_events().set_entries(Some(entries.collect())).send().await;
        put.map(|answer| outcomes(&answer)).map_err(|error| port_error(Self::OPERATION, &error))
    }
}

/// The answer has one result for each entry, in the order of the entries.
fn outcomes(answer: &PutEventsOutput) -> Vec<SendOutcome> {
    answer.entries().iter().map(outcome_of).collect()
}

fn outcome_of(result: &PutEventsResultEntry) -> SendOutcome {
    let Some(code) = result.error_code() else { return SendOutcome::Taken };
    let problem = format!("{code}: {}", result.error_message().unwrap_or("no reason given"));
    match code {
        "ThrottlingException" | "InternalFailure" | "InternalException" | "ServiceUnavailable" => {
            SendOutcome::NotNow(problem)
        }
        _ => SendOutcome::Refused(problem),
    }
}

#[cfg(test)]
mod tests {
    use domain::json::Json;
    use domain::ports::PortErrorKind;
    use domain::time::Timestamp;
    use futures_util::future::join_all;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::testing::queue_urls;
    use crate::queues::Sqs;
    use crate::scope::Company;
    use crate::testing::{FakeAws, random};

    fn event(id: &str, text: &str) -> CloudEvent {
        CloudEvent {
            specversion: "1.0".into(),
            id: id.into(),
            source: "stepwarden".into(),
            kind: "OrderNeedsOperator".into(),
            subject: "order-1".into(),
            time: Timestamp::from_epoch_ms(0),
            datacontenttype: "application/json".into(),
            data: Json::of(&text),
        }
    }

    fn bus(fake: &FakeAws) -> Bus {
        let clients = fake.clients();
        let sqs = Sqs::new(clients.sqs, queue_urls(), random());
        let channels = [("shop", "http://q/1/shop"), ("till", "http://q/1/till.fifo")];
        let channels = channels.map(|(name, url)| (name.into(), url.into())).into();
        Bus::new(clients.eventbridge, "bus".into(), sqs.sender().clone(), channels, random())
    }

    #[tokio::test]
    async fn an_event_is_put_on_the_bus_as_a_cloud_event_under_its_kind() {
        let fake = FakeAws::that_takes_everything().await;
        let (bus, company) = (bus(&fake), Company::default());
        let put = ["1", "2"].map(|id| {
            let scope = Scope { trace_header: Some(format!("Root={id}").into()), company: company.clone() };
            scope.run(bus.publish(event(id, "x")))
        });
        join_all(put).await.into_iter().collect::<Result<(), _>>().unwrap();
        let (operation, body) = fake.requests().remove(0);
        assert_eq!((&*operation, body["Entries"].as_array().unwrap().len()), ("PutEvents", 2));
        let entry = &body["Entries"][1];
        assert_eq!(entry["Source"], "stepwarden");
        assert_eq!(entry["DetailType"], "OrderNeedsOperator");
        assert_eq!(entry["EventBusName"], "bus");
        assert_eq!(entry["TraceHeader"], "Root=2");
        let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
        assert_eq!(detail, serde_json::to_value(event("2", "x")).unwrap());
    }

    #[tokio::test]
    async fn an_event_that_the_bus_did_not_take_is_put_again_and_one_that_it_never_will_is_refused() {
        let fake = FakeAws::start(|_, body| {
            let entries = body["Entries"].as_array().unwrap();
            let result = |entry: &Value| match entry["Detail"].as_str().unwrap() {
                detail if detail.contains("bad") => json!({"ErrorCode": "MalformedDetail", "ErrorMessage": "no"}),
                detail if detail.contains("busy") && entries.len() > 1 => json!({"ErrorCode": "ThrottlingException"}),
                _ => json!({"EventId": "e"}),
            };
            let results: Vec<Value> = entries.iter().map(result).collect();
            (200, json!({"FailedEntryCount": 1, "Entries": results}))
        })
        .await;
        let bus = bus(&fake);
        let (good, busy, bad) = tokio::join!(
            bus.publish(event("1", "good")),
            bus.publish(event("2", "busy")),
            bus.publish(event("3", "bad"))
        );
        assert!(good.is_ok() && busy.is_ok());
        assert_eq!(bad.unwrap_err().kind, PortErrorKind::Refused);
        assert_eq!(fake.requests().len(), 2);
    }

    #[tokio::test]
    async fn an_event_that_no_target_takes_is_refused() {
        let fake = FakeAws::that_takes_everything().await;
        let large = "x".repeat(256 * 1024);
        let error = bus(&fake).publish(event("1", &large)).await.unwrap_err();
        assert_eq!((error.operation, error.kind), (PUBLISH, PortErrorKind::Refused));
        assert!(fake.requests().is_empty());
    }

    #[tokio::test]
    async fn a_reply_channel_is_a_queue_and_a_fifo_one_keeps_an_orders_messages_in_order() {
        let fake = FakeAws::that_takes_everything().await;
        let bus = bus(&fake);
        bus.notify("shop", event("1", "x")).await.unwrap();
        bus.notify("till", event("2", "x")).await.unwrap();
        let requests = fake.requests();
        let of = |place: usize| (&requests[place].1["QueueUrl"], &requests[place].1["Entries"][0]);
        assert_eq!(of(0).0, "http://q/1/shop");
        assert_eq!((of(0).1.get("MessageGroupId"), of(0).1.get("DelaySeconds")), (None, None));
        let sent: Value = serde_json::from_str(of(0).1["MessageBody"].as_str().unwrap()).unwrap();
        assert_eq!(sent, serde_json::to_value(event("1", "x")).unwrap());
        assert_eq!(of(1).0, "http://q/1/till.fifo");
        assert_eq!((&of(1).1["MessageGroupId"], &of(1).1["MessageDeduplicationId"]), (&json!("order-1"), &json!("2")));
        let error = bus.notify("gone", event("3", "x")).await.unwrap_err();
        assert_eq!((error.operation, error.kind), (NOTIFY, PortErrorKind::Refused));
    }
}
