//! The schemas of the alerts that no record of `domain` sends (feature `contract`).

use schemars::{Schema, SchemaGenerator};

/// The type of the event about an unreadable dead letter.
pub const DEAD_LETTER_UNREADABLE: &str = crate::dead_letter_alerts::DEAD_LETTER_UNREADABLE;

/// The data of the alert about a lost command.
pub fn lost_command(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<crate::dead_letter_alerts::LostCommand>()
}

/// The data of the alert about an unreadable dead letter.
pub fn unreadable(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<crate::dead_letter_alerts::Unreadable<'_>>()
}

/// The data of the alerts about a service.
pub fn service(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<crate::services::Alert<'_>>()
}
