//! The behaviour of a stand-in, from the member `StandIn` of the order's document and from the switches of the service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::service::{Operation, Service};

/// The longest delay of a stand-in's answer, and its longest work on a call, in milliseconds.
const WAIT_MS_MAX: u64 = 60_000;

/// Part of `stepwarden serve --help` and `stepwarden stand-ins --help`.
pub const HELP: &str = r#"Stand-ins:
  A stand-in in this process replaces a service without a URL. The member "StandIn" of an order's document sets its
  behaviour for this order, for example
      {"Item": "mug", "StandIn": {"payment": {"Flaky": 2}, "shipping": {"SlowMs": 1500}}}
  For each agent, such as "inventory", "payment" and "shipping":
      "Flaky": N         answers 503 to the first N calls with a key
      "SlowMs": N        carries out the call, and answers N ms later (at most 60000)
      "BusyMs": N        is at work on a call for N ms: then effect and answer come, the effect also if the caller left.
                         Answers 409 in-use to a repeat of the key meanwhile (at most 60000)
      "PendingMs": N     answers 202 until N ms after the first call with a key. The effect comes then (at most 60000)
      "LoseAnswers": N   carries out the first N calls with a key, and hangs up without an answer
      "Unauthorised": N  answers 401 to the first N calls with a key
      "Down": true       answers 503 to every call
      "DownMs": N        answers 503 to calls with a key until N ms after the first one
      "Decline": "CODE"  rejects the call: 402 at payment, 422 elsewhere, with the problem code CODE
      "ForgetKeys": true ignores Idempotency-Key: every call is carried out again
      "Undo": {...}      the same members for release, refund and cancel; without it these succeed
  An undo of a call that is at work finds nothing to undo, and succeeds. The effect comes all the same.
  To switch a whole service, whatever the orders say:
      curl -XPOST {stand-in}/payment/control -d '{"Down": true}'
  The members are "Down" (answers 503 to every call until it is false again), "Unauthorised" (401) and "ForgetKeys"; an
  absent member keeps its value. Otherwise stand-ins honour Idempotency-Key. GET {stand-in}/effects shows the calls and
  effects of each key."#;

/// The members of a call's body `{OrderID, Order, Outputs}` that the stand-ins read. A workflow may send another body.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CallBody {
    #[serde(default)]
    order: Document,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    /// By agent.
    #[serde(default)]
    stand_in: BTreeMap<String, BothWays>,
}

/// An unknown word is refused, so that a typing error does not look like a good service.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase", deny_unknown_fields)]
struct BothWays {
    flaky: u64,
    slow_ms: u64,
    busy_ms: u64,
    pending_ms: u64,
    lose_answers: u64,
    unauthorised: u64,
    down: bool,
    down_ms: u64,
    decline: Option<String>,
    forget_keys: bool,
    undo: Behaviour,
}

/// The behaviour for one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase", deny_unknown_fields)]
pub struct Behaviour {
    /// The number of calls with the same key that are answered 503 first, after the unauthorised ones.
    pub flaky: u64,
    /// The delay of the answer, in milliseconds.
    pub slow_ms: u64,
    /// How long the service is at work on a call before its effect and its answer, in milliseconds.
    pub busy_ms: u64,
    /// How long calls with the same key are answered 202 after the first call, in milliseconds. The effect comes then.
    pub pending_ms: u64,
    /// The number of calls with the same key that are carried out without an answer, after the flaky ones.
    pub lose_answers: u64,
    /// The number of calls with the same key that are answered 401 first.
    pub unauthorised: u64,
    /// Every call is answered 503.
    pub down: bool,
    /// How long calls with the same key are answered 503 after the first call, in milliseconds.
    pub down_ms: u64,
    /// The code of a permanent refusal.
    pub decline: Option<String>,
    /// The idempotency key is ignored: every call has a new effect.
    pub forget_keys: bool,
}

impl Behaviour {
    /// Reads the behaviour for a service from the body of a call.
    ///
    /// # Errors
    /// The decoder's error, if the body is no call or `StandIn` is invalid.
    pub fn told(body: &[u8], service: Service, operation: Operation) -> Result<Self, serde_json::Error> {
        let mut told = serde_json::from_slice::<CallBody>(body)?.order.stand_in;
        let told = told.remove(service.name()).unwrap_or_default();
        let BothWays {
            flaky,
            slow_ms,
            busy_ms,
            pending_ms,
            lose_answers,
            unauthorised,
            down,
            down_ms,
            decline,
            forget_keys,
            undo,
        } = told;
        let behaviour = match operation {
            Operation::Forward => Self {
                flaky,
                slow_ms,
                busy_ms,
                pending_ms,
                lose_answers,
                unauthorised,
                down,
                down_ms,
                decline,
                forget_keys,
            },
            Operation::Undo => undo,
        };
        Ok(behaviour.waiting_at_most(WAIT_MS_MAX))
    }

    /// The number of calls with the same key that fail first.
    pub(crate) const fn failing_calls(&self) -> u64 {
        self.unauthorised.saturating_add(self.flaky)
    }

    /// The same, with shorter waits.
    #[must_use]
    pub(crate) fn waiting_at_most(self, ms: u64) -> Self {
        Self {
            slow_ms: self.slow_ms.min(ms),
            busy_ms: self.busy_ms.min(ms),
            pending_ms: self.pending_ms.min(ms),
            ..self
        }
    }
}

/// The behaviour of a whole service, whatever the orders say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Switches {
    /// Every call is answered 503.
    pub(crate) down: bool,
    /// Idempotency keys are ignored.
    pub(crate) forget_keys: bool,
    /// Every call is answered 401.
    pub(crate) unauthorised: bool,
}

/// The body of `POST /{service}/control`. An absent member keeps its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct Change {
    down: Option<bool>,
    forget_keys: Option<bool>,
    unauthorised: Option<bool>,
}

impl Switches {
    pub(crate) fn change(&mut self, Change { down, forget_keys, unauthorised }: Change) {
        self.down = down.unwrap_or(self.down);
        self.unauthorised = unauthorised.unwrap_or(self.unauthorised);
        self.forget_keys = forget_keys.unwrap_or(self.forget_keys);
    }

    /// The behaviour for one call while these switches hold.
    pub(crate) fn over(self, told: &Behaviour) -> Behaviour {
        Behaviour {
            down: self.down || told.down,
            forget_keys: self.forget_keys || told.forget_keys,
            unauthorised: if self.unauthorised { u64::MAX } else { told.unauthorised },
            ..told.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(order: &str, service: Service, operation: Operation) -> Result<Behaviour, serde_json::Error> {
        let body = format!(r#"{{"OrderID":"o1","Order":{order},"Outputs":{{"x":[1E999]}}}}"#);
        Behaviour::told(body.as_bytes(), service, operation)
    }

    #[test]
    fn an_order_without_the_member_gets_a_good_service() {
        let order = r#"{"Total":10000000000000000000000000.10,"e":1E999,"s":"\ud800","n":{"StandIn":1}}"#;
        assert_eq!(told(order, Service::Payment, Operation::Forward).unwrap(), Behaviour::default());
    }

    #[test]
    fn each_service_and_each_way_is_told_apart() {
        let order = r#"{"StandIn":{"payment":{"Flaky":2,"SlowMs":99999999,"BusyMs":99999999,"Undo":{"Down":true}},
            "shipping":{"Decline":"no","ForgetKeys":true},"inventory":{"Unauthorised":3,"PendingMs":70}}}"#;
        let forward = told(order, Service::Payment, Operation::Forward).unwrap();
        assert_eq!(forward, Behaviour { flaky: 2, slow_ms: WAIT_MS_MAX, busy_ms: WAIT_MS_MAX, ..Behaviour::default() });
        let undo = told(order, Service::Payment, Operation::Undo).unwrap();
        assert_eq!(undo, Behaviour { down: true, ..Behaviour::default() });
        let shipping = told(order, Service::Shipping, Operation::Forward).unwrap();
        assert_eq!((shipping.decline.as_deref(), shipping.forget_keys), (Some("no"), true));
        let inventory = told(order, Service::Inventory, Operation::Forward).unwrap();
        assert_eq!(inventory, Behaviour { unauthorised: 3, pending_ms: 70, ..Behaviour::default() });
        assert_eq!(told(order, Service::Inventory, Operation::Undo).unwrap(), Behaviour::default());
    }

    #[test]
    fn a_typing_error_is_refused_by_name() {
        for (order, word) in [
            (r#"{"StandIn":{"payment":{"Flakey":2}}}"#, "Flakey"),
            (r#"{"StandIn":{"payment":{"Undo":{"Undo":{}}}}}"#, "Undo"),
            (r#"{"StandIn":{"payment":{"Flaky":-1}}}"#, "-1"),
        ] {
            let error = told(order, Service::Inventory, Operation::Forward).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn what_is_not_named_stays() {
        let mut switches = Switches { forget_keys: true, ..Switches::default() };
        switches.change(serde_json::from_str(r#"{"Down": true}"#).unwrap());
        assert_eq!(switches, Switches { down: true, forget_keys: true, ..Switches::default() });
        switches.change(serde_json::from_str(r#"{"ForgetKeys": false, "Unauthorised": true}"#).unwrap());
        assert_eq!(switches, Switches { down: true, forget_keys: false, unauthorised: true });
    }
}
