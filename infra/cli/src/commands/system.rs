//! `stepwarden services`, `alerts` and `leases`.

use domain::ports::{Acceptance, Breaker, OutageReason};
use domain::time::Timestamp;
use wire::{Alert, AlertList, Lease, LeaseList, OpenEnum, OrdersWaiting, Service, ServiceList};

use super::context::{Context, body};
use super::error::CommandError;
use crate::args::AcceptRejectionsArgs;
use crate::exit::Exit;
use crate::paint::tint;
use crate::remote::{Call, encoded};
use crate::show::table::{Cell, Table, number, plain};
use crate::show::time::{clock, from_now};

/// `stepwarden services`: the health of each remote service.
pub(super) async fn services(context: &Context) -> Result<Exit, CommandError> {
    let words = |ServiceList { services }: ServiceList<'static>| service_text(&services, context);
    context.show_path("/services", words).await
}

/// `stepwarden services accept-rejections`: the operator's word that the rejections of a service are right.
pub(super) async fn accept_rejections(context: &Context, args: &AcceptRejectionsArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.command)?;
    let path = format!("/services/{}/accept-rejections", encoded(&args.service));
    // Twice is once, so a repeat after a lost answer is safe.
    let answer = context.remote.call(&Call::post(path, body(&command))).await;
    let what = || format!("the rejections of {} were accepted", args.service);
    let answer = answer.map_err(|error| CommandError::of_change(error, what(), "stepwarden services"))?;
    context.show(&answer, |service: Service<'static>| service_text(&[service], context))
}

/// Says so if it is known that there is no such service.
pub(super) async fn note_if_unknown(context: &Context, wanted: &str) {
    if let Ok(ServiceList { services }) = context.remote.get::<ServiceList<'static>>("/services").await
        && services.iter().all(|service| service.service != wanted)
    {
        let names: Vec<String> = services.iter().map(|service| plain(&service.service)).collect();
        context.note(&format!("there is no service {wanted}, but {}", names.join(", ")));
    }
}

/// The services as a table, and the operator's remedy for each that needs one.
fn service_text(services: &[Service<'_>], context: &Context) -> String {
    let mut text = service_table(services, context.now()).text(context.paint);
    for service in services {
        if let Some(problem) = &service.problem {
            text.push_str(&format!("\n{}: {}\n", plain(&service.service), plain(problem)));
        }
        if let Some(to_do) = &service.to_do {
            text.push_str(&format!("To do: {}\n", plain(to_do)));
        }
        if let Some(Acceptance { by, reason, at }) = &service.rejections_accepted {
            let at = from_now(*at, context.now());
            let (by, reason) = (plain(by), plain(reason));
            let service = plain(&service.service);
            text.push_str(&format!("\n{service}: its rejections count, accepted by {by} {at}: {reason}\n"));
        }
    }
    text
}

/// `stepwarden alerts`: a line for each cause, and the remedy of each that is on.
pub(super) async fn alerts(context: &Context) -> Result<Exit, CommandError> {
    context.show_path("/alerts", |AlertList { alerts }: AlertList<'static>| alert_text(&alerts, context)).await
}

fn alert_text(alerts: &[Alert<'_>], context: &Context) -> String {
    let now = context.now();
    let table = Table::of(alerts)
        .column("CAUSE", |alert| {
            Cell::tinted(&alert.cause, if alert.ended_at.is_none() { tint::RED } else { tint::DIM })
        })
        .column("SINCE", |alert| from_now(alert.since, now))
        .column("ENDED", |alert| alert.ended_at.map(|at| from_now(at, now)))
        .column("ORDERS", |alert| (alert.count > 0).then(|| number(alert.count, alert.at_least)))
        .column("ONE OF THEM", |alert| alert.order_id.map(|id| context.ids().of(id)));
    let remedies: String = alerts.iter().map(alert_words).collect();
    table.or(context.paint, "No alert.") + &remedies
}

/// What happens and what to do; of a cause that is gone, only since when. And which sinks were not told.
fn alert_words(alert: &Alert<'_>) -> String {
    let (cause, text, to_do) = (plain(&alert.cause), plain(&alert.text), plain(&alert.to_do));
    let mut words = match (alert.ended_at, alert.gone_since) {
        (Some(_), _) => String::new(),
        (None, Some(at)) => format!("\n{cause}: no longer since {}\n", clock(at)),
        (None, None) => format!("\n{cause}: {text}\nTo do: {to_do}\n"),
    };
    if !alert.not_told.is_empty() {
        let sinks = plain(&alert.not_told.join(", "));
        words.push_str(&format!("\n{cause}: not told to {sinks}. It is tried again; the log says why.\n"));
    }
    words
}

/// `stepwarden leases`: the shards that each supervisor holds, and its last report.
pub(super) async fn leases(context: &Context) -> Result<Exit, CommandError> {
    context.show_path("/leases", |LeaseList { leases }: LeaseList<'static>| lease_text(&leases, context)).await
}

fn lease_text(leases: &[Lease<'_>], context: &Context) -> String {
    let now = context.now();
    let table = Table::of(leases)
        .column("LEASE", |lease| &*lease.name)
        .column("HELD", |lease| match lease.held {
            true => Cell::tinted("held", tint::GREEN),
            false => Cell::tinted("free", tint::DIM),
        })
        .column("OWNER", |lease| &*lease.owner)
        .column("EPOCH", |lease| lease.epoch)
        .column("LAST HEARD OF", |lease| lease.renewed_at.map(|at| from_now(at, now)))
        .column("EXPIRES", |lease| lease.expires_at.map(|at| from_now(at, now)))
        .column("HEALTH", |lease| lease.health.as_deref());
    table.or(context.paint, "No lease was taken yet.")
}

/// The services, and the next probe of failing ones.
pub(super) fn service_table<'a>(services: &'a [Service<'_>], now: Timestamp) -> Table<'a, Service<'a>> {
    Table::of(services)
        .column("SERVICE", |service| &*service.service)
        .column("STATE", breaker_cell)
        .column("SINCE", |service| service.outage_since.or(service.since).map(|at| from_now(at, now)))
        .column("NEXT PROBE", |service| service.until.map(|at| from_now(at, now)))
        .column("FAILURES IN A ROW", |service| service.failures_in_a_row.unwrap_or(0))
        .column("ORDERS WAITING", |service| {
            service.orders_waiting.map(|OrdersWaiting { count, at_least }| number(count, at_least))
        })
        .column("PROBLEM", |service| service.problem.as_deref())
}

/// The state of the circuit breaker, in plain words.
fn breaker_cell(service: &Service<'_>) -> Cell {
    let reason = match service.reason.as_ref().and_then(OpenEnum::known) {
        Some(OutageReason::Misconfigured) => "misconfigured",
        Some(OutageReason::Rejections) => "rejecting",
        Some(OutageReason::Failing) | None => "failing",
    };
    match &service.state {
        // It has no record before its first failure.
        OpenEnum::Known(Breaker::Closed) if service.since.is_none() => {
            Cell::tinted("no failure yet (Closed)", tint::GREEN)
        }
        OpenEnum::Known(Breaker::Closed) => Cell::tinted("well (Closed)", tint::GREEN),
        OpenEnum::Known(Breaker::Open) => Cell::tinted(format!("{reason} (Open)"), tint::RED),
        OpenEnum::Known(Breaker::HalfOpen) => Cell::tinted("being tried (HalfOpen)", tint::YELLOW),
        OpenEnum::Unknown(word) => Cell::tinted(word, tint::RED),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_cause_that_is_gone_is_told_with_its_time_and_without_a_remedy() {
        let words = |gone_since: Value, ended_at: Value| {
            let alert = json!({"Cause": "service/pay/failing", "Since": "2026-11-20T17:26:43.007Z", "GoneSince": gone_since,
                               "EndedAt": ended_at, "Text": "pay is failing.", "ToDo": "Restore pay.", "Count": 0,
                               "AtLeast": false});
            alert_words(&serde_json::from_value(alert).unwrap())
        };
        let at = json!("2026-11-20T17:36:43.007Z");
        assert_eq!(words(Value::Null, Value::Null), "\nservice/pay/failing: pay is failing.\nTo do: Restore pay.\n");
        let gone = words(at.clone(), Value::Null);
        assert!(
            gone.starts_with("\nservice/pay/failing: no longer since ") && !gone.contains("pay is failing"),
            "{gone}"
        );
        assert_eq!(words(at.clone(), at), "");
    }

    #[test]
    fn a_service_is_in_words_what_it_waits_for() {
        let words = |service: Service<'static>| breaker_cell(&service).to_string();
        for (state, reason, expected) in [
            ("Closed", None, "well (Closed)"),
            ("Open", None, "failing (Open)"),
            ("Open", Some("failing"), "failing (Open)"),
            ("Open", Some("misconfigured"), "misconfigured (Open)"),
            ("Open", Some("rejections"), "rejecting (Open)"),
            ("Open", Some("a-later-one"), "failing (Open)"),
            ("HalfOpen", Some("rejections"), "being tried (HalfOpen)"),
            ("Ajar", None, "Ajar"),
        ] {
            let since = "2026-11-20T17:26:43.007Z";
            let service = json!({"Service": "payment", "State": state, "Since": since, "Reason": reason});
            let service: Service<'static> = serde_json::from_value(service).unwrap();
            assert_eq!(words(service), expected);
        }
        let never = serde_json::from_value(json!({"Service": "payment", "State": "Closed"})).unwrap();
        assert_eq!(words(never), "no failure yet (Closed)");
    }
}
