//! What is kept of an order that is erased (rule 46) beside the order and its task. Some records are not about one order,
//! and may quote this one: the text of a service's outage, the alert about it, and the reasons of bulk jobs.
//!
//! All that goes before the order says that it is erased. Whoever is killed in between gets the command again.

use domain::alert::Alert;
use domain::bulk::Job;
use domain::message::Command;
use domain::ports::{Environment, PortError, RecordKind, Records, ServiceHealth, Store, replace};
use domain::task::Quoted;

use crate::SchedulerPorts;

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
    let (records, now) = (ports.records(), ports.environment().now());
    match kind {
        RecordKind::Service => {
            for health in records.list::<ServiceHealth>(usize::MAX).await? {
                replace(records, health, now, |health: &ServiceHealth| health.erased(quoted)).await?;
            }
        }
        RecordKind::Alert => {
            for alert in records.list::<Alert>(usize::MAX).await? {
                replace(records, alert, now, |alert: &Alert| alert.erased(quoted)).await?;
            }
        }
        RecordKind::Job => {
            for job_id in quoted.jobs() {
                if let Some(job) = records.get::<Job>(job_id).await? {
                    replace(records, job, now, Job::erased).await?;
                }
            }
        }
        // A memo and a dead letter are about one order: the store erases them. The others quote no order.
        RecordKind::Memo
        | RecordKind::DeadLetter
        | RecordKind::Definition
        | RecordKind::Deployment
        | RecordKind::Lease
        | RecordKind::Schedule => {}
    }
    Ok(())
}
