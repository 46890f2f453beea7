//! Workflows and settings that are applied while the system runs: their records, and the cache through which the
//! functions read them.
//!
//! A version of a workflow never changes once it is applied ([`Definition`]). What new orders begin with, and the
//! settings of the agents, are one record that each application replaces ([`Deployment`]). Without records there are
//! the compiled workflow and its agents.

mod catalogue;
mod installation;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::pin::Pin;
pub use catalogue::{Catalogue, DEPLOYMENT_FRESH_MS, UnknownWorkflow};
pub use installation::installation;

use crate::callback::CallbackKey;
use crate::id::OrderId;
use crate::json::Json;
use crate::ports::{HasRecords, Listed, PortError, Record, RecordKind, Records};
use crate::time::Timestamp;
use crate::workflow::{Workflow, agent_names};

/// One version of a workflow, as it was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Definition {
    /// Its [`Pin`] as a text.
    pub key: Arc<str>,
    /// Of the record: 1 when it was applied, +1 when it was retired.
    pub version: u64,
    /// The workflow, in TOML.
    pub text: Arc<str>,
    /// [`Definition::hash_of`] the text.
    pub hash: Arc<str>,
    /// When it was applied.
    pub applied_at: Timestamp,
    /// The operator.
    pub applied_by: Arc<str>,
    /// When it was retired: no order begins with it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
}

impl Definition {
    /// The key of the record with the [`installation`]'s random part as its text. It is no [`Pin`].
    pub const INSTALLATION: &str = "installation";

    /// The hash of a definition: the SHA-256 of its content in hexadecimal. Comments, the order of keys and blanks do not
    /// change it. A text that is no TOML has the hash of the empty content.
    #[must_use]
    pub fn hash_of(text: &str) -> String {
        let content: serde_json::Value = toml::from_str(text).unwrap_or_default();
        Json::of(&content).fingerprint()
    }

    /// The workflow and its version; `None` if the key is none.
    #[must_use]
    pub fn pin(&self) -> Option<Pin> {
        self.key.parse().ok()
    }
}

/// All versions that were applied. The record of the installation, which is beside them, is none.
///
/// # Errors
/// [`PortError`] if the records cannot be read.
pub async fn versions(ports: &impl HasRecords) -> Result<BTreeMap<Pin, Definition>, PortError> {
    let stored: Vec<Definition> = ports.records().list(usize::MAX).await?;
    Ok(stored.into_iter().filter_map(|definition| Some((definition.pin()?, definition))).collect())
}

impl Record for Definition {
    const KIND: RecordKind = RecordKind::Definition;

    fn key(&self) -> &str {
        &self.key
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Listed for Definition {}

/// What new orders begin with, and the settings of the agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Deployment {
    /// +1 at every change.
    pub version: u64,
    /// The workflow of orders that name none.
    pub default: Arc<str>,
    /// For each workflow, the versions that new orders begin with.
    pub workflows: BTreeMap<Arc<str>, Choice>,
    /// The highest version of each workflow that was applied or chosen. An application chooses only a later one, so it takes no
    /// choice of an operator back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub highest: BTreeMap<Arc<str>, u32>,
    /// The text of `stepwarden.toml`, with the settings of the agents.
    pub settings: Arc<str>,
    /// Since when each schedule of the settings counts with its present times: no due time before is posted (rule 48).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schedules: BTreeMap<Arc<str>, Timestamp>,
    /// The keys of callback addresses (rule 38), of which the last one signs. None before a step needs one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callback_keys: Vec<CallbackKey>,
    /// When it was changed last.
    pub applied_at: Timestamp,
    /// The operator.
    pub applied_by: Arc<str>,
    /// Whether the settings are of the folder of a start (`serve --config`), so that the next start may replace them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_start: bool,
}

impl Deployment {
    /// The key of the only record.
    pub const KEY: &str = "current";
    /// In the place of an operator, where a start applies its folder.
    pub const BY_START: &str = "serve --config";

    /// The text with the settings of the agents; `None` if it names none, so those of the host count.
    #[must_use]
    pub fn agents(&self) -> Option<&Arc<str>> {
        (!agent_names(&self.settings).is_empty()).then_some(&self.settings)
    }
}

impl Record for Deployment {
    const KIND: RecordKind = RecordKind::Deployment;

    fn key(&self) -> &str {
        Self::KEY
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// The versions that new orders of a workflow begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Choice {
    /// The version of all orders, or of those outside the share.
    pub version: u32,
    /// Another version for a share of the orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

/// A version for a share of new orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Share {
    /// The version.
    pub version: u32,
    /// The share of new orders, from 1 to 99 percent.
    pub percent: u8,
}

impl Choice {
    /// All orders begin with this version.
    #[must_use]
    pub const fn all(version: u32) -> Self {
        Self { version, share: None }
    }

    /// The version of this order. The same order always gets the same, so a repeated post changes nothing.
    #[must_use]
    pub fn of(&self, order_id: OrderId) -> u32 {
        match self.share {
            Some(share) if order_id.percentile() < share.percent => share.version,
            Some(_) | None => self.version,
        }
    }

    /// The versions that new orders may begin with.
    pub fn versions(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.version).chain(self.share.map(|share| share.version))
    }
}

impl Workflow {
    /// Its name and version.
    #[must_use]
    pub fn pin(&self) -> Pin {
        Pin { name: self.name.clone(), version: self.version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_order_change_no_hash_and_content_does() {
        let hash = |text: &str| Definition::hash_of(text);
        let plain = hash("name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"");
        assert_eq!(plain, hash("# a comment\nversion = 1\nname = 'w'\n\n[[step]]\nname = \"a\" # more"));
        assert_ne!(plain, hash("name = \"w\"\nversion = 1\n[[step]]\nname = \"b\""));
        assert_ne!(plain, hash("name = \"w\"\nversion = 2\n[[step]]\nname = \"a\""));
    }

    #[test]
    fn a_share_of_the_orders_begins_with_the_other_version_and_each_order_always_with_the_same() {
        let choice = Choice { version: 1, share: Some(Share { version: 2, percent: 20 }) };
        let ids = (0..2_000).map(|n| OrderId::from_idempotency_key("shop", &n.to_string()));
        let generated = (0..2_000_u64).map(|n| {
            let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            OrderId::generate(Timestamp::from_epoch_ms(1_795_195_603_007), [mix(n), mix(mix(n + 1))])
        });
        for ids in [ids.collect::<Vec<_>>(), generated.collect()] {
            let shared = ids.iter().filter(|id| choice.of(**id) == 2).count();
            assert!((360..=440).contains(&shared), "{shared} of 2000");
            assert!(ids.iter().all(|id| Choice::all(1).of(*id) == 1));
        }
    }
}
