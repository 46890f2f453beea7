//! The three agents that ship.

use std::fmt;
use std::sync::Arc;

use agent::{Agent, Policy, PolicyError};
use config::{BadUrl, Operations, Remote};

use crate::HttpAgent;
use crate::client::{HttpClients, TlsError};
use crate::service::HttpService;
use crate::settings::AgentSettings;

/// One of the shipped agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shipped {
    /// Reserves and releases stock.
    Inventory,
    /// Charges and refunds.
    Payment,
    /// Ships and cancels.
    Shipping,
}

impl Shipped {
    /// All shipped agents.
    pub const ALL: [Self; 3] = [Self::Inventory, Self::Payment, Self::Shipping];

    /// Its name in workflows and for its queue.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inventory => "inventory",
            Self::Payment => "payment",
            Self::Shipping => "shipping",
        }
    }

    /// The variable that holds the base URL of its service.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Inventory => "INVENTORY_URL",
            Self::Payment => "PAYMENT_URL",
            Self::Shipping => "SHIPPING_URL",
        }
    }

    /// The setting that holds the base URL of its service.
    const fn url_setting(self) -> &'static str {
        match self {
            Self::Inventory => "agents.inventory.url",
            Self::Payment => "agents.payment.url",
            Self::Shipping => "agents.shipping.url",
        }
    }

    /// The operations of its service.
    #[must_use]
    pub fn operations(self) -> Operations<'static> {
        Operations::usual(self.name())
    }

    /// The agent for the service under this base URL.
    ///
    /// # Errors
    /// [`BadVariable`] with the name of the variable, and the fault.
    pub fn agent(self, base: &str, policy: Policy, clients: &HttpClients) -> Result<HttpAgent, BadVariable> {
        self.agent_with(base, AgentSettings::with_policy(policy), clients)
    }

    /// The agent with these settings. Without a URL of theirs its service is under this base URL.
    ///
    /// # Errors
    /// [`BadVariable`] with the name of the variable, and the fault.
    pub fn agent_with(
        self,
        base: &str,
        settings: AgentSettings,
        clients: &HttpClients,
    ) -> Result<HttpAgent, BadVariable> {
        let settings = Arc::new(settings);
        let variable = if settings.url().is_some() { self.url_setting() } else { self.variable() };
        self.try_agent(base, settings, clients).map_err(|fault| BadVariable { variable, fault })
    }

    fn try_agent(self, base: &str, settings: Arc<AgentSettings>, clients: &HttpClients) -> Result<HttpAgent, Fault> {
        let base = settings.url().unwrap_or(base);
        let remote = Arc::new(Remote::new(base, settings.operations(self.operations()))?);
        let policy = settings.policy.clone();
        let client = match settings.auth.as_ref().and_then(|auth| auth.tls_client()) {
            Some(_) if !remote.is_encrypted() => return Err(Fault::Unencrypted),
            Some(client) => client,
            None => clients.reaching(remote.is_encrypted())?,
        };
        let service = HttpService::new(client, remote, settings);
        let make_service: Box<dyn Fn() -> HttpService + Send + Sync> = Box::new(move || service.clone());
        Ok(Agent::new(self.name(), policy, make_service)?)
    }
}

/// The base URLs of the three services, from the environment.
#[derive(Debug, Clone, Copy)]
pub struct Urls<'a> {
    /// `INVENTORY_URL`.
    pub inventory: &'a str,
    /// `PAYMENT_URL`.
    pub payment: &'a str,
    /// `SHIPPING_URL`.
    pub shipping: &'a str,
}

/// The three agents, for a process that runs all of them.
#[derive(Debug)]
pub struct ShippedAgents {
    /// Reserves stock.
    pub inventory: HttpAgent,
    /// Charges.
    pub payment: HttpAgent,
    /// Ships.
    pub shipping: HttpAgent,
}

impl ShippedAgents {
    /// All three, with one pool of connections and the same policy.
    ///
    /// # Errors
    /// [`BadConfig`], which names every bad variable at once.
    pub fn new(urls: Urls<'_>, policy: &Policy) -> Result<Self, BadConfig> {
        Self::with_policies(urls, |_| policy.clone())
    }

    /// All three, with one pool of connections and a policy for each: a service may be slower than the others, or may
    /// need a memo because it does not recognise idempotency keys.
    ///
    /// # Errors
    /// [`BadConfig`], which names every bad variable at once.
    pub fn with_policies(urls: Urls<'_>, policy: impl Fn(Shipped) -> Policy) -> Result<Self, BadConfig> {
        let clients = HttpClients::new();
        let agent = |shipped: Shipped, base| shipped.agent(base, policy(shipped), &clients);
        let inventory = agent(Shipped::Inventory, urls.inventory);
        let payment = agent(Shipped::Payment, urls.payment);
        let shipping = agent(Shipped::Shipping, urls.shipping);
        match (inventory, payment, shipping) {
            (Ok(inventory), Ok(payment), Ok(shipping)) => Ok(Self { inventory, payment, shipping }),
            (inventory, payment, shipping) => {
                Err(BadConfig([inventory.err(), payment.err(), shipping.err()].into_iter().flatten().collect()))
            }
        }
    }

    /// One of the three.
    #[must_use]
    pub const fn get(&self, shipped: Shipped) -> &HttpAgent {
        match shipped {
            Shipped::Inventory => &self.inventory,
            Shipped::Payment => &self.payment,
            Shipped::Shipping => &self.shipping,
        }
    }
}

/// A variable with a value that no agent accepts.
#[derive(Debug, thiserror::Error)]
#[error("{variable}: {fault}")]
pub struct BadVariable {
    /// Its name.
    pub variable: &'static str,
    /// The fault.
    #[source]
    pub fault: Fault,
}

/// Why no agent can be made.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The base URL is invalid.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The settings have a client certificate or an authority, and the base URL has no TLS.
    #[error("it is no https URL, though the settings have tls: give one, or leave tls out")]
    Unencrypted,
    /// The base URL needs HTTPS, and the machine has no root certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// All faults of the configuration, at least one.
#[derive(Debug, thiserror::Error)]
pub struct BadConfig(pub Vec<BadVariable>);

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, bad) in self.0.iter().enumerate() {
            write!(f, "{}{bad}", if position > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::workflow::Workflows;

    use super::*;

    fn urls() -> Urls<'static> {
        Urls { inventory: "http://localhost:1", payment: "http://localhost:2/pay", shipping: "http://localhost:3" }
    }

    #[test]
    fn the_shipped_agents_are_those_of_the_shipped_workflow() {
        assert_eq!(Shipped::ALL.map(Shipped::name), Workflows::SHIPPED_AGENTS);
        let agents = ShippedAgents::new(urls(), &Policy::default()).unwrap();
        assert_eq!(Shipped::ALL.map(|shipped| agents.get(shipped).name().to_string()), Workflows::SHIPPED_AGENTS);
    }

    #[test]
    fn each_service_has_its_variable_and_operations() {
        let of = |shipped: Shipped| (shipped.variable(), shipped.operations().forward, shipped.operations().undo);
        let expected = [
            ("INVENTORY_URL", "reserve", "release"),
            ("PAYMENT_URL", "charge", "refund"),
            ("SHIPPING_URL", "ship", "cancel"),
        ];
        assert_eq!(Shipped::ALL.map(of), expected);
    }

    #[test]
    fn every_bad_variable_is_named_in_one_error() {
        let bad = Urls { inventory: "nonsense", shipping: "http://me:secret@localhost", ..urls() };
        let text = ShippedAgents::new(bad, &Policy::default()).unwrap_err().to_string();
        assert_eq!(
            text,
            "INVENTORY_URL: it is not a whole URL such as http://localhost:8080/payment; \
             SHIPPING_URL: it must not hold a user name or password"
        );
    }

    #[test]
    fn each_agent_may_have_a_policy_of_its_own() {
        let only_payment_remembers = |shipped| Policy {
            memo: (shipped == Shipped::Payment).then(agent::MemoPolicy::default),
            ..Policy::default()
        };
        let agents = ShippedAgents::with_policies(urls(), only_payment_remembers).unwrap();
        let remembers = Shipped::ALL.map(|shipped| agents.get(shipped).policy().memo.is_some());
        assert_eq!(remembers, [false, true, false]);
    }

    #[test]
    fn root_certificates_are_read_only_for_https() {
        let clients = HttpClients::new();
        Shipped::Payment.agent("http://localhost:2", Policy::default(), &clients).unwrap();
        assert!(!clients.has_read_root_certificates());
        // Both machines are possible: with certificates there is an agent, without them a clear error.
        match Shipped::Payment.agent("https://localhost:2", Policy::default(), &clients) {
            Ok(_) => assert!(clients.has_read_root_certificates()),
            Err(error) => assert!(error.to_string().starts_with("PAYMENT_URL: no root certificates"), "{error}"),
        }
    }
}
