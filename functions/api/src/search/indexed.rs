//! The search in the store's index, and after it through the orders that are not in it (rule 28).

use domain::definition::Pin;
use domain::index::Term;
use domain::ports::Store;
use domain::search::Finder;
use domain::task::ProcessState;

use super::{Covered, Found, Search, Work, walk};
use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::{cursor, workflows};

/// The start of a cursor in the index.
const IN_INDEX: &str = "index:";
/// The start of a cursor in the list, after the index: only orders that are not in the index are looked at. A cursor with
/// neither start is of the list, in a search without an index.
const IN_REST: &str = "rest:";

/// A page: of the index, then of the rest of the list.
///
/// # Errors
/// As [`walk`].
pub(crate) async fn page(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    state: Option<ProcessState>,
    search: &Search,
    after: Option<String>,
    limit: usize,
) -> Result<Found, Problem> {
    let redaction = config.redaction();
    let is_part = |after: &String| after.starts_with(IN_INDEX) || after.starts_with(IN_REST);
    let is_in_list = after.as_ref().is_some_and(|after| !is_part(after));
    let Some((term, covered)) = search.indexed(ports, config).await?.filter(|_| !is_in_list) else {
        return walk(ports, redaction, state, (search, None), after, limit).await;
    };
    if let Some(after) = after.as_deref().and_then(|after| after.strip_prefix(IN_REST)) {
        let after = (!after.is_empty()).then(|| after.to_owned());
        let mut found = walk(ports, redaction, state, (search, Some(&covered)), after, limit).await?;
        found.next = found.next.map(|next| format!("{IN_REST}{next}"));
        return Ok(found);
    }
    let place = after.as_deref().and_then(|after| after.strip_prefix(IN_INDEX));
    let page = ports.store().found(&term, place, limit).await.map_err(cursor::problem)?;
    // The store has no index.
    let Some(mut page) = page else { return walk(ports, redaction, state, (search, None), None, limit).await };
    let fitting = search.among(ports, redaction, (state, None), &page, &mut Work::default()).await?;
    if fitting.decided < page.tasks.len() {
        // Only the store has the cursor that the next page begins at.
        let shorter = ports.store().found(&term, place, fitting.decided).await.map_err(cursor::problem)?;
        page = shorter.unwrap_or_default();
    }
    page.tasks.retain(|task| state.is_none_or(|state| task.process_state == state));
    let mut found = Found { from_index: true, ..Found::default() };
    found.take(page, &fitting.ids);
    // Orders of any time may be in the rest.
    found.searched_back_to = None;
    found.next = match found.next {
        Some(next) => Some(format!("{IN_INDEX}{next}")),
        None => covered.has_rest.then(|| IN_REST.to_owned()),
    };
    found.next = found.next.filter(|_| !search.is_of_no_time());
    Ok(found)
}

impl Search {
    /// What the index has of this search; `None` if it cannot have anything.
    async fn indexed(&self, ports: &impl ApiPorts, config: &ApiConfig) -> Result<Option<(Term, Covered)>, Problem> {
        if let Some(correlation) = &self.correlation {
            return Ok(Some((Term::correlation(correlation), Covered { pins: None, has_rest: false })));
        }
        let Some(Finder::Equals(place, text)) = &self.finder else { return Ok(None) };
        let is_meant = |pin: &Pin| self.workflow.as_ref().is_none_or(|workflow| workflow.is_that(pin));
        let (pins, has_rest) = workflows::indexed(ports, config, place, is_meant).await?;
        let is_indexed = !pins.is_empty();
        Ok(is_indexed.then(|| (Term::member(place, text), Covered { pins: Some(pins), has_rest })))
    }
}
