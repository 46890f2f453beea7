//! `GET /schedules`: what is posted at which times, the next due time of each, and its last order (rule 48).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use domain::ports::{Environment, Records};
use domain::schedule::{Posted, Refused, Schedule, ScheduleRecord, Times};
use domain::time::Timestamp;
use http::{Response, StatusCode};
use wire::ScheduleList;

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;

/// The schedules that apply.
pub(crate) async fn schedules(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::UnknownRoute)?;
    let deployment = catalogue.newest_deployment(ports).await.map_err(Problem::unread)?;
    let all = deployment.map(|deployment| Schedule::all(&deployment.settings)).unwrap_or_default();
    let records: Vec<ScheduleRecord> = ports.records().list(usize::MAX).await.map_err(Problem::unread)?;
    let records: BTreeMap<&Arc<str>, &ScheduleRecord> = records.iter().map(|record| (&record.name, record)).collect();
    let now = ports.environment().now();
    let schedules = all.iter().map(|schedule| shown(schedule, records.get(&schedule.name).copied(), now)).collect();
    Ok(reply::json(StatusCode::OK, &ScheduleList { schedules }))
}

fn shown<'a>(schedule: &'a Schedule, record: Option<&'a ScheduleRecord>, now: Timestamp) -> wire::Schedule<'a> {
    let (cron, every_ms) = match &schedule.timing.times {
        Times::Cron(_, cron) => (Some(text(cron)), None),
        Times::Every { every_ms, .. } => (None, Some(*every_ms)),
    };
    let posted = record.and_then(|record| record.posted.as_ref());
    let refused = record.and_then(|record| record.refused.as_ref());
    wire::Schedule {
        name: text(&schedule.name),
        workflow: schedule.workflow.as_deref().map(text),
        cron,
        every_ms,
        start: schedule.timing.start,
        end: schedule.timing.end,
        catch_up: text(schedule.catch_up.name()),
        next_due_at: record.map_or_else(|| schedule.timing.next(now), |record| record.next_due(&schedule.timing, now)),
        posted: posted.map(|&Posted { due_at, order_id, at }| wire::Posted { due_at, order_id, at }),
        refused: refused.map(|Refused { due_at, at, problem }| wire::Refused {
            due_at: *due_at,
            at: *at,
            problem: text(problem),
        }),
    }
}

#[cfg(test)]
mod tests {
    use domain::definition::Catalogue;
    use domain::id::OrderId;
    use domain::workflow::Workflows;
    use serde_json::json;

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn a_schedule_shows_its_next_due_time_its_last_order_and_why_there_is_none() {
        let fake = Fake::default();
        fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
        assert_eq!(fake.get("/schedules").body, json!({"Schedules": []}));
        let settings = "[[schedule]]\nname = \"monthly\"\ncron = \"0 3 1 * *\"\norder = { Item = \"mug\" }\n\
                        [[schedule]]\nname = \"hourly\"\nworkflow = \"order\"\nevery = \"1h\"\n\
                        start = 2026-01-01T00:00:00Z\nend = 2027-01-01T00:00:00Z\ncatch_up = \"all\"\norder = { Item = \"mug\" }\n";
        let body = json!({"By": "ann", "Reason": "r", "Files": [{"Name": "stepwarden.toml", "Text": settings}]});
        let applied = fake.post("/configuration", &[], &body.to_string());
        assert_eq!(
            applied.body["Changes"],
            json!([
                "schedule monthly: new, next due 2026-12-01T03:00:00.000Z",
                "schedule hourly: new, next due 2026-11-20T18:00:00.000Z",
            ])
        );
        let (at, order_id) = (fake.ports.now(), OrderId::from_idempotency_key("schedule/hourly", "k"));
        let outcomes = vec![
            Ok(Posted { due_at: at, order_id, at }),
            Err(Refused { due_at: at.plus_ms(1), at, problem: "no".into() }),
        ];
        // By a clock that was ahead.
        let through = at.plus_ms(3_600_000);
        let record = ScheduleRecord::next(None, &"hourly".into(), at, None, outcomes);
        fake.stores_record(&ScheduleRecord { through, ..record });
        let (now, later) = ("2026-11-20T17:26:43.007Z", "2026-11-20T17:26:43.008Z");
        assert_eq!(
            fake.get("/schedules").body["Schedules"],
            json!([
                {"Name": "monthly", "Cron": "0 3 1 * *", "CatchUp": "latest", "NextDueAt": "2026-12-01T03:00:00.000Z"},
                {
                    "Name": "hourly", "Workflow": "order", "EveryMs": 3_600_000, "CatchUp": "all",
                    "Start": "2026-01-01T00:00:00.000Z", "End": "2027-01-01T00:00:00.000Z",
                    "NextDueAt": "2026-11-20T19:00:00.000Z",
                    "Posted": {"DueAt": now, "OrderID": order_id.to_string(), "At": now},
                    "Refused": {"DueAt": later, "At": now, "Problem": "no"},
                },
            ])
        );
        fake.all_down();
        fake.get("/schedules").is_problem(503, "unavailable");
    }
}
