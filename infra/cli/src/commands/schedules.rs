//! `stepwarden schedules`: what is posted at which times.

use domain::keys::time_text;
use wire::{Schedule, ScheduleList};

use super::context::Context;
use super::error::CommandError;
use crate::exit::Exit;
use crate::paint::tint;
use crate::show::table::{Cell, Table, plain};
use crate::show::time::from_now;

/// `stepwarden schedules`: a line for each, and why the last due time of one has no order.
pub(super) async fn run(context: &Context) -> Result<Exit, CommandError> {
    let words = |ScheduleList { schedules }: ScheduleList<'static>| schedule_text(&schedules, context);
    context.show_path("/schedules", words).await
}

fn schedule_text(schedules: &[Schedule<'_>], context: &Context) -> String {
    let now = context.now();
    let table = Table::of(schedules)
        .column("SCHEDULE", |schedule| match schedule.refused {
            Some(_) => Cell::tinted(&schedule.name, tint::RED),
            None => Cell::from(&*schedule.name),
        })
        .column("WORKFLOW", |schedule| schedule.workflow.as_deref().unwrap_or("the default"))
        .column("DUE (UTC)", times)
        .column("NEXT", |schedule| schedule.next_due_at.map(|at| from_now(at, now)))
        .column("LAST", |schedule| schedule.posted.as_ref().map(|posted| from_now(posted.due_at, now)))
        .column("LAST ORDER", |schedule| schedule.posted.as_ref().map(|posted| context.ids().of(posted.order_id)));
    table.or(context.paint, "No schedule.") + &schedules.iter().filter_map(refusal).collect::<String>()
}

/// When it is due.
fn times(schedule: &Schedule<'_>) -> String {
    let cron = schedule.cron.as_deref().map(plain);
    cron.or_else(|| schedule.every_ms.map(|ms| format!("every {}", time_text(ms)))).unwrap_or_default()
}

/// Why its last due time has no order.
fn refusal(schedule: &Schedule<'_>) -> Option<String> {
    let refused = schedule.refused.as_ref()?;
    Some(format!("\n{}: no order at {}: {}\n", plain(&schedule.name), refused.due_at, plain(&refused.problem)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schedule_says_when_it_is_due_and_why_it_posted_nothing() {
        let schedule = |more: serde_json::Value| {
            let mut schedule = json!({"Name": "monthly", "CatchUp": "latest"});
            schedule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<Schedule<'static>>(schedule).unwrap()
        };
        assert_eq!(times(&schedule(json!({"Cron": "0 3 1 * *"}))), "0 3 1 * *");
        assert_eq!(times(&schedule(json!({"EveryMs": 86_400_000}))), "every 1d");
        assert_eq!(refusal(&schedule(json!({}))), None);
        let at = "2026-12-01T03:00:00.000Z";
        let refused = schedule(json!({"Refused": {"DueAt": at, "At": at, "Problem": "no workflow shop"}}));
        assert_eq!(refusal(&refused), Some(format!("\nmonthly: no order at {at}: no workflow shop\n")));
    }
}
