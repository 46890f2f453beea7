//! The meaning of an event: the call that it is about, and what a callback would say.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use config::{EventMeaning, WebhookSettings};
use domain::callback::Awaited;
use domain::json::Json;
use domain::limits::TEXT_CHARS_MAX;
use domain::search::Pointer;
use wire::Callback;

/// What an event tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The call.
    pub(crate) awaited: Awaited,
    /// The body of the callback. `None`: a heartbeat.
    pub(crate) result: Option<Bytes>,
}

/// Why an event is not for us. That is no fault: a provider sends all its events to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotForUs {
    /// The body has no name of an event.
    #[error("the body has no event where the settings look for it")]
    NoEvent,
    /// The settings do not list it.
    #[error("the settings list no such event")]
    OtherEvent,
    /// The body has no key.
    #[error("the body has no key where the settings look for it")]
    NoKey,
    /// The key is none of ours.
    #[error("the key is not one that a call had")]
    OtherKey,
}

/// Reads an event.
///
/// # Errors
/// [`NotForUs`].
pub(crate) fn read(settings: &WebhookSettings, agent: &Arc<str>, body: &Json) -> Result<Told, NotForUs> {
    let event = settings.event.text_in(body).ok_or(NotForUs::NoEvent)?;
    let meaning = settings.events.get(&event).ok_or(NotForUs::OtherEvent)?;
    let key = settings.key.text_in(body).ok_or(NotForUs::NoKey)?;
    let of_order = || Awaited::of_key(&format!("{key}/{}", settings.step.as_ref()?), agent);
    let awaited = Awaited::of_key(&key, agent).or_else(of_order).ok_or(NotForUs::OtherKey)?;
    let text = |pointer: &Option<Pointer>| {
        let text = pointer.as_ref().and_then(|pointer| pointer.text_in(body));
        text.filter(|text| !text.trim().is_empty()).map(shortened)
    };
    let callback = match meaning {
        EventMeaning::Working => None,
        EventMeaning::Done => {
            let output = match &settings.output {
                Some(pointer) => pointer.value_in(body),
                None => Some(body.clone()),
            };
            Some(Callback { outcome: "Done".into(), output, code: None, message: None })
        }
        EventMeaning::No => {
            let code = text(&settings.code).unwrap_or_else(|| shortened(event));
            let message = text(&settings.message).map(Cow::Owned);
            Some(Callback { outcome: "No".into(), output: None, code: Some(code.into()), message })
        }
    };
    let result = callback.map(|callback| Json::of(&callback).text().to_owned().into());
    Ok(Told { awaited, result })
}

/// The text, cut to what the callback takes.
fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text,
        Some(_) => text.chars().take(TEXT_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use config::Settings;
    use domain::id::OrderId;
    use domain::task::Direction;
    use serde_json::{Value, json};

    use super::*;

    const TABLE: &str = r#"
        [agents.bank.webhook]
        secret = "env:A"
        scheme = "github"
        key = "/data/metadata/key"
        event = "/type"
        done = ["paid"]
        no = ["failed"]
        working = ["processing"]
    "#;

    fn id() -> OrderId {
        OrderId::from_idempotency_key("shop", "k1")
    }

    /// What the webhook of the bank with these further settings reads in this body.
    fn told(more: &str, body: &Value) -> Result<Told, NotForUs> {
        let settings = Settings::parse("stepwarden.toml", &format!("{TABLE}{more}")).unwrap();
        let webhook = settings.of("bank").unwrap().webhook.clone().unwrap();
        read(&webhook, &"bank".into(), &Json::of(body))
    }

    fn event(name: &str, data: &Value) -> Value {
        json!({"type": name, "id": 7, "data": {"metadata": {"key": format!("{}/pay", id())}, "charge": data}})
    }

    fn result(told: Result<Told, NotForUs>) -> Value {
        serde_json::from_slice(&told.unwrap().result.unwrap()).unwrap()
    }

    #[test]
    fn rule_41_a_done_event_is_a_result_with_the_output_that_the_settings_name() {
        let body = event("paid", &json!({"amount": 12.5}));
        let Told { awaited, .. } = told("", &body).unwrap();
        let expected =
            Awaited { order_id: id(), step: "pay".into(), direction: Direction::Forward, agent: Some("bank".into()) };
        assert_eq!(awaited, expected);
        assert_eq!(result(told("", &body)), json!({"Outcome": "Done", "Output": body}));
        let output = |pointer: &str| result(told(&format!("output = {pointer:?}"), &body));
        assert_eq!(output("/data/charge"), json!({"Outcome": "Done", "Output": {"amount": 12.5}}));
        assert_eq!(output("/nothing"), json!({"Outcome": "Done"}));
        // The data of a CloudEvent may be any JSON.
        for data in [json!("paid in full"), json!(false), Value::Null, json!([1])] {
            let told = told("output = \"/data/charge\"", &event("paid", &data));
            assert_eq!(result(told), json!({"Outcome": "Done", "Output": data}));
        }
    }

    #[test]
    fn rule_41_an_output_is_kept_digit_for_digit() {
        let settings = Settings::parse("stepwarden.toml", &format!("{TABLE}output = \"/data\"")).unwrap();
        let webhook = settings.of("bank").unwrap().webhook.clone().unwrap();
        let body = format!(r#"{{"type":"paid","data":{{"metadata":{{"key":"{}/pay"}},"n": 1.10}}}}"#, id());
        let told = read(&webhook, &"bank".into(), &Json::parse(body.as_bytes(), 1_000).unwrap()).unwrap();
        assert!(told.result.unwrap().ends_with(b"\"n\": 1.10}}"));
    }

    #[test]
    fn rule_41_a_no_event_is_a_rejection_with_a_code() {
        let body = event(
            "failed",
            &json!({"code": "declined", "text": "the bank said no", "empty": " ", "long": "x".repeat(999)}),
        );
        let expected = |code: &str| json!({"Outcome": "No", "Code": code});
        assert_eq!(result(told("", &body)), expected("failed"));
        let code = |pointer: &str| result(told(&format!("code = {pointer:?}"), &body));
        assert_eq!(code("/data/charge/code"), expected("declined"));
        assert_eq!(code("/id"), expected("7"));
        for nothing in ["/nothing", "/data", "/data/charge/empty"] {
            assert_eq!(code(nothing), expected("failed"), "{nothing}");
        }
        let long = code("/data/charge/long")["Code"].as_str().unwrap().to_owned();
        assert_eq!((long.chars().count(), long.ends_with("x…")), (TEXT_CHARS_MAX, true), "the API takes it");
        let both = "code = \"/data/charge/code\"\nmessage = \"/data/charge/text\"";
        let expected = json!({"Outcome": "No", "Code": "declined", "Message": "the bank said no"});
        assert_eq!(result(told(both, &body)), expected);
    }

    #[test]
    fn rule_41_a_working_event_is_a_heartbeat_and_an_undo_has_its_own_key() {
        assert_eq!(told("", &event("processing", &Value::Null)).unwrap().result, None);
        let mut body = event("paid", &Value::Null);
        body["data"]["metadata"]["key"] = format!("{}/pay/undo", id()).into();
        assert_eq!(told("", &body).unwrap().awaited.direction, Direction::Undo);
    }

    #[test]
    fn rule_41_an_event_may_have_the_id_of_the_order_alone_if_the_settings_name_the_step() {
        let with_key = |key: String| json!({"type": "paid", "data": {"metadata": {"key": key}}});
        let told = |key: String| told("step = \"pay\"", &with_key(key)).map(|told| told.awaited);
        let pay = |direction| Ok(Awaited { order_id: id(), step: "pay".into(), direction, agent: Some("bank".into()) });
        assert_eq!(told(id().to_string()), pay(Direction::Forward));
        assert_eq!(told(format!("{}/pay/undo", id())), pay(Direction::Undo));
        assert_eq!(told("invoice-7".to_owned()), Err(NotForUs::OtherKey));
    }

    #[test]
    fn rule_41_an_event_of_no_call_is_not_for_us() {
        let key = |key: Value| json!({"type": "paid", "data": {"metadata": {"key": key}}});
        for (body, expected) in [
            (event("opened", &Value::Null), NotForUs::OtherEvent),
            (json!({"data": {}}), NotForUs::NoEvent),
            (json!({"type": {"name": "paid"}}), NotForUs::NoEvent),
            (json!({"type": "paid"}), NotForUs::NoKey),
            (key(Value::Null), NotForUs::NoKey),
            (key("invoice-7".into()), NotForUs::OtherKey),
            (key(id().to_string().into()), NotForUs::OtherKey),
            (json!([1]), NotForUs::NoEvent),
        ] {
            assert_eq!(told("", &body), Err(expected), "{body}");
        }
    }
}
