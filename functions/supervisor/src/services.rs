//! Sends the alerts about services: a misconfigured one, and one that rejects most steps.
//!
//! An agent has no port to the event bus. It leaves the alert in the service's record, like a task its notices.

use domain::json::Json;
use domain::message::CloudEvent;
use domain::ports::{
    Environment, Events, HasEnvironment, HasEvents, HasRecords, Outage, OutageReason, PortError, Records,
    ServiceHealth, replace,
};
use domain::situation::{outage_text, outage_to_do};
use domain::time::Timestamp;
use serde::Serialize;

/// The ports that send the alerts of services.
pub trait ServicePorts: HasRecords + HasEvents + HasEnvironment {}

impl<P: HasRecords + HasEvents + HasEnvironment> ServicePorts for P {}

#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "ServiceAlert"))]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Alert<'a> {
    /// Name of an agent in the workflow.
    #[cfg_attr(feature = "contract", schemars(with = "domain::contract::AgentName"))]
    service: &'a str,
    /// Why its requests wait.
    reason: OutageReason,
    /// The problem at the beginning, without data of an order and without secrets.
    #[cfg_attr(feature = "contract", schemars(length(max = domain::limits::ERROR_CHARS_MAX)))]
    problem: &'a str,
    /// When it began.
    since: Timestamp,
    /// The outage in words.
    text: String,
    /// The operator's remedy.
    to_do: String,
}

/// Publishes each alert that is not known to be sent, then notes that it is. So it comes at least once, with the same
/// id in every repeat. Returns the number of alerts sent.
///
/// # Errors
/// The first [`PortError`], after all other services had their turn.
pub async fn services(ports: &impl ServicePorts) -> Result<u64, PortError> {
    let mut sent = 0;
    let mut failed = None;
    for health in ports.records().list::<ServiceHealth>(usize::MAX).await? {
        let Some(alert) = health.unsent.as_ref().and_then(|outage| alert(&health.service, outage)) else { continue };
        match send(ports, &health, alert).await {
            Ok(()) => sent += 1,
            Err(error) => {
                tracing::warn!(service = &*health.service, "alert not sent: {error}");
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(sent), Err)
}

async fn send(ports: &impl ServicePorts, health: &ServiceHealth, alert: CloudEvent) -> Result<(), PortError> {
    let service = &*health.service;
    tracing::warn!(monotonic_counter.service_alerts = 1, service, kind = &*alert.kind, "alert");
    ports.events().publish(alert).await?;
    // Agents write the record too. Another alert has its turn in the next run.
    let without = |stored: &ServiceHealth| {
        let is_sent = stored.unsent == health.unsent;
        is_sent.then(|| ServiceHealth { version: stored.version + 1, unsent: None, ..stored.clone() })
    };
    replace(ports.records(), health.clone(), ports.environment().now(), without).await
}

/// The event about an outage, if it is of a kind that is alerted.
fn alert(service: &str, outage: &Outage) -> Option<CloudEvent> {
    let Outage { reason, problem, since } = outage;
    let kind = reason.alert()?;
    let data = Alert {
        service,
        reason: *reason,
        problem,
        since: *since,
        text: format!("{}.", outage_text(service, outage)),
        to_do: outage_to_do(service, outage),
    };
    Some(CloudEvent {
        specversion: "1.0".into(),
        id: format!("service/{service}/{}/{kind}", since.epoch_ms()).into(),
        source: "stepwarden".into(),
        kind: kind.into(),
        subject: service.into(),
        time: *since,
        datacontenttype: "application/json".into(),
        data: Json::of(&data),
    })
}
