//! An agent whose service uses HTTP.

use std::sync::Arc;

use agent::{Agent, Answer, Call, Policy, PolicyError, Service};
use config::BadUrl;
use http_call::remote;

use crate::client::{HttpClients, TlsError};
use crate::service::HttpService;
use crate::settings::AgentSettings;

/// An agent whose service uses HTTP.
pub type HttpAgent = Agent<Box<dyn Fn() -> AgentService + Send + Sync>>;

/// The service of an agent, or the fault of its settings.
#[derive(Debug, Clone)]
pub enum AgentService {
    /// Its calls.
    Http(HttpService),
    /// No call can be made, for this reason. It counts as a fault of the configuration: orders wait (rule 17).
    Misconfigured(Arc<str>),
}

/// Why no agent can be made.
#[derive(Debug, thiserror::Error)]
pub enum AgentFault {
    /// The base URL is invalid.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The settings have a client certificate or an authority, and the base URL has no TLS.
    #[error("it is no https URL, though the settings have tls: give one, or leave tls out")]
    Unencrypted,
    /// The base URL needs HTTPS, and the machine has no root certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The name or the policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// The agent of this name with these settings. Without a URL of theirs its service is under `base`.
///
/// # Errors
/// [`AgentFault`].
pub fn http_agent(
    name: &str,
    base: &str,
    settings: AgentSettings,
    clients: &HttpClients,
) -> Result<HttpAgent, AgentFault> {
    let policy = settings.policy.clone();
    Ok(agent_of(name, policy, AgentService::Http(http_service(name, base, settings, clients)?))?)
}

/// The calls of this agent. Without a URL of its settings its service is under `base`.
///
/// # Errors
/// [`AgentFault`].
pub fn http_service(
    name: &str,
    base: &str,
    settings: AgentSettings,
    clients: &HttpClients,
) -> Result<HttpService, AgentFault> {
    let settings = Arc::new(settings);
    let remote = Arc::new(remote(name, base, &settings)?);
    let client = match settings.auth.as_ref().and_then(|auth| auth.tls_client()) {
        Some(_) if !remote.is_encrypted() => return Err(AgentFault::Unencrypted),
        Some(client) => client,
        None => clients.reaching(remote.is_encrypted())?.apart(),
    };
    Ok(HttpService::new(client, remote, settings, clients.calls.clone()))
}

/// The agent of this name whose settings have a fault. It makes no call.
///
/// # Errors
/// [`PolicyError`] if the name is invalid.
pub(crate) fn misconfigured(name: &str, policy: Policy, reason: &str) -> Result<HttpAgent, PolicyError> {
    agent_of(name, policy, AgentService::Misconfigured(reason.into()))
}

fn agent_of(name: &str, policy: Policy, service: AgentService) -> Result<HttpAgent, PolicyError> {
    let make_service: Box<dyn Fn() -> AgentService + Send + Sync> = Box::new(move || service.clone());
    Agent::new(name, policy, make_service)
}

impl Service for AgentService {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        match self {
            Self::Http(service) => service.forward(call).await,
            Self::Misconfigured(reason) => Answer::misconfigured(&**reason),
        }
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        match self {
            Self::Http(service) => service.undo(call).await,
            Self::Misconfigured(reason) => Answer::misconfigured(&**reason),
        }
    }

    async fn look(&mut self, call: &Call<'_>) -> Answer {
        match self {
            Self::Http(service) => service.look(call).await,
            Self::Misconfigured(reason) => Answer::misconfigured(&**reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_certificates_are_read_only_for_https() {
        let clients = HttpClients::new();
        let agent = |url| http_agent("payment", url, AgentSettings::default(), &clients);
        agent("http://localhost:2").unwrap();
        assert!(!clients.has_read_root_certificates());
        // Both machines are possible: with certificates there is an agent, without them a clear error.
        match agent("https://localhost:2") {
            Ok(_) => assert!(clients.has_read_root_certificates()),
            Err(error) => assert!(error.to_string().starts_with("no root certificates"), "{error}"),
        }
    }
}
