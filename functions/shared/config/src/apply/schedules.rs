//! The schedules of an application: since when each counts, and what changes about them (rule 48).

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::definition::Deployment;
use domain::schedule::Schedule;
use domain::time::Timestamp;

/// Since when each schedule counts, and the changes in words. One that is new, or gets other times, counts from now on; what
/// it missed before is of the past.
pub(super) fn schedules(
    before: Option<&Deployment>,
    after: &[Schedule],
    now: Timestamp,
) -> (BTreeMap<Arc<str>, Timestamp>, Vec<String>) {
    let earlier = before.map(|before| Schedule::all(&before.settings)).unwrap_or_default();
    let (mut since, mut changes) = (BTreeMap::new(), Vec::new());
    for schedule in after {
        let Schedule { name, timing, .. } = schedule;
        let was = earlier.iter().find(|was| was.name == *name);
        let kept = was.filter(|was| timing.goes_on(&was.timing, now)).and(before);
        let at = kept.map_or(now, |before| before.schedules.get(name).copied().unwrap_or(before.applied_at));
        // A clock that was ahead may have applied it (rule 23).
        since.insert(name.clone(), at.min(now));
        let due = timing.next(now).map_or_else(|| "never due again".to_owned(), |at| format!("next due {at}"));
        match was {
            None => changes.push(format!("schedule {name}: new, {due}")),
            Some(was) if was.timing != *timing => changes.push(format!("schedule {name}: other times, {due}")),
            Some(was) if !is_same(was, schedule) => changes.push(format!("schedule {name}: changed")),
            Some(_) => {}
        }
    }
    let gone = earlier.iter().filter(|was| !since.contains_key(&was.name));
    changes.extend(gone.map(|was| format!("schedule {}: removed", was.name)));
    (since, changes)
}

/// Whether they differ by their places in the text alone.
fn is_same(one: &Schedule, other: &Schedule) -> bool {
    let Schedule { order_at, workflow_at, .. } = *one;
    *one == Schedule { order_at, workflow_at, ..other.clone() }
}
