//! Tells the sinks of alerts which causes began to make orders wait, and which are over (rule 29).

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use domain::alert::{Alert, Causes, Source, is_recent};
use domain::limits::PAGE_MAX;
use domain::ports::{
    Commit, DEAD_LETTERS_KEPT, DeadLetterRecord, Environment, Events, HasEnvironment, HasEvents, HasRecords, HasStore,
    ListError, PortError, Records, Seen, ServiceHealth, Store,
};
use domain::schedule::ScheduleRecord;
use domain::tally::Grain;
use domain::task::ProcessState;
use futures_util::future::join_all;

/// The ports that tell of alerts.
pub trait AlertPorts: HasStore + HasRecords + HasEvents + HasEnvironment {}

impl<P: HasStore + HasRecords + HasEvents + HasEnvironment> AlertPorts for P {}

/// The sink that is always there: the event bus.
const BUS: &str = "bus";
/// The same beside a sink of this name. No sink has a blank in its name.
const BUS_BESIDE: &str = "event bus";
/// Orders in `Error` that are looked at.
const ORDERS_MAX: usize = 10_000;
/// The time in which orders are looked at, in milliseconds.
const ORDERS_MS: u64 = 5_000;
/// Dead letters that are looked at, unless more were settled lately.
const DEAD_LETTERS: usize = 100;
/// The time after which a look begins to tell nothing new, in milliseconds: [`domain::alert::TELLING_MS`] less the
/// longest time in which a sink takes a message.
const TELL_MS: u64 = 30_000;

/// Looks for the causes that hold now, and tells the bus and each of `sinks` of those that began and of those that are
/// over. A sink is a channel of [`Events::notify`]. No sink waits for another one. A sink that fails is left alone for
/// the rest of this look, and for longer after each failure. Returns the number of messages that sinks took.
///
/// # Errors
/// The first [`PortError`], after everything else had its turn. The next look does the rest.
pub async fn alerts(ports: &impl AlertPorts, sinks: &[Arc<str>]) -> Result<u64, PortError> {
    let bus: Arc<str> = if sinks.iter().any(|sink| **sink == *BUS) { BUS_BESIDE } else { BUS }.into();
    let sinks: Vec<Arc<str>> = [bus.clone()].into_iter().chain(sinks.iter().cloned()).collect();
    let stored: BTreeMap<Arc<str>, Alert> =
        ports.records().list(usize::MAX).await?.into_iter().map(|alert: Alert| (alert.cause.clone(), alert)).collect();
    let mut failed = Failed::default();
    let causes = causes(ports, &mut failed).await;
    let keys: BTreeSet<&Arc<str>> = stored.keys().chain(causes.keys()).collect();
    let mut telling = Vec::new();
    for key in keys {
        let changed = write(ports, &sinks, key, stored.get(key), &causes).await;
        telling.extend(failed.unless(changed).flatten());
    }
    let told = join_all(sinks.iter().map(|sink| tell(ports, sink, *sink == bus, &telling))).await;
    let mut took = 0;
    for alert in &telling {
        let tried = told.iter().flatten().filter(|tried| *tried.cause == *alert.cause);
        let tried: Vec<(Arc<str>, bool)> = tried.map(|tried| (tried.sink.clone(), tried.took)).collect();
        took += tried.iter().map(|(_, took)| u64::from(*took)).sum::<u64>();
        let after = alert.after_telling(&tried, ports.environment().now());
        failed.unless(put(ports, Some(alert), &after).await);
    }
    failed.0.map_or(Ok(took), Err)
}

/// A message to a sink.
struct Tried<'a> {
    sink: &'a Arc<str>,
    cause: &'a str,
    took: bool,
}

/// The first failure of a look.
#[derive(Default)]
struct Failed(Option<PortError>);

impl Failed {
    /// The value, unless this failed.
    fn unless<T>(&mut self, tried: Result<T, PortError>) -> Option<T> {
        match tried {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }
}

/// The causes that hold now. One source that cannot be read holds up no other.
async fn causes(ports: &impl AlertPorts, failed: &mut Failed) -> Causes {
    let mut causes = Causes::default();
    for source in [Source::Services, Source::DeadLetters, Source::Schedules, Source::Numbers, Source::Orders] {
        let read = match source {
            Source::Orders => orders(ports, &mut causes).await,
            Source::Services => services(ports, &mut causes).await,
            Source::DeadLetters => dead_letters(ports, &mut causes).await,
            Source::Schedules => schedules(ports, &mut causes).await,
            Source::Numbers => numbers(ports, &mut causes).await,
            // They are read with those of late orders.
            Source::Approvals | Source::Contradictions => Ok(()),
        };
        if failed.unless(read).is_none() {
            causes.looked_at_a_part_of(source);
            if source == Source::Numbers {
                causes.looked_at_a_part_of(Source::Approvals);
                causes.looked_at_a_part_of(Source::Contradictions);
            }
        }
    }
    causes
}

async fn orders(ports: &impl AlertPorts, causes: &mut Causes) -> Result<(), PortError> {
    let now = ports.environment().now();
    let (mut read, mut after) = (0, None::<String>);
    // The longest wait of an order that no operator has taken on.
    let mut untaken_ms = 0;
    loop {
        let page = ports.store().list(Some(ProcessState::Error), after.as_deref(), PAGE_MAX).await;
        let page = page.map_err(|error| match error {
            ListError::Port(error) => error,
            ListError::Cursor => PortError::refused("store.list", ListError::Cursor),
        })?;
        for task in &page.tasks {
            causes.order(task, now);
            let failed_at = task.failed_at().filter(|_| task.taken.is_none());
            untaken_ms = failed_at.map_or(0, |at| at.ms_until(now)).max(untaken_ms);
        }
        read += page.read.max(page.tasks.len()).max(1);
        after = page.next;
        if after.is_none() {
            break;
        }
        if read >= ORDERS_MAX || ports.environment().now() >= now.plus_ms(ORDERS_MS) {
            causes.looked_at_a_part_of(Source::Orders);
            break;
        }
    }
    tracing::debug!(gauge.orders_untaken_ms = untaken_ms, "orders in Error looked at");
    Ok(())
}

async fn services(ports: &impl AlertPorts, causes: &mut Causes) -> Result<(), PortError> {
    let now = ports.environment().now();
    let all = ports.records().list::<ServiceHealth>(usize::MAX).await?;
    let down_since = all.iter().filter_map(|health| causes.service(health, now)).min();
    let down_ms = down_since.map_or(0, |since| since.ms_until(now));
    tracing::debug!(gauge.services_down_ms = down_ms, "services looked at");
    Ok(())
}

/// The late orders of the present hour and the one before.
async fn numbers(ports: &impl AlertPorts, causes: &mut Causes) -> Result<(), PortError> {
    let now = ports.environment().now();
    let since = Grain::Hour.of(now).minus_ms(Grain::Hour.ms());
    if let Some(numbers) = ports.store().numbers(Grain::Hour, since).await? {
        causes.numbers(&numbers, now);
        causes.approvals(&numbers, now);
    }
    Ok(())
}

async fn schedules(ports: &impl AlertPorts, causes: &mut Causes) -> Result<(), PortError> {
    let all: Vec<ScheduleRecord> = ports.records().list(usize::MAX).await?;
    all.iter().for_each(|record| causes.schedule(record));
    Ok(())
}

async fn dead_letters(ports: &impl AlertPorts, causes: &mut Causes) -> Result<(), PortError> {
    let now = ports.environment().now();
    for limit in [DEAD_LETTERS, DEAD_LETTERS_KEPT] {
        let newest: Vec<DeadLetterRecord> = ports.records().list(limit).await?;
        newest.iter().for_each(|letter| causes.dead_letter(letter, now));
        if newest.len() < limit || newest.last().is_some_and(|last| !is_recent(last, now)) {
            return Ok(());
        }
    }
    causes.looked_at_a_part_of(Source::DeadLetters);
    Ok(())
}

/// Writes what changed about a cause. Returns the alert if sinks have to be told: the same write keeps other supervisors
/// from telling them too.
async fn write(
    ports: &impl AlertPorts,
    sinks: &[Arc<str>],
    key: &Arc<str>,
    stored: Option<&Alert>,
    causes: &Causes,
) -> Result<Option<Alert>, PortError> {
    let now = ports.environment().now();
    if stored.is_some_and(|alert| alert.is_being_told(now)) {
        return Ok(None);
    }
    let changed = causes.next(key, stored, sinks, now);
    let Some(alert) = changed.as_ref().or(stored) else { return Ok(None) };
    let has_turn: Vec<&Arc<str>> = sinks.iter().filter(|sink| alert.turn(sink, now).is_some()).collect();
    if has_turn.is_empty() {
        if let Some(changed) = &changed {
            put(ports, stored, changed).await?;
        }
        return Ok(None);
    }
    let version = stored.map_or(0, |alert| alert.version) + 1;
    let telling = Alert { version, ..alert.before_telling(has_turn.into_iter(), now) };
    Ok((put(ports, stored, &telling).await? == Commit::Committed).then_some(telling))
}

async fn put(ports: &impl AlertPorts, stored: Option<&Alert>, alert: &Alert) -> Result<Commit, PortError> {
    let seen = Seen::version(stored.map_or(0, |alert| alert.version), ports.environment().now());
    ports.records().put(seen, alert).await
}

/// Tells one sink of all alerts, until it fails.
async fn tell<'a>(ports: &impl AlertPorts, sink: &'a Arc<str>, is_bus: bool, alerts: &'a [Alert]) -> Vec<Tried<'a>> {
    let began = ports.environment().now();
    let mut tried = Vec::new();
    for alert in alerts {
        let now = ports.environment().now();
        if now >= began.plus_ms(TELL_MS) {
            break;
        }
        let Some(turn) = alert.turn(sink, began) else { continue };
        let event = alert.event(turn, now);
        let told = match is_bus {
            true => ports.events().publish(event).await,
            false => ports.events().notify(sink, event).await,
        };
        tried.push(Tried { sink, cause: &alert.cause, took: told.is_ok() });
        if let Err(error) = told {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            tracing::warn!(%sink, cause = &*alert.cause, "a sink of alerts did not take {}: {why}", turn.kind());
            break;
        }
    }
    tried
}
