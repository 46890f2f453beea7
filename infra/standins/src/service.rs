//! The three remote services and their answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the three remote services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Reserves goods.
    Inventory,
    /// Charges cards.
    Payment,
    /// Sends parcels.
    Shipping,
}

/// The direction of a call: forward or undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `reserve`, `charge`, `ship`.
    Forward,
    /// `release`, `refund`, `cancel`.
    Undo,
}

impl Service {
    /// All of them, in the order of the shipped workflow.
    pub const ALL: [Self; 3] = [Self::Inventory, Self::Payment, Self::Shipping];

    /// Its name: the name of its agent, its path at the stand-ins and its member in `StandIn`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inventory => "inventory",
            Self::Payment => "payment",
            Self::Shipping => "shipping",
        }
    }

    /// The service of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }

    /// The operation of this name.
    #[must_use]
    pub fn operation(self, name: &str) -> Option<Operation> {
        let (forward, undo) = match self {
            Self::Inventory => ("reserve", "release"),
            Self::Payment => ("charge", "refund"),
            Self::Shipping => ("ship", "cancel"),
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
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
        assert_eq!(Service::Payment.operation("charge"), Some(Operation::Forward));
        assert_eq!(Service::Payment.operation("refund"), Some(Operation::Undo));
        assert_eq!(Service::Payment.operation("ship"), None);
        assert_eq!(Service::named("shipping"), Some(Service::Shipping));
        assert_eq!(Service::named("Shipping"), None);
    }
}
