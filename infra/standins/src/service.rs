//! The remote services and their answers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The suffix of an undo's key. The rest is the key of the forward call (rule 4).
pub(crate) const UNDO_SUFFIX: &str = "/undo";
/// Services beside the shipped ones that a process plays. Their names are kept for ever.
const OTHERS_MAX: usize = 64;
/// Longest name of a service, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The names of the services beside the shipped ones.
static OTHERS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// A remote service: one of those that ship, or any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Reserves goods.
    Inventory,
    /// Charges cards.
    Payment,
    /// Sends parcels.
    Shipping,
    /// The service of any other agent.
    Other(&'static str),
}

/// The direction of a call: forward or undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `reserve`, `charge`, `ship`; of another service, any.
    Forward,
    /// `release`, `refund`, `cancel`; of another service, any with the key of an undo.
    Undo,
}

impl Service {
    /// Those that ship, in the order of the shipped workflow.
    pub const ALL: [Self; 3] = [Self::Inventory, Self::Payment, Self::Shipping];

    /// Its name: the name of its agent, its path at the stand-ins and its member in `StandIn`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inventory => "inventory",
            Self::Payment => "payment",
            Self::Shipping => "shipping",
            Self::Other(name) => name,
        }
    }

    /// The service of the agent of this name. `None` if no agent has such a name, or this process plays too many.
    #[must_use]
    pub fn of_agent(name: &str) -> Option<Self> {
        if let Some(shipped) = Self::named(name) {
            return Some(shipped);
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_word) {
            return None;
        }
        let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others.get(name) {
            return Some(Self::Other(known));
        }
        if others.len() == OTHERS_MAX {
            return None;
        }
        let name: &'static str = Box::leak(name.into());
        others.insert(name);
        Some(Self::Other(name))
    }

    /// The shipped service of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }

    /// The operation of this name. Another service may have any names, and the idempotency key tells its operations apart.
    #[must_use]
    pub fn operation(self, name: &str, key: &str) -> Option<Operation> {
        let (forward, undo) = match self {
            Self::Inventory => ("reserve", "release"),
            Self::Payment => ("charge", "refund"),
            Self::Shipping => ("ship", "cancel"),
            Self::Other(_) if key.ends_with(UNDO_SUFFIX) => return Some(Operation::Undo),
            Self::Other(_) => return Some(Operation::Forward),
        };
        match name {
            name if name == forward => Some(Operation::Forward),
            name if name == undo => Some(Operation::Undo),
            _ => None,
        }
    }

    /// The JSON answer to a call with this forward key. It is the same for every repeat. `was_done` says whether an
    /// undo had an effect to compensate.
    #[must_use]
    pub fn receipt(self, forward_key: &str, operation: Operation, was_done: bool) -> String {
        let number = number_of(forward_key);
        match (self, operation) {
            (Self::Inventory, Operation::Forward) => {
                format!(r#"{{"ReservationID":"rsv-{number:016x}","Warehouse":"W{}"}}"#, number % 4 + 1)
            }
            (Self::Inventory, Operation::Undo) => {
                format!(r#"{{"ReservationID":"rsv-{number:016x}","Released":{was_done}}}"#)
            }
            (Self::Payment, Operation::Forward) => {
                format!(r#"{{"PaymentID":"pay-{number:016x}","Status":"captured"}}"#)
            }
            (Self::Payment, Operation::Undo) => format!(r#"{{"PaymentID":"pay-{number:016x}","Refunded":{was_done}}}"#),
            (Self::Shipping, Operation::Forward) => {
                format!(r#"{{"TrackingNumber":"SW{:012}","Carrier":"Parcel Post"}}"#, number % 1_000_000_000_000)
            }
            (Self::Shipping, Operation::Undo) => {
                format!(r#"{{"TrackingNumber":"SW{:012}","Cancelled":{was_done}}}"#, number % 1_000_000_000_000)
            }
            (Self::Other(_), Operation::Forward) => format!(r#"{{"ID":"{number:016x}"}}"#),
            (Self::Other(_), Operation::Undo) => format!(r#"{{"ID":"{number:016x}","Undone":{was_done}}}"#),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Service {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::of_agent(&name).ok_or_else(|| D::Error::custom("no name of a service"))
    }
}

/// A pseudo-random number that is always the same for the same key (FNV-1a).
fn number_of(key: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    key.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_the_same_for_the_same_key_and_another_for_another() {
        for service in Service::ALL {
            let receipt = |key| service.receipt(key, Operation::Forward, true);
            assert_eq!(receipt("o1/step"), receipt("o1/step"));
            assert_ne!(receipt("o1/step"), receipt("o2/step"));
            for operation in [Operation::Forward, Operation::Undo] {
                let text = service.receipt("o1/step", operation, false);
                assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap().is_object());
            }
        }
    }

    #[test]
    fn each_service_knows_its_own_two_operations() {
        assert_eq!(Service::Payment.operation("charge", "k"), Some(Operation::Forward));
        assert_eq!(Service::Payment.operation("refund", "k/undo"), Some(Operation::Undo));
        assert_eq!(Service::Payment.operation("ship", "k"), None);
        assert_eq!(Service::named("shipping"), Some(Service::Shipping));
        assert_eq!(Service::named("Shipping"), None);
    }

    #[test]
    fn any_agent_has_a_service_whose_operations_are_told_apart_by_the_key() {
        let customs = Service::of_agent("customs").unwrap();
        assert_eq!((customs, customs.name()), (Service::of_agent("customs").unwrap(), "customs"));
        assert_eq!(customs.operation("declare", "o/clear"), Some(Operation::Forward));
        assert_eq!(customs.operation("declare", "o/clear/undo"), Some(Operation::Undo));
        assert_eq!(Service::of_agent("payment"), Some(Service::Payment));
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for none in ["", "a b", "a/b", "ä", &long] {
            assert_eq!(Service::of_agent(none), None, "{none}");
        }
        let text = serde_json::to_string(&customs).unwrap();
        assert_eq!((&*text, serde_json::from_str::<Service>(&text).unwrap()), ("\"customs\"", customs));
    }
}
