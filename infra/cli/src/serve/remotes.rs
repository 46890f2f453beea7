//! The three remote services, real ones or stand-ins, and the agents that call them.

use std::sync::Arc;

use agent::Policy;
use agents::{BadConfig, HttpAgent, ShippedAgents, Urls};

use crate::args::ServiceArgs;
use crate::standin::{Service, StandIns};

/// The agents, and the stand-ins where a service has no URL.
#[derive(Debug)]
pub struct Remotes {
    pub(super) agents: Agents,
    pub(super) stand_ins: Option<StandIns>,
}

/// In the order of [`Service::ALL`].
pub(super) type Agents = [Arc<HttpAgent>; 3];

/// The agents cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RemotesError {
    /// One or more URLs are none; the text names all of them.
    #[error(transparent)]
    Urls(#[from] BadConfig),
    /// The stand-ins find no port.
    #[error("cannot start the stand-ins: {0}")]
    StandIns(#[from] std::io::Error),
}

impl Remotes {
    /// Takes the URLs as the command line or the environment gave them. A service whose URL is not given, or empty, is
    /// played by a stand-in, which remembers its newest `stand_in_keys_max` idempotency keys.
    ///
    /// # Errors
    /// [`RemotesError`], whose text is one line.
    pub async fn start(urls: &ServiceArgs, stand_in_keys_max: usize) -> Result<Self, RemotesError> {
        let given = [&urls.inventory_url, &urls.payment_url, &urls.shipping_url];
        let given = given.map(|url| url.as_deref().map(str::trim).filter(|url| !url.is_empty()));
        let stand_ins =
            if given.contains(&None) { Some(StandIns::start_anywhere(stand_in_keys_max).await?) } else { None };
        let url = |service: Service, given: Option<&str>| {
            given
                .map(str::to_owned)
                .or_else(|| stand_ins.as_ref().map(|stand_ins| stand_ins.url_of(service)))
                .unwrap_or_default()
        };
        let [inventory, payment, shipping] = given;
        let (inventory, payment, shipping) =
            (url(Service::Inventory, inventory), url(Service::Payment, payment), url(Service::Shipping, shipping));
        let urls = Urls { inventory: &inventory, payment: &payment, shipping: &shipping };
        let ShippedAgents { inventory, payment, shipping } = ShippedAgents::new(urls, &Policy::default())?;
        Ok(Self { agents: [inventory, payment, shipping].map(Arc::new), stand_ins })
    }

    /// The stand-ins, where a service has no URL of its own.
    #[must_use]
    pub const fn stand_ins(&self) -> Option<&StandIns> {
        self.stand_ins.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standin::KEYS_UNLIMITED;

    fn urls(inventory: &str, payment: &str, shipping: &str) -> ServiceArgs {
        let [inventory_url, payment_url, shipping_url] = [inventory, payment, shipping].map(|url| Some(url.to_owned()));
        ServiceArgs { inventory_url, payment_url, shipping_url }
    }

    #[tokio::test]
    async fn a_stand_in_plays_a_service_whose_url_is_not_given_or_empty() {
        let none = Remotes::start(&ServiceArgs::default(), KEYS_UNLIMITED).await.unwrap();
        assert!(none.stand_ins().is_some());
        let empty =
            Remotes::start(&urls("http://localhost:1", " ", "http://localhost:3"), KEYS_UNLIMITED).await.unwrap();
        assert!(empty.stand_ins().is_some());
        let all = urls("http://localhost:1", "http://localhost:2/pay/", "http://localhost:3");
        assert!(Remotes::start(&all, KEYS_UNLIMITED).await.unwrap().stand_ins().is_none());
    }

    #[tokio::test]
    async fn every_bad_url_is_named_in_one_line() {
        let error =
            Remotes::start(&urls("nonsense", "", "ftp://localhost"), KEYS_UNLIMITED).await.unwrap_err().to_string();
        assert!(error.contains("INVENTORY_URL") && error.contains("SHIPPING_URL"), "{error}");
        assert!(!error.contains("PAYMENT_URL") && !error.contains('\n'), "{error}");
    }
}
