//! What can be seen of a deployment through its API.

use std::collections::{BTreeMap, BTreeSet};

use domain::ports::{Breaker, OutageReason};
use domain::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wire::{
    Alert, AlertList, DeadLetter, DeadLetterList, Health, Lease, LeaseList, OrderList, Service, ServiceList, Workflow,
    WorkflowList,
};

use super::clock;
use super::finding::{Finding, State};
use crate::commands::context::Context;
use crate::commands::list::{PAGE_MAX, page};
use crate::exit::Exit;
use crate::remote::{Call, Remote, RemoteError, clock as here};
use crate::show::time::{from_now, span};

/// A supervisor runs each minute, or each second on one machine. One run may be missed.
const SUPERVISED_WARNING_MS: u64 = 150_000;
/// From here on nobody looks after what is overdue.
const SUPERVISED_WRONG_MS: u64 = 300_000;
/// How the names of a supervisor's leases and of its last run begin.
const SUPERVISOR: &str = "supervisor/run";
/// Dead letters that were settled longer ago are no news.
const DEAD_LETTERS_NEW_MS: u64 = 24 * 60 * 60 * 1_000;
/// Orders that are counted; more are "at least".
const COUNTED_MAX: usize = 100;
/// Open orders of one state that are looked at.
const OPEN_MAX: usize = 10_000;
/// Alerts that are named.
const NAMED_MAX: usize = 3;
/// The check of the workflows of open orders.
const VERSIONS: &str = "workflow versions";

/// An open order, as far as its workflow goes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pinned {
    workflow: String,
    workflow_version: u32,
}

/// What an API let be seen of itself.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) findings: Vec<Finding>,
    /// Nothing, since who asks may not see it.
    pub(super) is_denied: bool,
}

/// All checks. Where the API cannot be reached there is only that one.
pub(super) async fn look(context: &Context) -> Seen {
    let asked_at = here::system_now();
    let began = here::instant();
    let (health, answer) = match context.remote.ask::<Health<'static>>(&Call::get("/health")).await {
        Ok(answer) => answer,
        Err(error) => return Seen::nothing(&error),
    };
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let date = answer.headers.get("date").and_then(|value| value.to_str().ok());
    let now = here::now();
    let mut findings = vec![
        reached(&health, &context.remote.target().url(""), took_ms),
        version(&health),
        clock::judge(date, asked_at, here::system_now()),
    ];
    let remote = &context.remote;
    if !health.paused {
        findings.extend(ready(remote.get::<Health<'static>>("/ready").await));
    }
    findings.extend(stand_ins(&health));
    let of_health = findings.len();
    let known = remote.get::<WorkflowList<'static>>("/workflows").await;
    let open = match &known {
        Ok(known) => {
            let open = open_orders(remote).await;
            Some(open.map(|(open, is_all)| versions(&known.workflows, &open, is_all)))
        }
        Err(_) => None,
    };
    findings.push(told("workflows", known.map(|read| workflows(&read.workflows))));
    findings.extend(open.map(|open| told(VERSIONS, open)));
    match remote.get::<ServiceList<'static>>("/services").await {
        Ok(read) => findings.extend(services(&read.services)),
        Err(error) => findings.push(told("services", Err(error))),
    }
    let supervisor = |read: LeaseList<'static>| match health.paused {
        true => Finding::ok("supervisor", "none runs: the server is paused".to_owned()),
        false => supervised(&read.leases, now),
    };
    findings.push(judged(remote, "supervisor", "/leases", supervisor).await);
    findings.push(judged(remote, "alerts", "/alerts", |read: AlertList<'static>| alerts(&read.alerts)).await);
    let path = format!("/orders?state=Error&limit={COUNTED_MAX}");
    findings.push(judged(remote, "orders in Error", &path, |page: OrderList<Box<RawValue>>| in_error(&page)).await);
    let path = format!("/dead-letters?limit={COUNTED_MAX}");
    let judge = |page: DeadLetterList<Box<RawValue>>| dead_letters(&page, now);
    findings.push(judged(remote, "dead letters", &path, judge).await);
    let is_denied = findings[of_health..].iter().all(|finding| finding.state == State::Skipped);
    if is_denied {
        let found = "its health is all that whose credentials these are may see";
        findings.push(Finding::wrong("authorisation", found, "give --auth, --profile or a token of an operator"));
    }
    Seen { findings, is_denied }
}

impl Seen {
    /// There is no API to look at.
    pub(super) fn nothing(error: &RemoteError) -> Self {
        let is_denied = error.exit() == Exit::NotAllowed;
        Self { findings: vec![unreachable(error)], is_denied }
    }
}

fn unreachable(error: &RemoteError) -> Finding {
    Finding::wrong("reachable", error.to_string(), error.advice().unwrap_or_else(|| "give another --api".to_owned()))
}

/// Judges what is at a path.
async fn judged<T: DeserializeOwned>(
    remote: &Remote,
    check: &str,
    path: &str,
    judge: impl FnOnce(T) -> Finding,
) -> Finding {
    told(check, remote.get(path).await.map(judge))
}

/// Turns an answer into a finding. A call that the caller may not make is skipped.
fn told(check: &str, answer: Result<Finding, RemoteError>) -> Finding {
    answer.unwrap_or_else(|error| {
        if error.exit() == Exit::NotAllowed {
            return Finding::skipped(check, format!("whose credentials these are may not see it: {error}"));
        }
        Finding::wrong(check, error.to_string(), error.advice().unwrap_or_else(|| "try again".to_owned()))
    })
}

fn reached(health: &Health<'_>, url: &str, took_ms: u64) -> Finding {
    let found = format!("{url} says {} after {}", health.status, span(took_ms));
    if health.paused {
        let found = format!("{found}, but it is paused: no order goes on");
        Finding::wrong("reachable", found, "start it without --paused")
    } else if health.status == "ok" {
        Finding::ok("reachable", found)
    } else {
        Finding::wrong("reachable", found, "look at its log")
    }
}

/// Why it takes no orders. On AWS the platform decides, and there is no such call.
fn ready(answer: Result<Health<'_>, RemoteError>) -> Option<Finding> {
    let error = answer.err().filter(|error| !error.is_unknown_call() && error.exit() != Exit::NotAllowed)?;
    let to_do = "look at its log and its disk: it takes no order until this is mended";
    Some(Finding::wrong("ready", error.to_string(), to_do))
}

fn version(health: &Health<'_>) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    if health.version == own {
        return Finding::ok("version", own);
    }
    let found = format!("{} there, {own} here", health.version);
    Finding::warning("version", found, "use the program of the version that is deployed, or deploy this one")
}

/// Nobody should take a trial for a shop.
fn stand_ins(health: &Health<'_>) -> Option<Finding> {
    health.stand_ins.then(|| {
        Finding::warning(
            "stand-ins",
            "they play services without a URL: orders end well, and nothing real happens",
            "for real orders give each service its URL, and start `serve` with the folder; on AWS deploy with StandIns=false",
        )
    })
}

fn workflows(told: &[Workflow<'_>]) -> Finding {
    let current: Vec<String> = told
        .iter()
        .filter(|workflow| workflow.current)
        .map(|workflow| format!("{} version {}", workflow.name, workflow.version))
        .collect();
    if current.is_empty() {
        let to_do = "apply a configuration: stepwarden apply DIR, or deploy this version again";
        return Finding::wrong("workflows", "none is for new orders", to_do);
    }
    Finding::ok("workflows", format!("{}, {} versions in all", current.join(", "), told.len()))
}

/// One for each service that fails, with its own remedy, in the words of the API.
fn services(told: &[Service<'_>]) -> Vec<Finding> {
    const CHECK: &str = "services";
    let failing: Vec<Finding> = told
        .iter()
        .filter(|service| service.state != Breaker::Closed)
        .map(|service| {
            let found = service.text.as_deref().map_or_else(|| format!("{} fails", service.service), str::to_owned);
            let to_do = service.to_do.as_deref().unwrap_or("mend the service; orders wait and go on by themselves");
            // Only an operator ends some of them.
            match service.reason.as_ref().is_some_and(|reason| *reason != OutageReason::Failing) {
                true => Finding::wrong(CHECK, found.trim_end_matches('.'), to_do),
                false => Finding::warning(CHECK, found.trim_end_matches('.'), to_do),
            }
        })
        .collect();
    match (failing.is_empty(), told.len()) {
        (true, 0) => {
            vec![Finding::warning(CHECK, "it tells of none", "deploy again; agents come with their services")]
        }
        (true, count) => vec![Finding::ok(CHECK, format!("all {count} are well"))],
        (false, _) => failing,
    }
}

/// Each run is written down.
fn supervised(told: &[Lease<'_>], now: Timestamp) -> Finding {
    const CHECK: &str = "supervisor";
    const TO_DO: &str = "look at the supervisor's log and its schedule: what is overdue waits until it runs";
    let run = told.iter().find(|lease| lease.name == SUPERVISOR);
    let Some((last, lease)) = run.and_then(|lease| Some((lease.renewed_at?, lease))) else {
        return Finding::wrong(CHECK, "none has run yet", TO_DO);
    };
    let health = lease.health.as_deref().map(|health| format!(": {health}")).unwrap_or_default();
    let found = format!("last run {}{health}", from_now(last.min(now), now));
    match last.ms_until(now) {
        ago_ms if ago_ms > SUPERVISED_WRONG_MS => Finding::wrong(CHECK, found, TO_DO),
        ago_ms if ago_ms > SUPERVISED_WARNING_MS => Finding::warning(CHECK, found, TO_DO),
        _ if found.contains("not reached") || found.contains("cut short") => Finding::warning(CHECK, found, TO_DO),
        _ => Finding::ok(CHECK, found),
    }
}

/// The open orders, at most [`OPEN_MAX`] of each state, and whether these are all. The oldest come last, and those of a
/// version that is gone are old.
async fn open_orders(remote: &Remote) -> Result<(Vec<Pinned>, bool), RemoteError> {
    let (mut open, mut is_all) = (Vec::new(), true);
    for state in ["Pending", "Processing", "Compensating", "Error"] {
        let (filter, mut cursor) = ([("state", state.to_owned())], None);
        for _ in 0..OPEN_MAX / PAGE_MAX {
            let page = page::<Pinned>(remote, &filter, PAGE_MAX, cursor).await?;
            open.extend(page.orders);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        is_all &= cursor.is_none();
    }
    Ok((open, is_all))
}

fn alerts(told: &[Alert<'_>]) -> Finding {
    const CHECK: &str = "alerts";
    let sinks: BTreeSet<&str> = told.iter().flat_map(|alert| alert.not_told.iter().map(|sink| &**sink)).collect();
    if !sinks.is_empty() {
        let sinks = sinks.into_iter().collect::<Vec<_>>().join(", ");
        let to_do = "look at its log for the reason: each is sent again, for up to a day after its end";
        return Finding::wrong(CHECK, format!("some were not delivered to {sinks}"), to_do);
    }
    let on: Vec<&str> = told.iter().filter(|alert| alert.ended_at.is_none()).map(|alert| &*alert.cause).collect();
    if on.is_empty() {
        return Finding::ok(CHECK, "none is on");
    }
    let named = on.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if on.len() > NAMED_MAX { ", ..." } else { "" };
    Finding::warning(CHECK, format!("{} on: {named}{more}", on.len()), "`stepwarden alerts` says what to do about each")
}

/// An order whose version is gone cannot be decided: it stands still, and nothing counts it.
fn versions(known: &[Workflow<'_>], open: &[Pinned], is_all: bool) -> Finding {
    let is_gone = |order: &&Pinned| {
        let Pinned { workflow, workflow_version: version } = order;
        !known.iter().any(|known| known.name == **workflow && known.version == *version)
    };
    let mut gone = BTreeMap::<_, usize>::new();
    open.iter().filter(is_gone).for_each(|order| *gone.entry(order).or_default() += 1);
    if gone.is_empty() {
        return match is_all {
            true => Finding::ok(VERSIONS, format!("there for all {} open orders", open.len())),
            false => Finding::warning(
                VERSIONS,
                format!("there for the newest {} open orders; the older ones were not looked at", open.len()),
                "keep each version that an old order may have: `stepwarden workflows` lists them",
            ),
        };
    }
    let words = gone.iter().map(|(pinned, count)| {
        let (orders, stand) = if *count == 1 { ("order", "stands") } else { ("orders", "stand") };
        format!("{} version {} is gone: {count} {orders} {stand} still", pinned.workflow, pinned.workflow_version)
    });
    let to_do = "apply a folder with this version, or run the program that contained it, until these orders have ended";
    Finding::wrong(VERSIONS, words.collect::<Vec<_>>().join("; "), to_do)
}

fn in_error(page: &OrderList<Box<RawValue>>) -> Finding {
    let more = if page.next_cursor.is_some() { "at least " } else { "" };
    match page.orders.len() {
        0 => Finding::ok("orders in Error", "none"),
        count => Finding::warning(
            "orders in Error",
            format!("{more}{count}"),
            "`stepwarden overview` tells the causes; resubmit or cancel them once these are mended",
        ),
    }
}

fn dead_letters(page: &DeadLetterList<Box<RawValue>>, now: Timestamp) -> Finding {
    let read = page.dead_letters.iter().filter_map(|raw| serde_json::from_str::<DeadLetter<'static>>(raw.get()).ok());
    let new = read.filter(|dead_letter| dead_letter.settled_at.ms_until(now) <= DEAD_LETTERS_NEW_MS).count();
    match new {
        0 => Finding::ok("dead letters", "none in the last day"),
        new => Finding::warning(
            "dead letters",
            format!("{new} in the last day"),
            "`stepwarden dead-letters` tells what became of each, and the functions' logs why",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW_MS: i64 = 1_795_195_603_007;

    fn now() -> Timestamp {
        Timestamp::from_epoch_ms(NOW_MS)
    }

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn lease(name: &str, ago_s: u64) -> Value {
        let at = now().minus_ms(ago_s * 1_000).to_string();
        json!({"Name": name, "Owner": "s-1", "Epoch": 4, "RenewedAt": at, "Held": true})
    }

    fn supervised_by(leases: &[Value]) -> Finding {
        supervised(&read::<LeaseList<'static>>(json!({ "Leases": leases })).leases, now())
    }

    #[test]
    fn a_supervisor_that_does_not_run_is_told() {
        for (ago_s, state) in [(1, State::Ok), (60, State::Ok), (200, State::Warning), (301, State::Wrong)] {
            // A shard where nothing is due has no lease, or an old one.
            let told = [lease("supervisor/00", 90_000), lease("supervisor/run", ago_s)];
            assert_eq!(supervised_by(&told).state, state, "{ago_s}");
        }
        assert_eq!(supervised_by(&[]).state, State::Wrong);
        assert_eq!(supervised_by(&[lease("bulk", 1)]).state, State::Wrong, "that is no supervisor's");
        let mut run = lease("supervisor/run", 5);
        run["Health"] = "swept 0, took 0".into();
        assert_eq!(supervised_by(&[run]).found, "last run 5 s ago: swept 0, took 0");
    }

    #[test]
    fn a_failing_service_is_a_warning_and_one_that_needs_an_operator_is_wrong() {
        for (reason, state) in
            [("failing", State::Warning), ("misconfigured", State::Wrong), ("rejections", State::Wrong)]
        {
            let told = json!({"Services": [
                {"Service": "inventory", "State": "Closed"},
                {"Service": "payment", "State": "Open", "Reason": reason, "Text": "payment does not work.",
                 "ToDo": "mend it"},
            ]});
            let findings = services(&read::<ServiceList<'static>>(told).services);
            let finding = Finding { state, ..Finding::wrong("services", "payment does not work", "mend it") };
            assert_eq!(findings, [finding]);
        }
    }

    #[test]
    fn no_services_at_all_are_not_all_well() {
        assert_eq!(services(&[])[0].state, State::Warning);
    }

    #[test]
    fn a_version_that_is_gone_is_wrong_with_the_number_of_its_open_orders() {
        let known = [("order", 2), ("return", 1)].map(|(name, version)| {
            json!({"Name": name, "Version": version, "Current": true, "Priority": "normal", "Steps": []})
        });
        let known = json!({ "Workflows": known });
        let known = read::<WorkflowList<'static>>(known).workflows;
        let of = |name: &str, version| Pinned { workflow: name.into(), workflow_version: version };
        for (is_all, state) in [(true, State::Ok), (false, State::Warning)] {
            assert_eq!(versions(&known, &[of("order", 2), of("return", 1)], is_all).state, state);
        }
        let finding = versions(&known, &[of("order", 2), of("order", 1), of("return", 2), of("order", 1)], true);
        let found = "order version 1 is gone: 2 orders stand still; return version 2 is gone: 1 order stands still";
        assert_eq!((finding.state, &*finding.found), (State::Wrong, found));
    }

    #[test]
    fn alerts_that_are_on_are_named_and_undelivered_ones_are_wrong() {
        let of = |alerts: Value| {
            let read = read::<AlertList<'static>>(json!({ "Alerts": alerts }));
            let Finding { state, found, .. } = super::alerts(&read.alerts);
            (state, found)
        };
        let alert = |cause: &str, more: Value| {
            let at = now().to_string();
            let mut alert = json!({"Cause": cause, "Since": at, "Text": "it waits", "ToDo": "mend it",
                                   "Count": 1, "AtLeast": false});
            alert.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            alert
        };
        let ended = alert("late/order", json!({"EndedAt": now().to_string()}));
        assert_eq!(of(json!([ended])), (State::Ok, "none is on".into()));
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|cause| alert(cause, json!({})));
        assert_eq!(of(json!([ended, a])), (State::Warning, "1 on: a".into()));
        assert_eq!(of(json!([a, b, c, d])), (State::Warning, "4 on: a, b, c, ...".into()));
        let untold = alert("late/order", json!({"EndedAt": now().to_string(), "NotTold": ["pager"]}));
        assert_eq!(of(json!([a, untold])), (State::Wrong, "some were not delivered to pager".into()));
    }

    #[test]
    fn workflows_are_told_by_their_versions() {
        let of = |version, current| {
            let told = json!({"Workflows": [{"Name": "order", "Version": version, "Current": current,
                                             "Priority": "normal", "Steps": []}]});
            workflows(&read::<WorkflowList<'static>>(told).workflows)
        };
        assert_eq!(of(1, true).state, State::Ok);
        assert_eq!(of(9_999, true).state, State::Ok, "a version that was applied");
        assert_eq!(of(1, false).state, State::Wrong);
    }

    #[test]
    fn only_new_dead_letters_are_news() {
        let dead_letter = |ago_h: u64| {
            json!({"MessageID": "m", "ReceiveCount": 5, "Outcome": "Held", "Message": "x", "At": now().to_string(),
                   "SettledAt": now().minus_ms(ago_h * 3_600_000).to_string()})
        };
        let of = |ago_h| dead_letters(&read(json!({"DeadLetters": [dead_letter(ago_h)]})), now()).state;
        assert_eq!((of(1), of(48)), (State::Warning, State::Ok));
    }

    #[test]
    fn stand_ins_are_a_warning_where_there_are_any() {
        let of = |health| stand_ins(&read::<Health<'static>>(health)).map(|finding| finding.state);
        assert_eq!(of(json!({"Status": "ok", "Version": "1", "StandIns": true})), Some(State::Warning));
        assert_eq!(of(json!({"Status": "ok", "Version": "1"})), None);
    }

    #[test]
    fn another_version_is_a_warning() {
        assert_eq!(version(&read(json!({"Status": "ok", "Version": "0.0.9"}))).state, State::Warning);
        let same = json!({"Status": "ok", "Version": env!("CARGO_PKG_VERSION")});
        assert_eq!(version(&read(same)).state, State::Ok);
    }
}
