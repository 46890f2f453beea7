//! The random part of an installation, from which the ids of orders with an idempotency key follow (rule 4).

use std::sync::Arc;

use super::Definition;
use crate::ports::{Commit, Environment, HasEnvironment, HasRecords, PortError, Records, Seen};

/// The random part of this installation. It is written once, and is in every backup.
///
/// # Errors
/// [`PortError`] if it can be neither read nor written.
pub async fn installation(ports: &(impl HasRecords + HasEnvironment)) -> Result<Arc<str>, PortError> {
    let read = async || ports.records().get::<Definition>(Definition::INSTALLATION).await;
    if let Some(Definition { text, .. }) = read().await? {
        return Ok(text);
    }
    let environment = ports.environment();
    let now = environment.now();
    let part = Definition {
        key: Definition::INSTALLATION.into(),
        version: 1,
        text: format!("{:016x}{:016x}", environment.random(), environment.random()).into(),
        hash: "".into(),
        applied_at: now,
        applied_by: "".into(),
        retired_at: None,
    };
    match ports.records().put(Seen::nothing(now), &part).await? {
        Commit::Committed => Ok(part.text),
        // Another instance was first.
        Commit::Conflict => {
            let written = read().await?.map(|written| written.text);
            written.ok_or_else(|| PortError::unavailable("installation", "its random part is being written"))
        }
    }
}
