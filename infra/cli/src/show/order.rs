//! Orders as people read them: a row of a list, a line for a change, or all there is to know.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use domain::id::OrderId;
use domain::message::{Action, Priority};
use domain::task::{Direction, ProcessState, StepError, StepState};
use domain::time::Timestamp;
use domain::workflow::LINE;
use wire::{Reason, Service, Step, Task, Transition};

use super::alone::{last_call, only_this_order};
use super::lines::Row;
use super::step::words;
use super::table::{Cell, Table, plain};
use super::time::{clock, from_now, span};
use crate::args::Column;
use crate::paint::Paint;

/// Lines of the history that are shown.
const HISTORY_LINES: usize = 20;

/// Where the two numbers of a step differ by more than the attempt that follows a failure.
const COUNTS: &str = "ATTEMPTS are all of the step. FAILURES are those since it last started afresh, by a resubmit or for \
                      its undo. An attempt that was put off is no failure.";
/// Characters of the end of an ID.
const END_CHARS: usize = 8;

/// How a list shows the IDs of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Whole, for programs and for copying.
    Whole,
    /// By their ends: IDs of one minute look alike at their beginning.
    Ends,
}

impl Ids {
    /// The ID as it is shown.
    pub(crate) fn of(self, id: OrderId) -> String {
        let mut text = id.to_string();
        match self {
            Self::Whole => text,
            Self::Ends => text.split_off(text.len() - END_CHARS),
        }
    }
}

/// A list of orders with these columns.
pub(crate) fn table<'a>(tasks: &'a [Task<'_>], columns: &[Column], ids: Ids, now: Timestamp) -> Table<'a, Task<'a>> {
    columns.iter().fold(Table::of(tasks), |table, column| match column {
        Column::Order => table.column("ORDER", |task| ids.of(task.order_id)),
        Column::Id => table.column("ID", |task| Ids::Whole.of(task.order_id)),
        Column::State => table.column("STATE", |task| Cell::state(&task.process_state)),
        Column::Changed => table.column("CHANGED", |task| task.updated_at.map(|at| from_now(at, now))),
        Column::Submitted => table.column("SUBMITTED", |task| task.submitted_at.map(clock)),
        Column::Workflow => table.column("WORKFLOW", |task| format!("{}/{}", task.workflow, task.workflow_version)),
        Column::Where => table.column("WHERE", place),
        Column::Why => table.column("WHY", |task| why(task, now)),
        Column::Error => table.column("LAST ERROR", |task| step_to_show(task)?.last_error.as_ref().map(error_words)),
        Column::Taken => table.column("TAKEN ON BY", |task| task.taken.as_ref().map(|taken| &*taken.by)),
    })
}

/// An error in words, with its code.
pub(crate) fn error_words(StepError { code, message, .. }: &StepError) -> String {
    format!("{message} ({code})")
}

/// A line for an order as it was just seen, with its steps by these names.
pub(crate) fn change<'a>(
    paint: Paint,
    elapsed: Duration,
    subject: &str,
    task: &'a Task<'_>,
    name: fn(&'a Step<'a>) -> &'a str,
) -> String {
    let mut line = format!("{}  {subject}  {}", paint.elapsed(elapsed), paint.state(&task.process_state));
    for row in Row::of(&task.steps) {
        let name = if let Row::One(step) = row { plain(name(step)) } else { plain(&row.name()) };
        let _ = write!(line, "  {} {:<10}", paint.dim(name), row.words());
    }
    if let Some(paused) = &task.paused {
        let _ = write!(line, "  paused by {}", plain(&paused.by));
    }
    if let Some(reason) = task.reason.as_ref().filter(|_| task.is_settled()) {
        let _ = write!(line, "  {} ({})", plain(&reason.message), plain(&reason.code));
    }
    line.trim_end().to_owned()
}

/// The same, short enough for a line that is written over again and again.
pub(crate) fn brief(task: &Task<'_>) -> String {
    let rows = Row::of(&task.steps);
    let steps: Vec<String> = rows.iter().map(|row| format!("{} {}", plain(&row.name()), row.words())).collect();
    plain(&format!("{}: {}", task.process_state, steps.join(", ")))
}

/// Whether a step of the order is under way or to be repeated, and so may wait for its service.
pub(crate) fn waits_for_a_service(task: &Task<'_>) -> bool {
    let is_under_way =
        [ProcessState::Processing, ProcessState::Compensating].iter().any(|state| task.process_state == *state);
    is_under_way && task.paused.is_none() && task.steps.iter().any(is_open)
}

fn is_open(step: &Step<'_>) -> bool {
    let is_to_come = step.not_before.is_some() || (step.attempt > 0 && step.waits_until.is_some());
    step.process_state == StepState::Processing || (step.process_state == StepState::Pending && is_to_come)
}

/// All there is to know of an order, and of those `services` that it waits for.
pub(crate) fn whole(paint: Paint, task: &Task<'_>, services: &[Service<'_>], now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{:<10} {value}", paint.dim(format_args!("{name:<10}")));
    };
    line("Order", task.order_id.to_string());
    line("State", paint.state(&task.process_state).trim_end().to_owned());
    line("Workflow", format!("{} version {}", plain(&task.workflow), task.workflow_version));
    if let Some(parent) = &task.parent {
        line("Made by", plain(&format!("{} for {}", parent.order_id, parent.step)));
    }
    if task.priority == Priority::High {
        line("Priority", "high".to_owned());
    }
    let late = task.late_since.map(|since| format!("; found late {}", from_now(since, now))).unwrap_or_default();
    for (name, at, more) in [
        ("Submitted", task.submitted_at, ""),
        ("Changed", task.updated_at, ""),
        ("Deadline", task.complete_by, &*late),
        ("Deleted", task.expires_at, ""),
        ("Erased", task.erased_at, ""),
    ] {
        if let Some(at) = at {
            line(name, format!("{} ({}){more}", clock(at), from_now(at, now)));
        }
    }
    line("Version", task.version.to_string());
    if let Some(reason) = &task.reason {
        let at = reason.step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
        line("Reason", plain(&reason_words(reason, &at)));
    }
    if let Some(paused) = &task.paused {
        line("Paused", format!("by {} {}: {}", plain(&paused.by), from_now(paused.since, now), plain(&paused.reason)));
    }
    if let Some(taken) = &task.taken {
        line("Taken on", format!("by {} {}", plain(&taken.by), from_now(taken.since, now)));
    }
    let situation = &task.situation;
    if !situation.head.is_empty() {
        line("Situation", plain(&format!("{} {}", situation.head, situation.text)));
        let is_needed = |service: &&Service<'_>| {
            service.text.is_some() && task.steps.iter().any(|step| is_open(step) && step.agent == service.service)
        };
        let failing: Vec<&Service<'_>> =
            services.iter().filter(|_| waits_for_a_service(task)).filter(is_needed).collect();
        for service in &failing {
            line("Service", plain(service.text.as_deref().unwrap_or_default()));
        }
        let alone = task.steps.iter().filter(|step| is_open(step) && waits_for_a_service(task));
        let alone = alone.filter_map(|step| only_this_order(step, services, now)).next();
        let of_service = failing.iter().find_map(|service| service.to_do.as_deref());
        if let Some(to_do) = of_service.or(alone.as_deref()).or(situation.to_do.as_deref()) {
            line("To do", plain(to_do));
        }
    }
    for (index, action) in task.actions.iter().enumerate() {
        let name = if index == 0 { "Actions" } else { "" };
        let more = if action == Action::Settle.segment() { " STEP --outcome …" } else { "" };
        line(name, plain(&format!("stepwarden {action} {}{more} --reason …", task.order_id)));
    }
    let (rows, mut shown) = (Row::of(&task.steps), Vec::new());
    for row in &rows {
        shown.push(Shown {
            name: row.name(),
            words: row.words(),
            step: if let Row::One(step) = row { Some(step) } else { None },
        });
        let element = |step: &'_ &Step<'_>| step.name.split_once(LINE).map_or("", |(_, id)| id).to_owned();
        shown.extend(row.shown().into_iter().map(|step| Shown {
            name: format!("- {}", element(&step)).into(),
            words: words(step),
            step: Some(step),
        }));
        if row.hidden() > 0 {
            let words = format!("{} more: --json has all", row.hidden());
            shown.push(Shown { name: "- …".into(), words, step: None });
        }
    }
    let _ = write!(text, "\n{}", steps(task, &shown, now).text(paint));
    for (step, child) in task.steps.iter().filter_map(|step| Some((step, step.child?))) {
        let _ = writeln!(text, "{} makes the order {child}", plain(&step.name));
    }
    if task.steps.iter().any(|step| step.failure_count > 0 && step.attempt > step.failure_count + 1) {
        let _ = writeln!(text, "{}", paint.dim(COUNTS));
    }
    if !task.history().is_empty() {
        let _ = write!(text, "\n{}", history(task).text(paint));
    }
    text
}

/// A line of the table of steps.
struct Shown<'a> {
    name: Cow<'a, str>,
    words: String,
    /// `None` if it stands for several.
    step: Option<&'a Step<'a>>,
}

fn steps<'a>(task: &'a Task<'_>, shown: &'a [Shown<'a>], now: Timestamp) -> Table<'a, Shown<'a>> {
    Table::of(shown)
        .column("STEP", |shown| &*shown.name)
        .column("AGENT", |shown| shown.step.map(|step| &*step.agent))
        .column("STATE", |shown| &*shown.words)
        .column("ATTEMPTS", |shown| shown.step.map(|step| step.attempt))
        .column("FAILURES", |shown| shown.step.map(|step| step.failure_count))
        .column("TOOK", |shown| shown.step.and_then(Step::took_ms).map(span))
        .column("WAITS", |shown| shown.step.map(|step| waits(task, step, now)))
        .column("LAST ERROR", |shown| shown.step.and_then(|step| step.last_error.as_ref()).map(error_words))
}

/// Who it was, and the authenticated caller beside an operator's name.
fn who(line: &Transition<'_>) -> String {
    let who = plain(&line.who);
    line.caller.as_deref().map_or_else(|| who.to_string(), |caller| format!("{who} [{}]", plain(caller)))
}

fn history<'a>(task: &'a Task<'_>) -> Table<'a, Transition<'a>> {
    let lines = task.history();
    Table::of(&lines[lines.len().saturating_sub(HISTORY_LINES)..])
        .column("WHEN", |line| line.at.to_string())
        .column("WHO", who)
        .column("WHAT", |line| &*line.what)
        .column("WHY", why_of)
}

/// The reason, and the bulk job that had it.
fn why_of(line: &Transition<'_>) -> String {
    let why = line.why.as_deref().unwrap_or_default();
    line.bulk.as_deref().map_or(why.to_owned(), |job| format!("bulk {job}: {why}"))
}

/// What a step waits for.
fn waits(task: &Task<'_>, step: &Step<'_>, now: Timestamp) -> String {
    match (step.waits_until, step.complete_by) {
        (Some(until), Some(_)) if until > now => return format!("result awaited until {until}"),
        (Some(until), Some(_)) => return format!("overdue, {}", from_now(until, now)),
        (Some(until), None) if until > now && is_ready_to_wait(task, step) => return format!("waits until {until}"),
        (Some(_) | None, _) => {}
    }
    match (step.not_before.filter(|at| *at > now), step.complete_by) {
        (Some(not_before), _) => format!("again {}", from_now(not_before, now)),
        (None, Some(complete_by)) if complete_by > now => format!("answer due {}", from_now(complete_by, now)),
        (None, Some(complete_by)) => format!("overdue, {}", from_now(complete_by, now)),
        (None, None) => String::new(),
    }
}

/// Whether it is the turn of the step: it had an attempt, or its wait is in the history, or the steps listed before it are
/// over.
fn is_ready_to_wait(task: &Task<'_>, step: &Step<'_>) -> bool {
    let is_over = |other: &Step<'_>| other.process_state.known().is_some_and(StepState::is_over);
    let is_its_wait =
        |line: &Transition<'_>| line.kind == "Waiting" && line.step.as_ref().is_some_and(|name| *name == step.name);
    let goes_forward = matches!(task.process_state.known(), Some(ProcessState::Pending | ProcessState::Processing));
    let mut before = task.steps.iter().take_while(|other| other.name != step.name);
    let is_open = goes_forward || task.process_state.known() == Some(ProcessState::Compensating);
    (is_open && step.attempt > 0) || (goes_forward && (task.history().iter().any(is_its_wait) || before.all(is_over)))
}

/// Where an order is.
fn place(task: &Task<'_>) -> String {
    match step_to_show(task) {
        Some(step) if task.process_state.known().is_none_or(|state| !state.is_final()) => {
            format!("{} {}", step.name, words(step)).trim_end_matches(" -").to_owned()
        }
        Some(_) | None => String::new(),
    }
}

/// Why it does not go on, or came undone.
fn why(task: &Task<'_>, now: Timestamp) -> String {
    if let Some(paused) = &task.paused {
        return format!("paused by {}: {}", paused.by, paused.reason);
    }
    if let Some(reason) = &task.reason {
        return reason_words(reason, "");
    }
    let Some(step) = step_to_show(task) else { return String::new() };
    let parts = [last_call(step).unwrap_or_default().to_owned(), waits(task, step, now)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A reason in words. Its message may begin with its code, or with the step that is named before it.
fn reason_words(Reason { code, message, step, .. }: &Reason<'_>, at: &str) -> String {
    let step = step.as_deref().filter(|_| !at.is_empty()).unwrap_or_default();
    let message = message.strip_prefix(step).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message);
    if message.starts_with(&**code) { message.to_owned() } else { format!("{code}{at}: {message}") }
}

/// Whether the order is being compensated, or was.
pub(crate) fn is_undoing(task: &Task<'_>) -> bool {
    task.steps.iter().any(|step| step.direction == Direction::Undo && !step.dropped)
}

/// The step that shows best how far the order is: the one that failed, or else one in progress, or else the next.
fn step_to_show<'a>(task: &'a Task<'a>) -> Option<&'a Step<'a>> {
    let in_state = |state| task.steps.iter().find(|step| step.process_state == state);
    in_state(StepState::Error).or_else(|| in_state(StepState::Processing)).or_else(|| in_state(StepState::Pending))
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use domain::order::Parent;
    use serde_json::json;

    use super::*;

    const ID: &str = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";
    const PLAIN: Paint = Paint { colours: false };

    fn task(state: &str) -> Task<'static> {
        let step = |name: &str, agent: &str, state: &str, attempt: u32| {
            json!({
                "Name": name, "Agent": agent, "ProcessState": state, "Direction": "Forward", "Attempt": attempt,
                "FailureCount": attempt.saturating_sub(1), "LockedBy": null, "CompleteBy": null,
            })
        };
        serde_json::from_value(json!({
            "OrderID": ID, "Version": 7, "Workflow": "order", "WorkflowVersion": 1, "ProcessState": state,
            "UpdatedAt": "2026-11-20T17:26:43.007Z", "Priority": "normal",
            "Steps": [
                step("reserve-inventory", "inventory", "Processed", 1),
                step("charge-payment", "payment", if state == "Error" { "Error" } else { "Processing" }, 3),
                step("ship-order", "shipping", "Pending", 0),
            ],
            "Reason": {"Code": "exhausted", "Message": "no\u{1b}[2J answer", "Step": "charge-payment"},
            "History": [{"At": "2026-11-20T17:26:43.007Z", "Who": "ann", "What": "resubmitted", "Why": "it is back",
                         "Kind": "Resubmitted"}],
            "Actions": ["resubmit", "settle"],
            "Situation": {"Head": "Waiting for an operator.", "Text": "No\u{1b} answer.", "ToDo": "Restore the service.",
                          "Waits": true},
            "SomethingNew": 1,
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_epoch_ms(1_795_195_663_007)
    }

    #[test]
    fn an_order_is_shown_with_the_order_that_made_it_and_those_that_it_makes() {
        let mut task = task("Processing");
        let other: OrderId = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be012".parse().unwrap();
        task.parent = Some(Parent { order_id: other, step: "replacement".into(), depth: 1 });
        task.steps[1].child = Some(other);
        let text = whole(PLAIN, &task, &[], now());
        assert!(text.contains(&format!("Made by    {other} for replacement\n")), "{text}");
        assert!(text.contains(&format!("charge-payment makes the order {other}\n")), "{text}");
    }

    #[test]
    fn an_order_in_error_is_shown_with_what_failed_and_what_to_do() {
        let text = whole(PLAIN, &task("Error"), &[], now());
        for words in [
            &format!("Order      {ID}"),
            "State      Error",
            "Reason     exhausted at charge-payment: no [2J answer",
            "Situation  Waiting for an operator. No answer.\n",
            "To do      Restore the service.\n",
            &format!(
                "Actions    stepwarden resubmit {ID} --reason …\n           stepwarden settle {ID} STEP --outcome … --reason …\n"
            ),
            "charge-payment     payment    failed  3         2",
            "2026-11-20T17:26:43.007Z  ann  resubmitted  it is back",
        ] {
            assert!(text.contains(words), "{words} in:\n{text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains(COUNTS), "{text}");
        let mut resubmitted = task("Error");
        resubmitted.steps[1].attempt = 24;
        assert!(whole(PLAIN, &resubmitted, &[], now()).contains(COUNTS));
    }

    #[test]
    fn an_order_under_way_is_shown_with_the_outage_of_the_service_that_it_waits_for() {
        let service = |name: &str| -> Service<'static> {
            let text = format!("{name} rejects most steps.");
            serde_json::from_value(
                json!({"Service": name, "State": "Open", "Text": text, "ToDo": format!("Mend {name}.")}),
            )
            .unwrap()
        };
        let services = ["payment", "shipping"].map(service);
        let text = whole(PLAIN, &task("Processing"), &services, now());
        assert!(text.contains("Service    payment rejects most steps.\nTo do      Mend payment.\n"), "{text}");
        assert!(!text.contains("shipping rejects"), "{text}");
        let mut paused = task("Processing");
        paused.paused =
            serde_json::from_value(json!({"By": "ann", "Reason": "x", "Since": now(), "Version": 3})).unwrap();
        for task in [task("Error"), paused] {
            assert!(!whole(PLAIN, &task, &services, now()).contains("Mend payment."));
        }
        let well = serde_json::from_value(json!({"Service": "payment", "State": "Closed"})).unwrap();
        let mut alone = task("Processing");
        alone.steps[1].last_error = serde_json::from_value(json!({
            "Code": "retrying", "Message": "HTTP 404", "Attempt": 3, "At": now().minus_ms(5_000),
        }))
        .unwrap();
        let text = whole(PLAIN, &alone, &[well], now());
        assert!(text.contains("To do      Only this order fails at payment (HTTP 404); others go through."), "{text}");
    }

    fn line(task: &Task<'_>) -> String {
        change(PLAIN, Duration::from_millis(1_250), ID, task, |step| &step.name)
    }

    const COLUMNS: [Column; 5] = [Column::Order, Column::State, Column::Changed, Column::Where, Column::Why];

    #[test]
    fn a_row_tells_where_an_order_is_and_why() {
        let text = table(&[task("Error"), task("Processing")], &COLUMNS, Ids::Whole, now()).text(PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with(&format!("{ID}  Error       1 min ago  charge-payment failed     exhausted: no")),
            "{text}"
        );
        assert!(lines[2].contains("charge-payment attempt 3"), "{text}");
    }

    #[test]
    fn people_read_the_end_of_an_id_and_programs_the_whole() {
        let text = table(&[task("Error")], &[Column::Order, Column::Id], Ids::Ends, now()).text(PLAIN);
        assert_eq!(text, format!("ORDER     ID\n9f4be011  {ID}\n"));
        assert_eq!(Ids::Ends.of(ID.parse().unwrap()), "9f4be011");
    }

    #[test]
    fn a_change_is_one_line_with_every_step() {
        let line = line(&task("Error"));
        assert!(line.starts_with(&format!("   1.250s  {ID}  Error         reserve-inventory done")), "{line}");
        assert!(line.contains("ship-order -") && line.ends_with("no [2J answer (exhausted)"), "{line}");
    }

    #[test]
    fn a_wait_is_shown_while_it_lies_ahead_the_order_goes_forward_and_it_is_the_turn_of_the_step() {
        let time = |text: &str| serde_json::from_value::<Timestamp>(json!(text)).unwrap();
        let waits_of = |state: &str, charge: &str, ship_until: &str| {
            let mut task = task(state);
            task.reason = None;
            task.steps[1].process_state = serde_json::from_value(json!(charge)).unwrap();
            task.steps[2].waits_until = Some(time(ship_until));
            (waits(&task, &task.steps[2], now()), why(&task, now()))
        };
        let (ahead, past) = ("2026-11-21T17:26:43.007Z", "2020-01-01T00:00:00.000Z");
        let words = format!("waits until {ahead}");
        assert_eq!(waits_of("Processing", "Processed", ahead), (words.clone(), words));
        let none = (String::new(), String::new());
        assert_eq!(waits_of("Processing", "Processed", past), none);
        assert_eq!(waits_of("Processing", "Processing", ahead), none, "the step before it is not over");
        assert_eq!(waits_of("Compensated", "Processed", ahead), none);
        assert_eq!(waits_of("Compensating", "Processed", ahead), none);

        let mut task = task("Processing");
        let step = &mut task.steps[1];
        (step.complete_by, step.waits_until) = (Some(time(past)), Some(time(ahead)));
        assert_eq!(waits(&task, &task.steps[1], now()), format!("result awaited until {ahead}"));
        task.steps[1].waits_until = Some(time("2026-11-20T17:26:43.007Z"));
        assert_eq!(waits(&task, &task.steps[1], now()), "overdue, 1 min ago");
    }

    #[test]
    fn words_of_a_newer_server_are_shown_as_they_are() {
        let mut task = task("Archived");
        task.steps[1] = serde_json::from_value(json!({
            "Name": "charge-payment", "Agent": "payment", "ProcessState": "Frozen", "Direction": "Forward", "Attempt": 1,
            "FailureCount": 0,
        }))
        .unwrap();
        let text = whole(PLAIN, &task, &[], now());
        assert!(text.contains("State      Archived") && text.contains("payment    Frozen"), "{text}");
        assert!(line(&task).contains("Archived"));
    }

    #[test]
    fn words_of_a_server_that_is_none_of_ours_do_nothing_to_the_terminal() {
        let mut task = task("Archi\u{1b}[2Jved");
        task.steps[1].process_state = serde_json::from_value(json!("Fro\u{1b}[2Jzen")).unwrap();
        for text in [whole(PLAIN, &task, &[], now()), line(&task), brief(&task)] {
            assert!(!text.contains('\u{1b}') && text.contains("Archi [2Jved") && text.contains("Fro [2Jzen"), "{text}");
        }
    }
}
