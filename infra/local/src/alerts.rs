//! Alerts on the terminal or in the log, one line each (rule 11).

use std::io::{self, Write};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use domain::alert::{Turn, has_own_event};
use domain::message::{Action, CloudEvent};
use domain::ports::OutageReason;
use domain::situation::Situation;
use domain::task::{NoticeKind, StepError};
use serde::Deserialize;
use serde_json::{Value, json};
use wire::Reason;

use crate::terminal::plain;

/// The event type of an unreadable dead letter. Its subject is the message ID.
const DEAD_LETTER_UNREADABLE: &str = "DeadLetterUnreadable";
/// Lines that wait for a slow terminal. Further lines are not shown; the events are kept all the same.
const LINES_WAITING_MAX: usize = 1_000;

/// Shows alerts. A thread writes them, so that a blocked terminal never holds up an order.
#[derive(Debug, Clone)]
pub struct Screen {
    lines: SyncSender<String>,
    is_json: bool,
}

/// The parts of the event's data for the line. Missing parts are left out: an alert is shown in any case.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Alert {
    reason: Reason<'static>,
    failed_steps: Vec<FailedStep>,
    actions: Vec<String>,
    situation: Option<Situation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct FailedStep {
    name: String,
    attempt: u32,
    failure_count: u32,
    last_error: Option<StepError>,
}

impl Screen {
    /// Shows lines on `out` until it is dropped, as text or as JSON. Write errors are ignored.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn on(mut out: impl Write + Send + 'static, is_json: bool) -> io::Result<Self> {
        let (lines, waiting) = mpsc::sync_channel::<String>(LINES_WAITING_MAX);
        thread::Builder::new().name("alerts".to_owned()).spawn(move || {
            for line in waiting {
                let _ = writeln!(out, "{line}");
            }
        })?;
        Ok(Self { lines, is_json })
    }

    /// Shows an event if it is an alert; never waits.
    pub fn show(&self, event: &CloudEvent) {
        if let Some(line) = line(event) {
            let _ = self.lines.try_send(if self.is_json { log_line(&line, event) } else { text_line(&line, event) });
        }
    }
}

/// The line in the form of the log's other lines.
fn text_line(line: &str, event: &CloudEvent) -> String {
    format!("{} {} alerts: {line}", event.time, level(event))
}

fn level(event: &CloudEvent) -> &'static str {
    if *event.kind == *Turn::Ended.kind() { "INFO" } else { "ERROR" }
}

/// The same in JSON, with the whole event.
fn log_line(line: &str, event: &CloudEvent) -> String {
    let fields = json!({"message": line, "event": event});
    json!({"timestamp": event.time, "level": level(event), "target": "alerts", "fields": fields}).to_string()
}

/// The line for an alert: its subject and the remedy. For an order also the step, the reason and the attempts.
#[must_use]
pub fn line(event: &CloudEvent) -> Option<String> {
    let (subject, data) = (&event.subject, event.data.text());
    let members: Value = serde_json::from_str(data).unwrap_or_default();
    let of = |name: &str| members[name].as_str().unwrap_or_default();
    let is = |kind: &str| *event.kind == *kind;
    let has_began = is(Turn::Began.kind()) && !has_own_event(subject);
    let is_of_service =
        [OutageReason::Misconfigured, OutageReason::Rejections].into_iter().filter_map(OutageReason::alert).any(is);
    let line = if is(NoticeKind::ReplyChannelFailing.name()) {
        format!("ALERT the reply channel of order {subject} does not take its messages")
    } else if is(NoticeKind::OrderLate.name()) {
        format!("ALERT order {subject} is late: {}, its deadline was {}", of("ProcessState"), of("CompleteBy"))
    } else if is(DEAD_LETTER_UNREADABLE) {
        format!("ALERT dead letter {subject} cannot be read; to do: look at GET /dead-letters")
    } else if has_began || is_of_service {
        format!("ALERT {} To do: {}", of("Text"), of("ToDo"))
    } else if is(Turn::Ended.kind()) {
        format!("an alert is over: {subject}, since {}", of("Since"))
    } else if is(NoticeKind::OrderNeedsOperator.name()) {
        needs_operator(subject, serde_json::from_str(data).unwrap_or_default())
    } else {
        return None;
    };
    Some(plain(&line))
}

/// The line for an order that needs an operator.
fn needs_operator(order_id: &str, alert: Alert) -> String {
    // A result contradicts the end of an order, which allows no action.
    if let Some(Situation { head, text, to_do: Some(to_do), .. }) =
        alert.situation.as_ref().filter(|_| alert.actions.is_empty())
    {
        return format!("ALERT order {order_id}: {head} {text} To do: {to_do}");
    }
    let mut line = format!("ALERT order {order_id} needs an operator");
    if let Some(step) = alert.reason.step.as_deref().or(alert.failed_steps.first().map(|step| &*step.name)) {
        line.push_str(&format!(" at {step}"));
    }
    if !alert.reason.code.is_empty() {
        line.push_str(&format!(": {} ({})", alert.reason.message, alert.reason.code));
    }
    for step in &alert.failed_steps {
        line.push_str(&format!("; {}", tried(step)));
    }
    if !alert.actions.is_empty() {
        let to_do = alert.situation.and_then(|situation| situation.to_do);
        let to_do = to_do.map(|to_do| format!("{to_do} ")).unwrap_or_default();
        let way = |action: &String| match **action == *Action::Settle.segment() {
            true => format!("stepwarden {action} {order_id} STEP --outcome … --reason …"),
            false => format!("stepwarden {action} {order_id} --reason …"),
        };
        let ways: Vec<String> = alert.actions.iter().map(way).collect();
        line.push_str(&format!("; to do: {to_do}{}", ways.join(" or ")));
    }
    line
}

fn tried(FailedStep { name, attempt, failure_count, last_error }: &FailedStep) -> String {
    let attempts = if *attempt == 1 { "attempt" } else { "attempts" };
    let mut words = format!("{name}: {attempt} {attempts}");
    // The one counts from the beginning, the other one since a resubmit or since the undo began.
    match failure_count {
        0 => {}
        1 if *attempt == 1 => words.push_str(", which failed"),
        count if count == attempt => words.push_str(", all failed"),
        count => words.push_str(&format!(" in all, {count} failed since the step last started afresh")),
    }
    if let Some(StepError { code, message, at, attempt: _ }) = last_error {
        words.push_str(&format!("; last error at {at}: {message} ({code})"));
    }
    words
}

#[cfg(test)]
mod tests {
    use domain::json::Json;
    use domain::time::Timestamp;

    use super::*;

    fn event(kind: &str, data: &str) -> CloudEvent {
        CloudEvent {
            specversion: "1.0".into(),
            id: "o/9/x".into(),
            source: "stepwarden".into(),
            kind: kind.into(),
            subject: "0193-7".into(),
            time: Timestamp::from_epoch_ms(1_795_195_603_007),
            datacontenttype: "application/json".into(),
            data: Json::parse(data.as_bytes(), 9_999).unwrap(),
        }
    }

    #[test]
    fn an_alert_is_one_line_with_order_step_reason_what_was_tried_and_what_to_do() {
        let data = r#"{
            "OrderID": "0193-7", "Version": 9, "ProcessState": "Error", "Actions": ["resubmit", "cancel"], "New": 1,
            "Situation": {"Head": "Waiting for an operator: exhausted at charge-payment.", "Waits": true,
                          "ToDo": "Restore the service, then resubmit."},
            "Reason": {"Code": "exhausted", "Message": "charge-payment: no answer in time", "Step": "charge-payment",
                       "SinceVersion": 9},
            "FailedSteps": [{"Name": "charge-payment", "Direction": "Forward", "Attempt": 3, "FailureCount": 3,
                "LastError": {"Code": "expired", "Message": "no answer\n\u001b[2Jin time", "Attempt": 3,
                              "At": "2026-11-20T17:26:43.007Z"}}]
        }"#;
        assert_eq!(
            line(&event("OrderNeedsOperator", data)).unwrap(),
            "ALERT order 0193-7 needs an operator at charge-payment: charge-payment: no answer in time (exhausted); \
             charge-payment: 3 attempts, all failed; last error at 2026-11-20T17:26:43.007Z: \
             no answer [2Jin time (expired); \
             to do: Restore the service, then resubmit. stepwarden resubmit 0193-7 --reason … or \
             stepwarden cancel 0193-7 --reason …"
        );
    }

    #[test]
    fn attempts_count_from_the_beginning_and_failures_since_the_last_fresh_start() {
        for (attempt, failure_count, words) in [
            (1, 0, "pay: 1 attempt"),
            (1, 1, "pay: 1 attempt, which failed"),
            (3, 3, "pay: 3 attempts, all failed"),
            (24, 0, "pay: 24 attempts"),
            (24, 1, "pay: 24 attempts in all, 1 failed since the step last started afresh"),
        ] {
            let step = FailedStep { name: "pay".to_owned(), attempt, failure_count, last_error: None };
            assert_eq!(tried(&step), words);
        }
    }

    #[test]
    fn an_alert_of_an_earlier_version_names_the_actions_only() {
        let data = r#"{"Actions": ["resubmit", "settle"]}"#;
        assert_eq!(
            line(&event("OrderNeedsOperator", data)).unwrap(),
            "ALERT order 0193-7 needs an operator; to do: stepwarden resubmit 0193-7 --reason … or stepwarden settle \
             0193-7 STEP --outcome … --reason …"
        );
    }

    #[test]
    fn an_alert_in_other_words_is_shown_all_the_same() {
        for data in ["{}", r#"{"Reason": 7}"#, "[]"] {
            assert_eq!(line(&event("OrderNeedsOperator", data)).unwrap(), "ALERT order 0193-7 needs an operator");
        }
    }

    #[test]
    fn an_order_whose_end_is_contradicted_is_one_line_with_what_came() {
        let data = r#"{"ProcessState": "Compensated", "Actions": [], "Reason": {"Code": "cancelled", "Message": "x"},
            "Situation": {"Head": "Compensated.", "Text": "But a result came for pay.", "ToDo": "Look at the service.",
                          "Waits": false}}"#;
        let words = "ALERT order 0193-7: Compensated. But a result came for pay. To do: Look at the service.";
        assert_eq!(line(&event("OrderNeedsOperator", data)).unwrap(), words);
    }

    #[test]
    fn a_late_order_is_one_line() {
        let data = r#"{"ProcessState": "Processing", "CompleteBy": "2026-11-22T17:26:43.007Z"}"#;
        let words = "ALERT order 0193-7 is late: Processing, its deadline was 2026-11-22T17:26:43.007Z";
        assert_eq!(line(&event("OrderLate", data)).unwrap(), words);
    }

    #[test]
    fn a_reply_channel_that_fails_is_one_line_whatever_the_reason_of_the_order() {
        let data = r#"{"OrderID": "0193-7", "Version": 9, "ReplyChannel": "shop", "Unsent": ["OrderProcessed"],
                       "Reason": {"Code": "exhausted", "Message": "no answer"}}"#;
        for data in [data, "{}"] {
            assert_eq!(
                line(&event("ReplyChannelFailing", data)).unwrap(),
                "ALERT the reply channel of order 0193-7 does not take its messages"
            );
        }
    }

    #[test]
    fn a_dead_letter_that_cannot_be_read_is_one_line_with_its_message_id() {
        let dead_letter = CloudEvent { subject: "m-7\n\u{1b}[2J".into(), ..event("DeadLetterUnreadable", "{}") };
        assert_eq!(
            line(&dead_letter).unwrap(),
            "ALERT dead letter m-7 [2J cannot be read; to do: look at GET /dead-letters"
        );
    }

    #[test]
    fn a_service_that_needs_an_operator_is_one_line_with_the_remedy() {
        let data = r#"{"Service": "payment", "Reason": "misconfigured", "Text": "payment is misconfigured: HTTP 401.",
                       "ToDo": "Mend\nthe credentials."}"#;
        for kind in ["ServiceMisconfigured", "ServiceRejecting"] {
            let line = line(&event(kind, data)).unwrap();
            assert_eq!(line, "ALERT payment is misconfigured: HTTP 401. To do: Mend the credentials.");
        }
    }

    #[test]
    fn an_alert_that_begins_without_an_event_of_its_own_and_any_that_is_over_are_one_line() {
        let data =
            r#"{"Cause": "c", "Text": "stock is failing.", "ToDo": "Restore stock.", "Since": "2026-11-22T17:26:43Z"}"#;
        let alert = |kind, cause: &str| CloudEvent { subject: cause.into(), ..event(kind, data) };
        let began = "ALERT stock is failing. To do: Restore stock.";
        for (cause, shown) in [
            ("service/stock/failing", Some(began)),
            ("approval/order", Some(began)),
            ("dead-letter/LostWish", Some(began)),
            ("dead-letter/Refused", Some(began)),
            // Their line came with the order, the service or the message.
            ("service/stock/misconfigured", None),
            ("service/stock/rejections", None),
            ("order/exhausted/pay", None),
            ("late/order", None),
            ("contradicted/order", None),
            ("dead-letter/Unreadable", None),
        ] {
            assert_eq!(line(&alert("AlertBegan", cause)).as_deref(), shown, "{cause}");
            let over = alert("AlertEnded", cause);
            let words = format!("an alert is over: {cause}, since 2026-11-22T17:26:43Z");
            assert_eq!(line(&over), Some(words.clone()));
            assert_eq!(text_line(&words, &over), format!("2026-11-20T17:26:43.007Z INFO alerts: {words}"));
        }
    }

    /// A writer that takes each write on command, and reports it.
    struct Stuck {
        go_on: mpsc::Receiver<()>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.go_on.recv().map_err(io::Error::other)?;
            self.written.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_that_takes_nothing_holds_up_nobody_and_gets_the_first_lines_later() {
        let ((go, go_on), (written, writes)) = (mpsc::channel(), mpsc::channel());
        let screen = Screen::on(Stuck { go_on, written }, false).unwrap();
        let numbered = |n: usize| CloudEvent { subject: format!("o-{n}").into(), ..event("OrderNeedsOperator", "{}") };
        for n in 0..3 * LINES_WAITING_MAX {
            screen.show(&numbered(n));
        }
        drop(screen);
        let mut text = Vec::new();
        while go.send(()).is_ok() {
            let Ok(bytes) = writes.recv() else { break };
            text.extend(bytes);
        }
        let text = String::from_utf8(text).unwrap();
        let shown: Vec<&str> = text.lines().collect();
        assert!((LINES_WAITING_MAX..=LINES_WAITING_MAX + 1).contains(&shown.len()), "{}", shown.len());
        for (n, line) in shown.into_iter().enumerate().take(LINES_WAITING_MAX) {
            assert_eq!(line, format!("2026-11-20T17:26:43.007Z ERROR alerts: ALERT order o-{n} needs an operator"));
        }
    }

    #[test]
    fn what_needs_nobody_is_not_shown() {
        for kind in ["OrderReceived", "OrderProcessed", "OrderFailed", "OrderCompensated"] {
            assert_eq!(line(&event(kind, "{}")), None);
        }
    }
}
