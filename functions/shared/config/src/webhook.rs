//! The events of a provider that tell results (rule 41).

use std::collections::BTreeMap;

use domain::search::Pointer;

use crate::auth::Placed;

/// The webhook of one agent.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// The references to its secrets. An event that one of them signs is genuine.
    pub secrets: Vec<Placed>,
    /// How the provider signs.
    pub scheme: WebhookScheme,
    /// Where the body has the idempotency key of the call.
    pub key: Pointer,
    /// The step, if the body has the id of the order alone there.
    pub step: Option<String>,
    /// Where the settings name it, in bytes.
    pub(crate) step_at: usize,
    /// Where the body has the name of the event.
    pub event: Pointer,
    /// The events that mean something, by name.
    pub events: BTreeMap<String, EventMeaning>,
    /// Where the body has the code of a rejection. `None`: the code is the name of the event.
    pub code: Option<Pointer>,
    /// Where the body has a message to it.
    pub message: Option<Pointer>,
    /// Where the body has the output. `None`: the output is the whole body.
    pub output: Option<Pointer>,
}

/// How a provider signs its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookScheme {
    /// Standard Webhooks: identifier, time and body.
    StandardWebhooks,
    /// The header `Stripe-Signature`: time and body.
    Stripe,
    /// The header `X-Hub-Signature-256`, as GitHub sends it: the body alone.
    Github,
}

/// What an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventMeaning {
    /// The service did the work.
    Done,
    /// The step is rejected for good.
    No,
    /// The service is at work still: the wait for the result begins anew.
    Working,
}

impl WebhookScheme {
    /// All of them, in the order of their words.
    pub(crate) const ALL: [Self; 3] = [Self::StandardWebhooks, Self::Stripe, Self::Github];

    /// Its word in the settings.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard-webhooks",
            Self::Stripe => "stripe",
            Self::Github => "github",
        }
    }
}
