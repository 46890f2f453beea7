//! What is kept of an order that is erased (rule 46) beside the order and its task. Some records are not about one order,
//! and may quote this one: the text of a service's outage, the alert about it, and the reasons of bulk jobs.
//!
//! All that goes before the order says that it is erased. Whoever is killed in between gets the command again.

use domain::alert::Alert;
use domain::bulk::Job;
use domain::limits::CONFLICTS_MAX;
use domain::message::Command;
use domain::ports::{Commit, Environment, PortError, Record, RecordKind, Records, Seen, ServiceHealth, Store};
use domain::task::Quoted;

use crate::SchedulerPorts;

const CONFLICT: &str = "the health of a service, an alert or a job changes again and again";

/// Removes it, if the command erases the order.
pub(crate) async fn others(ports: &impl SchedulerPorts, command: &Command) -> Result<(), PortError> {
    let Some(task) = ports.store().task(command.order_id).await? else { return Ok(()) };
    if command.refusal(&task, ports.environment().now()).is_some() {
        return Ok(());
    }
    ports.store().erase_others(&task).await?;
    let quoted = task.quoted();
    for kind in RecordKind::ALL {
        erase_quotes(ports, kind, &quoted).await?;
    }
    Ok(())
}

/// Erases what records of this kind quote of the order. A match, so that the compiler asks about a new kind.
async fn erase_quotes(ports: &impl SchedulerPorts, kind: RecordKind, quoted: &Quoted) -> Result<(), PortError> {
    let records = ports.records();
    match kind {
        RecordKind::Service => {
            for health in records.list::<ServiceHealth>(usize::MAX).await? {
                replace(ports, health, |health| health.erased(quoted)).await?;
            }
        }
        RecordKind::Alert => {
            for alert in records.list::<Alert>(usize::MAX).await? {
                replace(ports, alert, |alert| alert.erased(quoted)).await?;
            }
        }
        RecordKind::Job => {
            for job_id in quoted.jobs() {
                if let Some(job) = records.get::<Job>(job_id).await? {
                    replace(ports, job, Job::erased).await?;
                }
            }
        }
        // A memo and a dead letter are about one order: the store erases them. The others quote no order.
        RecordKind::Memo
        | RecordKind::DeadLetter
        | RecordKind::Definition
        | RecordKind::Deployment
        | RecordKind::Lease => {}
    }
    Ok(())
}

/// Writes what `next` makes of the record, or of a later version of it.
async fn replace<R: Record>(
    ports: &impl SchedulerPorts,
    mut record: R,
    next: impl Fn(&R) -> Option<R>,
) -> Result<(), PortError> {
    for _ in 0..CONFLICTS_MAX {
        let Some(after) = next(&record) else { return Ok(()) };
        let seen = Seen { version: record.version(), at: ports.environment().now() };
        if ports.records().put(seen, &after).await? == Commit::Committed {
            return Ok(());
        }
        match ports.records().get(record.key()).await? {
            Some(later) => record = later,
            None => return Ok(()),
        }
    }
    Err(PortError::unavailable(R::KIND.put(), CONFLICT))
}
