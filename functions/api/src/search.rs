//! The search for orders.
//!
//! A search for a correlation id, or for a member that a workflow declares, begins in the store's index (rule 28). Then,
//! and for any other value, it walks the store's list, newest first, and checks each task. It reads an order only if the
//! task cannot decide. The work of one call is bounded, also by the bytes that it reads: large documents take more calls.
//! A walk through a million orders takes many calls; each is short and reports how far it came.

mod indexed;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::definition::Pin;
use domain::id::OrderId;
use domain::limits::{NAME_CHARS_MAX, PAGE_MAX, TEXT_CHARS_MAX};
use domain::order::Order;
use domain::ports::{Page, Store};
use domain::redaction::Redaction;
use domain::search::{FIND_CHARS_MAX, Finder, Pointer};
use domain::task::{ProcessState, StepState, Task};
use domain::time::Timestamp;
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};

use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::{cursor, query, services};

pub(crate) use indexed::page;

/// Tasks that one call reads; the page that reaches this number is the last. A store without an index by state reads
/// many tasks to find a few.
const READ_MAX: usize = 1_000;
/// Pages of the store that one call reads; a store may return empty pages.
const PAGES_MAX: usize = 20;
/// Orders that one call reads.
const ORDERS_MAX: usize = 200;
/// Bytes of documents that one call reads. The order that reaches this number is the last.
pub(crate) const DOCUMENTS_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Orders read at the same time. So many documents may be read in vain at the end of a call.
pub(crate) const ORDERS_AT_ONCE: usize = 8;
/// How far an order may be out of order in a list by submission time: some wait in a queue for longer than others.
const OUT_OF_PLACE_MS: u64 = 60 * 60 * 1_000;
/// Parameters that a search had at first.
const FIRST_PARAMETERS: usize = 7;
/// Characters of a workflow's name, a slash and a version.
const WORKFLOW_CHARS_MAX: usize = NAME_CHARS_MAX + 11;

/// The conditions of a search; all must hold.
pub(crate) struct Search {
    /// Identifies this search in a cursor.
    name: String,
    /// The application that sees its own orders alone.
    submitter: Option<Arc<str>>,
    reason: Option<String>,
    step: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    correlation: Option<String>,
    finder: Option<Finder>,
    workflow: Option<Workflow>,
    service: Option<String>,
    /// Whether only late orders are meant, or only others.
    late: Option<bool>,
    /// Whether only orders that people are asked about are meant, or only others.
    approval: Option<bool>,
    /// Whether only orders are meant whose end a result contradicts, or only others.
    contradicted: Option<bool>,
}

/// The workflow of the orders that are searched for.
enum Workflow {
    Named(String),
    OfVersion(Pin),
}

/// The result of one call, or a page of a list.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) tasks: Vec<Arc<Task>>,
    /// The cursor of the store's list.
    pub(crate) next: Option<String>,
    /// The number of tasks that were checked.
    pub(crate) examined: usize,
    /// The submission time of the last of them, if its task has it.
    pub(crate) searched_back_to: Option<Timestamp>,
    /// Whether they are from the index.
    pub(crate) from_index: bool,
}

/// What one call has read so far.
#[derive(Default)]
struct Work {
    orders: usize,
    document_bytes: usize,
}

/// The orders that are in the index.
struct Covered {
    /// The versions of their workflows; `None` for any.
    pins: Option<BTreeSet<Pin>>,
    /// Whether there may be others.
    has_rest: bool,
}

/// The orders of a page that meet the conditions.
struct Fitting {
    ids: HashSet<OrderId>,
    /// Tasks of the page that were decided on: all, unless the call has read enough.
    decided: usize,
}

/// The decision about a task, without its order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fits,
    FitsNot,
    AskTheOrder,
}

impl Search {
    /// The search of these parameters: reason, step, since, until, correlation, field, value, workflow, service, late,
    /// approval, contradicted. `None` without any.
    ///
    /// # Errors
    /// [`Problem::Invalid`] for a wrong parameter, or one that searches a redacted value.
    pub(crate) fn read(
        given: [Option<String>; 12],
        redaction: &Redaction,
        submitter: Option<&Arc<str>>,
    ) -> Result<Option<Self>, Problem> {
        if given.iter().all(Option::is_none) && submitter.is_none() {
            return Ok(None);
        }
        let name = name(&given);
        let [reason, step, since, until, correlation, field, value, workflow, service, late, approval, contradicted] =
            given;
        let finder = finder(field, value, redaction)?;
        Ok(Some(Self {
            name,
            submitter: submitter.cloned(),
            reason: query::text("reason", reason, NAME_CHARS_MAX)?,
            step: query::text("step", step, NAME_CHARS_MAX)?,
            since: query::time("since", since)?,
            until: query::time("until", until)?,
            correlation: query::text("correlation", correlation, TEXT_CHARS_MAX)?,
            finder,
            workflow: self::workflow(workflow)?,
            service: query::text("service", service, NAME_CHARS_MAX)?,
            late: query::flag("late", late.as_deref())?,
            approval: query::flag("approval", approval.as_deref())?,
            contradicted: query::flag("contradicted", contradicted.as_deref())?,
        }))
    }

    /// A name that differs from those of other searches, without a colon.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn judge(&self, task: &Task) -> Verdict {
        if self.submitter.as_ref().is_some_and(|name| task.submitter() != Some(name)) {
            return Verdict::FitsNot;
        }
        let code = task.reason.as_ref().map(|reason| &*reason.code);
        if self.reason.as_deref().is_some_and(|wanted| code != Some(wanted)) {
            return Verdict::FitsNot;
        }
        if self.step.as_deref().is_some_and(|name| !is_held_by(task, name)) {
            return Verdict::FitsNot;
        }
        if self.workflow.as_ref().is_some_and(|workflow| !workflow.is_that_of(task)) {
            return Verdict::FitsNot;
        }
        if self.service.as_deref().is_some_and(|service| !services::waits_for(task, service)) {
            return Verdict::FitsNot;
        }
        if self.late.is_some_and(|late| late != task.late_since.is_some()) {
            return Verdict::FitsNot;
        }
        if self.approval.is_some_and(|wanted| wanted != task.asked().next().is_some()) {
            return Verdict::FitsNot;
        }
        if self.contradicted.is_some_and(|wanted| wanted != task.is_contradicted()) {
            return Verdict::FitsNot;
        }
        let has_time = self.since.is_some() || self.until.is_some();
        match task.submitted_at() {
            Some(at) if has_time && !self.is_in_time(at) => Verdict::FitsNot,
            None if has_time => Verdict::AskTheOrder,
            Some(_) | None if self.correlation.is_some() || self.finder.is_some() => Verdict::AskTheOrder,
            Some(_) | None => Verdict::Fits,
        }
    }

    fn fits(&self, order: &Order, redaction: &Redaction) -> bool {
        self.is_in_time(order.submitted_at)
            && self.correlation.as_deref().is_none_or(|wanted| order.correlation_id.as_deref() == Some(wanted))
            && self.finder.as_ref().is_none_or(|finder| finder.finds(&order.document, redaction))
    }

    fn is_in_time(&self, submitted_at: Timestamp) -> bool {
        self.since.is_none_or(|since| submitted_at >= since) && self.until.is_none_or(|until| submitted_at <= until)
    }

    /// Whether no time can meet both bounds.
    fn is_of_no_time(&self) -> bool {
        self.since.zip(self.until).is_some_and(|(since, until)| until < since)
    }

    /// Whether a task is so old that every later task of a list by submission time is too old.
    fn is_behind(&self, task: &Task) -> bool {
        let bound = self.since.map(|since| since.minus_ms(OUT_OF_PLACE_MS));
        bound.zip(task.submitted_at()).is_some_and(|(bound, at)| at < bound)
    }
}

/// Walks on through the list of a state, or of all orders, until a page is full, the list is over, or the call's work
/// is done.
///
/// # Errors
/// [`Problem::Invalid`] if `after` is not of this list; [`Problem::Unavailable`].
async fn walk(
    ports: &impl ApiPorts,
    redaction: &Redaction,
    state: Option<ProcessState>,
    (search, except): (&Search, Option<&Covered>),
    after: Option<String>,
    limit: usize,
) -> Result<Found, Problem> {
    let mut found = Found { next: after, ..Found::default() };
    let (mut read, mut work, mut all_behind) = (0, Work::default(), true);
    for _ in 0..PAGES_MAX {
        let after = found.next.take();
        let mut page = cursor::page(ports, state, after.as_deref(), PAGE_MAX.min(READ_MAX - read)).await?;
        read += page.read.max(page.tasks.len());
        let fitting = search.among(ports, redaction, (state, except), &page, &mut work).await?;
        let count = cut(&page, &fitting.ids, limit - found.tasks.len()).unwrap_or(fitting.decided).min(fitting.decided);
        if count < page.tasks.len() {
            // The next page must begin after the last order of this one, and only the store has that cursor.
            page = cursor::page(ports, state, after.as_deref(), count).await?;
        }
        all_behind &= page.tasks.iter().all(|task| search.is_behind(task));
        found.take(page, &fitting.ids);
        let is_full = found.tasks.len() >= limit;
        if is_full || found.next.is_none() || read >= READ_MAX || work.is_over() {
            break;
        }
    }
    // A whole call read only orders from long before: later calls would find older ones only.
    let is_over = read >= READ_MAX && found.examined > 0 && all_behind && is_by_submission(state);
    if is_over || search.is_of_no_time() {
        found.next = None;
    }
    Ok(found)
}

impl Search {
    /// The orders of a page that are in this state, not in the exception, and meet the conditions.
    async fn among(
        &self,
        ports: &impl ApiPorts,
        redaction: &Redaction,
        (state, except): (Option<ProcessState>, Option<&Covered>),
        page: &Page,
        work: &mut Work,
    ) -> Result<Fitting, Problem> {
        let is_meant = |task: &Task| {
            state.is_none_or(|state| task.process_state == state) && except.is_none_or(|except| !except.has(task))
        };
        let (mut ids, mut to_ask) = (HashSet::new(), Vec::new());
        for (place, task) in page.tasks.iter().enumerate().filter(|(_, task)| is_meant(task)) {
            match self.judge(task) {
                Verdict::Fits => _ = ids.insert(task.order_id),
                Verdict::FitsNot => {}
                Verdict::AskTheOrder => to_ask.push((place, task.order_id)),
            }
        }
        work.orders += to_ask.len();
        let reads =
            to_ask.into_iter().map(async |(place, id)| ports.store().order(id).await.map(|order| (place, order)));
        let mut orders = stream::iter(reads).buffered(ORDERS_AT_ONCE);
        while let Some((place, order)) = orders.try_next().await.map_err(Problem::unread)? {
            work.document_bytes += order.as_ref().map_or(0, |order| order.document.text().len());
            ids.extend(order.filter(|order| self.fits(order, redaction)).map(|order| order.order_id));
            if work.document_bytes >= DOCUMENTS_BYTES_MAX {
                return Ok(Fitting { ids, decided: place + 1 });
            }
        }
        Ok(Fitting { ids, decided: page.tasks.len() })
    }
}

impl Covered {
    fn has(&self, task: &Task) -> bool {
        self.pins.as_ref().is_none_or(|pins| pins.contains(&task.pin()))
    }
}

impl Work {
    /// Whether there is none left for another page.
    const fn is_over(&self) -> bool {
        self.orders + PAGE_MAX > ORDERS_MAX || self.document_bytes >= DOCUMENTS_BYTES_MAX
    }
}

impl Found {
    fn take(&mut self, page: Page, fitting: &HashSet<OrderId>) {
        self.examined += page.tasks.len();
        self.searched_back_to = page.tasks.last().map_or(self.searched_back_to, |task| task.submitted_at());
        self.tasks.extend(page.tasks.into_iter().filter(|task| fitting.contains(&task.order_id)));
        self.next = page.next;
    }
}

impl From<Page> for Found {
    fn from(Page { tasks, next, read: _ }: Page) -> Self {
        Self { tasks, next, ..Self::default() }
    }
}

/// The number of tasks of a page to take, if more of them match than there is room for.
fn cut(page: &Page, fitting: &HashSet<OrderId>, room: usize) -> Option<usize> {
    let mut places = page.tasks.iter().enumerate().filter(|(_, task)| fitting.contains(&task.order_id));
    let (last, _) = places.nth(room.checked_sub(1)?)?;
    places.next().map(|_| last + 1)
}

/// Whether an order waits for an operator because of this step.
fn is_held_by(task: &Task, name: &str) -> bool {
    let reason = task.reason.as_ref().and_then(|reason| reason.step.as_deref());
    let in_error = |(_, step): (usize, &domain::task::Step)| step.process_state == StepState::Error;
    reason == Some(name) || task.step(name).is_some_and(in_error)
}

/// Whether every store lists this state by submission time. Some stores list other states by due time.
const fn is_by_submission(state: Option<ProcessState>) -> bool {
    match state {
        None | Some(ProcessState::Processed | ProcessState::Compensated | ProcessState::Closed) => true,
        Some(ProcessState::Pending | ProcessState::Processing | ProcessState::Error | ProcessState::Compensating) => {
            false
        }
    }
}

impl Workflow {
    fn is_that_of(&self, task: &Task) -> bool {
        match self {
            Self::Named(name) => *task.workflow == **name,
            Self::OfVersion(pin) => *task.workflow == *pin.name && task.workflow_version == pin.version,
        }
    }

    fn is_that(&self, pin: &Pin) -> bool {
        match self {
            Self::Named(name) => *pin.name == **name,
            Self::OfVersion(own) => pin == own,
        }
    }
}

/// `shop`, or `shop/2` for one of its versions.
fn workflow(given: Option<String>) -> Result<Option<Workflow>, Problem> {
    let Some(text) = query::text("workflow", given, WORKFLOW_CHARS_MAX)? else { return Ok(None) };
    if !text.contains('/') {
        return Ok(Some(Workflow::Named(text)));
    }
    let pin = text.parse().map(Workflow::OfVersion);
    pin.map(Some).map_err(|_| Problem::parameter("workflow", "must be a name, or a name and a version such as shop/2"))
}

/// `field` alone: it is present. `value` alone: some member has it. Both: the field has it.
fn finder(field: Option<String>, value: Option<String>, redaction: &Redaction) -> Result<Option<Finder>, Problem> {
    let wrong = |fault: String| Problem::parameter("field", fault);
    for (name, text) in [("field", &field), ("value", &value)] {
        if text.as_ref().is_some_and(|text| text.chars().nth(FIND_CHARS_MAX).is_some()) {
            return Err(Problem::parameter(name, format!("must have at most {FIND_CHARS_MAX} characters")));
        }
    }
    let place = field.map(|field| Pointer::parse(&field)).transpose().map_err(|error| wrong(error.to_string()))?;
    if let Some(hidden) = place.as_ref().and_then(|place| place.hidden_by(redaction)) {
        return Err(wrong(format!("names {hidden}, which is redacted and cannot be searched for")));
    }
    Ok(match (place, value) {
        (None, None) => None,
        (Some(place), None) => Some(Finder::Has(place)),
        (Some(place), Some(value)) => Some(Finder::Equals(place, value)),
        (None, Some(value)) => Some(Finder::Anywhere(value)),
    })
}

fn name(given: &[Option<String>]) -> String {
    let mut hash = Sha256::new();
    // Parameters are added at the end. Without them, the cursors of a search are as they were before.
    let last = given.iter().rposition(Option::is_some).unwrap_or_default();
    for text in &given[..=last.max(FIRST_PARAMETERS - 1)] {
        // The length separates two neighbours from one long text.
        hash.update(text.as_ref().map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        hash.update(text.as_deref().unwrap_or_default());
    }
    let digest = hash.finalize();
    format!("?{}", hex::encode(&digest[..8]))
}

#[cfg(test)]
mod tests;
