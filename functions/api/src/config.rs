//! The configuration of the API by its deployment.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use domain::definition::{Catalogue, installation};
use domain::limits::DOCUMENT_BYTES_MAX;
use domain::order::Order;
use domain::ports::PortError;
use domain::redaction::Redaction;
use domain::workflow::agent_names;

use crate::ports::ApiPorts;

/// Longest body that is read, in bytes. A host reads at most one byte more, so that a longer body is recognised.
pub const BODY_BYTES_MAX: usize = DOCUMENT_BYTES_MAX;

type Checking = Pin<Box<dyn Future<Output = Result<(), PortError>> + Send>>;

/// Whether the process can do its work at this moment.
#[derive(Clone)]
struct Readiness(Arc<dyn Fn() -> Checking + Send + Sync>);

/// The API's configuration; it does not change while the process runs.
#[derive(Debug, Clone, Default)]
pub struct ApiConfig {
    /// The registered reply channels: the valid values of `ReplyChannel` (rule 10).
    reply_channels: BTreeSet<Arc<str>>,
    /// The names of the agents, which are the names of the remote services.
    services: BTreeSet<Arc<str>>,
    /// The workflows.
    catalogue: Option<Catalogue>,
    /// The redaction of documents and outputs.
    redaction: Redaction,
    /// Whether the host carries no order on.
    is_paused: bool,
    /// Whether stand-ins play services.
    has_stand_ins: bool,
    /// The answer to `/ready`. Without it there is no such path.
    readiness: Option<Readiness>,
    /// Whether there is room for a new order. Without it there always is.
    room: Option<Room>,
    /// The random part of the installation, once it was read. Without it, ids are the same in all installations.
    installation: Option<Arc<OnceLock<Arc<str>>>>,
}

/// Whether the host has room now for a new order of this submitter with a document of this size in bytes.
type HasRoom = dyn Fn(&str, usize) -> bool + Send + Sync;

#[derive(Clone)]
struct Room(Arc<HasRoom>);

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").finish_non_exhaustive()
    }
}

impl ApiConfig {
    /// An API with these registered reply channels.
    #[must_use]
    pub fn new<Name: Into<Arc<str>>>(reply_channels: impl IntoIterator<Item = Name>) -> Self {
        let reply_channels = reply_channels.into_iter().map(Into::into).collect();
        Self { reply_channels, ..Self::default() }
    }

    /// The names of all agents. Their services are listed even if they never failed.
    #[must_use]
    pub fn with_services<Name: Into<Arc<str>>>(mut self, agents: impl IntoIterator<Item = Name>) -> Self {
        self.services = agents.into_iter().map(Into::into).collect();
        self
    }

    /// The workflows that orders may name. Their services are listed even if they never failed. Without it, orders are
    /// queued unpinned, and the submission chooses.
    #[must_use]
    pub fn with_catalogue(self, catalogue: &Catalogue) -> Self {
        Self { catalogue: Some(catalogue.clone()), ..self }
    }

    /// The names of members whose values are not shown, in documents and outputs. Without it, all are shown.
    #[must_use]
    pub fn redacting<Name: AsRef<str>>(mut self, names: impl IntoIterator<Item = Name>) -> Self {
        self.redaction = Redaction::of(names);
        self
    }

    /// Shows that the host carries no order on.
    #[must_use]
    pub fn paused_if(self, is_paused: bool) -> Self {
        Self { is_paused, ..self }
    }

    /// Shows that stand-ins play the services without a URL.
    #[must_use]
    pub fn with_stand_ins_if(self, has_stand_ins: bool) -> Self {
        Self { has_stand_ins, ..self }
    }

    /// Serves `/ready` with the result of `check`. Its error is shown.
    #[must_use]
    pub fn ready_if<Checks>(self, check: impl Fn() -> Checks + Send + Sync + 'static) -> Self
    where
        Checks: Future<Output = Result<(), PortError>> + Send + 'static,
    {
        Self { readiness: Some(Readiness(Arc::new(move || Box::pin(check())))), ..self }
    }

    /// Takes a new order only while there is room for it, by its submitter and the bytes of its document.
    #[must_use]
    pub fn with_room_if(self, has_room: impl Fn(&str, usize) -> bool + Send + Sync + 'static) -> Self {
        Self { room: Some(Room(Arc::new(has_room))), ..self }
    }

    /// Gives the ids of orders with an idempotency key the random part of this installation (rule 4).
    #[must_use]
    pub fn with_installation(self) -> Self {
        Self { installation: Some(Arc::default()), ..self }
    }

    /// The random part of the installation, which is read once.
    ///
    /// # Errors
    /// [`PortError`] if it cannot be read.
    pub(crate) async fn installation(&self, ports: &impl ApiPorts) -> Result<Arc<str>, PortError> {
        let Some(known) = &self.installation else { return Ok("".into()) };
        if let Some(part) = known.get() {
            return Ok(part.clone());
        }
        let part = installation(ports).await?;
        Ok(known.get_or_init(|| part).clone())
    }

    /// Whether there is room for this new order.
    pub(crate) fn has_room(&self, order: &Order) -> bool {
        let bytes = order.document.text().len();
        self.room.as_ref().is_none_or(|Room(has_room)| has_room(&order.submitter, bytes))
    }

    /// Whether a reply channel of this name is registered.
    #[must_use]
    pub fn knows(&self, reply_channel: &str) -> bool {
        self.reply_channels.contains(reply_channel)
    }

    /// The names of the remote services, sorted: those of the applied settings, else those of the compiled workflows.
    ///
    /// # Errors
    /// [`PortError`] if the deployment cannot be read.
    pub(crate) async fn services(&self, ports: &impl ApiPorts) -> Result<BTreeSet<Arc<str>>, PortError> {
        let mut services = self.services.clone();
        if let Some(catalogue) = &self.catalogue {
            let applied = catalogue.deployment(ports).await?.map(|deployment| agent_names(&deployment.settings));
            let applied = applied.filter(|names| !names.is_empty());
            services.extend(applied.unwrap_or_else(|| catalogue.compiled().agents()));
        }
        Ok(services)
    }

    /// Whether the process can do its work. `None` if the host does not say.
    pub(crate) async fn is_ready(&self) -> Option<Result<(), PortError>> {
        let Readiness(check) = self.readiness.as_ref()?;
        Some(check().await)
    }

    /// Whether the host carries no order on.
    pub(crate) const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether stand-ins play services.
    pub(crate) const fn has_stand_ins(&self) -> bool {
        self.has_stand_ins
    }

    /// The workflows, if the host has set them.
    pub(crate) const fn catalogue(&self) -> Option<&Catalogue> {
        self.catalogue.as_ref()
    }

    /// The redaction of documents and outputs.
    pub(crate) const fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

#[cfg(test)]
mod tests {
    use domain::definition::Definition;
    use domain::id::OrderId;
    use domain::ports::RecordKind;

    use super::*;
    use crate::testing::{CALLER, CHANNEL, Fake, ORDER};

    const KEY: (&str, &str) = ("Idempotency-Key", "k1");

    /// The id of an order under a key, and of its repeat at another instance of the API.
    fn id_in(fake: &Fake) -> String {
        let ids = [(); 2].map(|()| {
            fake.config(ApiConfig::new([CHANNEL]).with_installation());
            fake.post("/orders", &[KEY], ORDER).body["OrderID"].as_str().unwrap().to_owned()
        });
        assert_eq!(ids[0], ids[1]);
        ids[0].clone()
    }

    #[test]
    fn rule_4_the_same_key_in_two_installations_makes_two_orders() {
        let (one, other) = (Fake::default(), Fake::default());
        other.stores_record(&Definition {
            key: Definition::INSTALLATION.into(),
            version: 1,
            text: "another random part".into(),
            hash: "".into(),
            applied_at: domain::time::Timestamp::from_epoch_ms(0),
            applied_by: "".into(),
            retired_at: None,
        });
        let ids = [id_in(&one), id_in(&other), OrderId::from_idempotency_key(CALLER, "k1").to_string()];
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
    }

    #[test]
    fn rule_4_no_order_is_accepted_while_the_installation_is_not_known() {
        let fake = Fake::default();
        fake.config(ApiConfig::new([CHANNEL]).with_installation());
        fake.down(RecordKind::Definition.get());
        assert_eq!(fake.post("/orders", &[KEY], ORDER).status, 503);
        assert_eq!(fake.post("/orders", &[], ORDER).status, 202, "no key, no need");
    }
}
