//! The webhooks of the agents of a process (rule 41).
//!
//! They are those of the settings that were applied, as for the agents. Anybody can post here. So a request whose
//! signature is wrong makes nothing be read but, once in a while, the secrets of its agent.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use agent::AgentPorts;
use bytes::Bytes;
use domain::json::{Json, JsonError, lossy_text, members};
use domain::ports::{Environment, PortError};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};

use super::{APPLIED, Applied, Fleet, version};
use crate::webhook::api::{CallbackApi, RemoteApi, is_for_provider};
use crate::webhook::{BODY_BYTES_MAX, Hook, Told, Unverified, answer};

/// What the paths of all webhooks begin with; the name of the agent follows.
pub const WEBHOOKS: &str = "/webhooks/";
/// The type of a form, which GitHub sends unless it is told otherwise.
const FORM: &[u8] = b"application/x-www-form-urlencoded";
const FORM_ADVICE: &str = ". It is a form: choose application/json as the content type of this webhook";
/// The end of the address for a heartbeat.
const HEARTBEAT: &str = "/heartbeat";

/// The webhooks of one version of the settings.
pub(super) struct Hooks {
    version: Option<u64>,
    /// `None`: the settings have a fault.
    all: Option<BTreeMap<Arc<str>, Arc<Hook>>>,
}

/// The webhook that a request is for.
enum Found {
    Hook(Arc<Hook>),
    None,
    /// The settings have a fault.
    Unknown,
}

impl<A: Applied> Fleet<A> {
    /// The API as the callbacks of these agents name it.
    #[must_use]
    pub fn api(&self) -> RemoteApi {
        RemoteApi::at(self.host.callbacks.as_ref().map_or("", agent::Callbacks::api), &self.clients)
    }

    /// Answers a request to the webhook of an agent. What a genuine event tells goes to `api`, and its answer is the
    /// answer.
    pub async fn webhook(
        &self,
        ports: &impl AgentPorts,
        api: &impl CallbackApi,
        request: Request<Bytes>,
    ) -> Response<Bytes> {
        let name = request.uri().path().strip_prefix(WEBHOOKS).unwrap_or_default();
        let hook = match self.hook(ports, name).await {
            Ok(Found::Hook(hook)) => hook,
            Ok(Found::None) => return answer::problem(StatusCode::NOT_FOUND, "no agent of this name has a webhook"),
            Ok(Found::Unknown) => return answer::unavailable("the settings of the agents have a fault"),
            Err(error) => return unread(&error),
        };
        if request.method() != Method::POST {
            return answer::wrong_method();
        }
        let (parts, body) = request.into_parts();
        if body.len() > BODY_BYTES_MAX {
            let detail = format!("the body is over the limit of {BODY_BYTES_MAX} bytes");
            return answer::problem(StatusCode::PAYLOAD_TOO_LARGE, &detail);
        }
        let agent = &*hook.agent;
        match hook.verify(&parts.headers, &body, ports.environment().wall()).await {
            Ok(()) => {}
            Err(Unverified::Refused(refusal)) => {
                tracing::info!(monotonic_counter.webhooks_refused = 1, agent, "an event is refused: {refusal}");
                return answer::problem(StatusCode::UNAUTHORIZED, &refusal.to_string());
            }
            Err(unverified @ Unverified::SecretUnread) => return answer::unavailable(&unverified.to_string()),
        }
        let document = match event_of(&body) {
            Ok(document) => document,
            Err(fault) => {
                let is_form = parts.headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(FORM));
                let advice = if is_form { FORM_ADVICE } else { "" };
                return answer::problem(StatusCode::BAD_REQUEST, &format!("the body is {fault}{advice}"));
            }
        };
        match hook.read_event(&document) {
            Ok(told) => self.tell(ports, api, agent, told).await,
            Err(not_for_us) => {
                tracing::debug!(monotonic_counter.webhooks_dropped = 1, agent, "an event is dropped: {not_for_us}");
                answer::not_taken(&not_for_us.to_string())
            }
        }
    }

    /// Posts what an event tells to the address of its call.
    async fn tell(&self, ports: &impl AgentPorts, api: &impl CallbackApi, agent: &str, told: Told) -> Response<Bytes> {
        let path = match &self.host.callbacks {
            Some(callbacks) => callbacks.path(ports, &told.awaited).await,
            None => Ok(None),
        };
        let path = match path {
            Ok(Some(path)) => path,
            Ok(None) => {
                tracing::error!(agent, "an event cannot be told: apply a folder with wait_within, which makes the key");
                return answer::unavailable("there is no key for callback addresses yet");
            }
            Err(error) => return unread(&error),
        };
        let (path, body) = match told.result {
            Some(body) => (path, body),
            None => (path + HEARTBEAT, Bytes::new()),
        };
        match api.post(path, body).await {
            Ok(response) if is_for_provider(response.status()) => {
                let (order_id, step, status) = (told.awaited.order_id, told.awaited.step, response.status().as_u16());
                if response.status().is_success() {
                    let event = "event taken";
                    tracing::debug!(monotonic_counter.webhooks_taken = 1, agent, %order_id, %step, status, event);
                } else {
                    let [why] =
                        members(&String::from_utf8_lossy(response.body()), ["detail"]).map(|why| lossy_text(why?));
                    let (words, why) = ("the API refused an event", why.unwrap_or_default());
                    tracing::warn!(monotonic_counter.webhooks_refused = 1, agent, %order_id, %step, status, why, words);
                }
                response
            }
            Ok(response) => {
                let status = response.status().as_u16();
                tracing::warn!(monotonic_counter.webhooks_untold = 1, agent, "the API answered an event with {status}");
                answer::unavailable("the event was not taken; send it again")
            }
            Err(unanswered) => {
                tracing::warn!(monotonic_counter.webhooks_untold = 1, agent, "an event was not told: {unanswered}");
                answer::unavailable("it is not known whether the event was taken; send it again")
            }
        }
    }

    /// The webhook of the agent of this name. Nothing is kept for a name that no settings have.
    async fn hook(&self, ports: &impl AgentPorts, name: &str) -> Result<Found, PortError> {
        let applied = self.applied.settings(ports, false).await?;
        let version = version(&applied);
        let mut hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let hooks = match hooks.take() {
            Some(known) if known.version == version => hooks.insert(known),
            Some(_) | None => {
                let (source, text) = match &applied {
                    Some((_, text)) => (APPLIED, text),
                    None => (&*self.host.source, &self.host.settings),
                };
                hooks.insert(Hooks { version, all: self.hooks_of(source, text) })
            }
        };
        Ok(match &hooks.all {
            Some(all) => all.get(name).map_or(Found::None, |hook| Found::Hook(hook.clone())),
            None => Found::Unknown,
        })
    }

    fn hooks_of(&self, source: &str, text: &str) -> Option<BTreeMap<Arc<str>, Arc<Hook>>> {
        let settings = config::Settings::parse(source, text);
        let settings = settings.map_err(|faults| tracing::error!("there are no webhooks: {faults}")).ok()?;
        let hooks = settings.all().filter_map(|(name, settings)| {
            let hook = Hook::new(name.clone(), settings.webhook.clone()?, self.host.secrets.clone());
            Some((name.clone(), Arc::new(hook)))
        });
        Some(hooks.collect())
    }
}

/// The JSON of a genuine event. A byte that is no UTF-8, or a control character, spoils its own text alone.
fn event_of(body: &[u8]) -> Result<Json, JsonError> {
    let is_bad = |c: char| c < ' ' && !c.is_ascii_whitespace();
    let text = String::from_utf8_lossy(body).replace(is_bad, "\u{fffd}");
    Json::received(text.as_bytes(), text.len())
        .map_err(|lossy| Json::received(body, BODY_BYTES_MAX).err().unwrap_or(lossy))
}

fn unread(error: &PortError) -> Response<Bytes> {
    tracing::warn!("the configuration cannot be read for an event: {error}");
    answer::unavailable("the configuration cannot be read now; send the event again")
}

#[cfg(test)]
mod tests;
