//! The keys of `[[schedule]]`, in the order in which documents and faults list them.

use super::{CatchUp, Cron};
use crate::keys::{Format, Key, Kind};
use crate::limits::{EVERY_MS_MIN, SCHEDULES_MAX, WAIT_MS_MAX};
use crate::workflow::NAME;

/// The part of `stepwarden.toml` that has schedules.
pub const SCHEDULES: &[Key] = &[SCHEDULE];
/// All schedules.
pub const SCHEDULE: Key =
    Key::new("schedule", Kind::Array(0, SCHEDULES_MAX, &Kind::Table(ONE))).about("Orders posted at times (rule 48)");

const ONE: &[Key] = &[
    Key::new("name", NAME).about("Part of the orders' keys").required().like("renewals"),
    Key::new("workflow", NAME).about("That of its orders").or("the default workflow").like("subscription"),
    Key::new(
        "cron",
        Kind::Text(&Format {
            what: "five fields",
            check: |text| Cron::parse(text).map(drop).map_err(|problem| problem.to_string()),
        }),
    )
    .about("The five fields of cron, in UTC; one of both days is `*`")
    .like("0 3 1 * *"),
    Key::new("every", Kind::TimeMs(EVERY_MS_MIN, WAIT_MS_MAX)).about("In place of cron").like("1h"),
    Key::new("start", Kind::Time).about("The earliest due time").or("its application").like("2026-12-01T00:00:00Z"),
    Key::new("end", Kind::Time).about("Due times are before it").or("none").like("2027-12-01T00:00:00Z"),
    Key::new("order", Kind::Members)
        .about("Members of each order, beside `DueAt`")
        .required()
        .like("{ Customer = \"c1\" }"),
    Key::new("catch_up", Kind::Word(&[CatchUp::Latest.name(), CatchUp::All.name(), CatchUp::None.name()]))
        .about("What is posted of missed due times")
        .or("latest"),
];
