//! The random part of an installation, from which the ids of orders with an idempotency key follow (rule 4).

use std::sync::Arc;

use super::Definition;
use crate::ports::{
    Commit, Environment, HasEnvironment, HasRecords, HasStore, ListError, PortError, Records, Seen, Store,
};

/// The random part of this installation. It is written once, and is in every backup. Empty where orders were stored
/// before there was one: their ids stay.
///
/// # Errors
/// [`PortError`] if it can be neither read nor written, or there is an order whose list cannot be read.
pub async fn installation(ports: &(impl HasRecords + HasStore + HasEnvironment)) -> Result<Arc<str>, PortError> {
    let read = async || ports.records().get::<Definition>(Definition::INSTALLATION).await;
    if let Some(Definition { text, .. }) = read().await? {
        return Ok(text);
    }
    let environment = ports.environment();
    let is_empty = match ports.store().list(None, None, 1).await {
        // A page may be empty while others follow.
        Ok(page) => page.tasks.is_empty() && page.next.is_none(),
        Err(ListError::Port(error)) => return Err(error),
        Err(ListError::Cursor) => false,
    };
    let random = || format!("{:016x}{:016x}", environment.random(), environment.random());
    let now = environment.now();
    let part = Definition {
        key: Definition::INSTALLATION.into(),
        version: 1,
        text: if is_empty { random().into() } else { "".into() },
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
