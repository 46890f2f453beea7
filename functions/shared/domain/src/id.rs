//! The ids of an order and of a command.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::limits::COMMAND_ID_CHARS_MAX;
use crate::state::Direction;
use crate::time::Timestamp;

/// The id of a command. Its sender finds it in the history of the order, and a repeat of it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(Arc<str>);

impl CommandId {
    /// A new id (UUID version 7).
    #[must_use]
    pub fn generate(now: Timestamp, random: [u64; 2]) -> Self {
        Self(OrderId::generate(now, random).to_string().into())
    }

    /// The id of the commands of a bulk job, of which an order gets one.
    #[must_use]
    pub const fn of_job(job_id: Arc<str>) -> Self {
        Self(job_id)
    }

    /// The id of the command by which an order cancels its child, which gets one.
    #[must_use]
    pub fn of_child(child: OrderId) -> Self {
        Self(format!("child:{child}").into())
    }

    /// The id that a client gave. `None` if it has another form than 1 to [`COMMAND_ID_CHARS_MAX`] letters, digits, `-`,
    /// `_`, `.` and `:` of ASCII.
    #[must_use]
    pub fn given(text: Arc<str>) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        ((1..=COMMAND_ID_CHARS_MAX).contains(&text.len()) && text.chars().all(is_plain)).then_some(Self(text))
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The key of an order and of its task: a UUID in its canonical lower-case text form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderId(Uuid);

/// The text is no order id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an order id: expected a UUID such as 01934b2e-1c5a-7d3f-8a21-5f0c9f4be011")]
pub struct NotAnOrderId;

impl OrderId {
    /// A new id that sorts by its time (UUID version 7), so that neighbours in time are neighbours on disk.
    #[must_use]
    pub fn generate(now: Timestamp, random: [u64; 2]) -> Self {
        let [high, low] = random.map(u64::to_be_bytes);
        let mut bits = [0_u8; 10];
        bits[..8].copy_from_slice(&high);
        bits[8..].copy_from_slice(&low[..2]);
        let epoch_ms = u64::try_from(now.epoch_ms()).unwrap_or(0);
        Self(Builder::from_unix_timestamp_millis(epoch_ms, &bits).into_uuid())
    }

    /// The id for a submitter's idempotency key: the same key always gives the same order (UUID version 8).
    #[must_use]
    pub fn from_idempotency_key(submitter: &str, key: &str) -> Self {
        Self::of_installation("", submitter, key)
    }

    /// The same in the installation with this random part, which may be empty. So no two of them give two orders the same
    /// id, from which the idempotency keys of the services follow.
    #[must_use]
    pub fn of_installation(installation: &str, submitter: &str, key: &str) -> Self {
        let mut hash = Sha256::new();
        if !installation.is_empty() {
            // No submitter has a name of this length.
            hash.update((u64::MAX - 1).to_be_bytes());
            hash.update(installation.as_bytes());
        }
        hash.update((submitter.len() as u64).to_be_bytes());
        hash.update(submitter.as_bytes());
        hash.update(key.as_bytes());
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The id of the order that repeats this one: an order is posted again at most once (UUID version 8).
    #[must_use]
    pub fn again(self) -> Self {
        let mut hash = Sha256::new();
        // No submitter has a name of this length, so no idempotency key gives the same id.
        hash.update(u64::MAX.to_be_bytes());
        hash.update(self.0.as_bytes());
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The id of the child order that a step of this one makes: each step makes one at most (UUID version 8).
    #[must_use]
    pub fn child(self, step: &str) -> Self {
        let mut hash = Sha256::new();
        // No submitter has a name of this length.
        hash.update((u64::MAX - 2).to_be_bytes());
        hash.update(self.0.as_bytes());
        hash.update(step.as_bytes());
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The shard of a new order in the index `watch`, of this number of shards (0 counts as 1).
    #[must_use]
    pub fn shard(self, shards: u8) -> u8 {
        // The last byte is random in both versions of the id.
        self.0.as_bytes()[15] % shards.max(1)
    }

    /// A number below 100 that is as likely as any other, and always the same for this order.
    #[must_use]
    pub fn percentile(self) -> u8 {
        // These bytes are random in all versions of the id.
        let [.., a, b, c, d, _] = *self.0.as_bytes();
        u8::try_from(u32::from_be_bytes([a, b, c, d]) % 100).unwrap_or_default()
    }

    /// The id of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The 16 bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl fmt::Debug for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for OrderId {
    type Err = NotAnOrderId;

    fn from_str(text: &str) -> Result<Self, NotAnOrderId> {
        // No braces, and no form without hyphens. Some programs write capitals.
        if text.len() != 36 {
            return Err(NotAnOrderId);
        }
        Uuid::try_parse(text).map(Self).map_err(|_| NotAnOrderId)
    }
}

impl Serialize for OrderId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl<'de> Deserialize<'de> for OrderId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The key under which a remote service recognises a call: `{OrderID}/{step}`, and `/undo` backward (rule 4).
#[must_use]
pub fn idempotency_key(order_id: OrderId, step: &str, direction: Direction) -> Arc<str> {
    let undo = match direction {
        Direction::Forward => "",
        Direction::Undo => "/undo",
    };
    [&*order_id.to_string(), "/", step, undo].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SHARDS;

    #[test]
    fn an_id_has_one_text_form() {
        let id = OrderId::generate(Timestamp::from_epoch_ms(1_795_195_603_007), [7, 9]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        assert_eq!(id.to_string().replace('-', "").parse::<OrderId>(), Err(NotAnOrderId));
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let at = Timestamp::from_epoch_ms(1_000_000);
        assert!(OrderId::generate(at, [u64::MAX; 2]) < OrderId::generate(at.plus_ms(1), [0; 2]));
    }

    #[test]
    fn a_key_names_one_order_of_one_submitter() {
        let id = OrderId::from_idempotency_key("shop", "k1");
        assert_eq!(id, OrderId::from_idempotency_key("shop", "k1"));
        assert_ne!(id, OrderId::from_idempotency_key("shop", "k2"));
        assert_ne!(id, OrderId::from_idempotency_key("sho", "pk1"));
    }

    #[test]
    fn an_order_is_repeated_under_one_other_id() {
        let id = OrderId::from_idempotency_key("shop", "k1");
        assert_eq!(id.again(), id.again());
        let ids = [id, id.again(), id.again().again(), OrderId::from_idempotency_key("shop", "k2").again()];
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn each_step_of_an_order_makes_one_child() {
        let id = OrderId::from_idempotency_key("shop", "k1");
        assert_eq!(id.child("a"), id.child("a"));
        let ids = [id, id.again(), id.child("a"), id.child("b"), id.child("a").child("a"), id.again().child("a")];
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn shards_share_the_orders() {
        let mut seen = [0_u32; SHARDS as usize];
        for n in 0..1_600 {
            seen[usize::from(OrderId::from_idempotency_key("shop", &n.to_string()).shard(SHARDS))] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
    }

    #[test]
    fn a_shard_is_one_of_those_there_are() {
        for n in 0..500 {
            let id = OrderId::from_idempotency_key("shop", &n.to_string());
            for shards in [1, 2, 3, 16, 99] {
                assert!(id.shard(shards) < shards, "{id} of {shards}");
            }
            assert_eq!(id.shard(0), 0, "none at all counts as one");
        }
    }

    #[test]
    fn a_command_may_have_any_short_id_of_plain_characters() {
        let generated = CommandId::generate(Timestamp::from_epoch_ms(1_000_000), [1, 2]);
        let longest = "x".repeat(COMMAND_ID_CHARS_MAX);
        for text in [generated.text(), "1", "mend.shop-7:retry_2", &longest] {
            assert_eq!(CommandId::given(text.into()).as_ref().map(CommandId::text), Some(text));
        }
        for text in ["", "a b", "a/b", "é", "\"", &format!("{longest}x")] {
            assert_eq!(CommandId::given(text.into()), None, "{text}");
        }
    }

    #[test]
    fn in_logs_an_id_reads_as_everywhere_else() {
        let id = OrderId::from_idempotency_key("shop", "k1");
        assert_eq!(format!("{id:?}"), id.to_string());
    }
}
