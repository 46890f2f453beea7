//! What the benches are made of: a stub for the three services, a load generator, the measured process, and what the
//! system says about processes and the machine.
//!
//! Stub and load generator read and write HTTP by hand: on a machine of few processors, what they take is not there for
//! what is measured.

#![allow(clippy::disallowed_methods, reason = "measurements")]

pub mod carry;
pub mod function;
pub mod load;
pub mod machine;
pub mod process;
pub mod served;
pub mod stub;
mod wire;

pub use wire::Wire;

/// An order's document of about 250 bytes.
#[must_use]
pub fn document(number: u64) -> String {
    format!(
        r#"{{"Item":"mug, blue, hand-made","Quantity":2,"Total":25.00,"Currency":"EUR","Reference":"bench-{number:010}","Customer":{{"Name":"Ada Lovelace","Street":"12 St James Square","City":"London","Postcode":"SW1Y 4LB","Country":"GB"}},"Gift":false,"Note":"ring twice"}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::document;

    #[test]
    fn a_document_has_the_length_that_the_figures_are_told_for() {
        assert!((240..=260).contains(&document(7).len()), "{}", document(7).len());
        assert!(serde_json::from_str::<serde_json::Value>(&document(7)).is_ok());
    }
}
