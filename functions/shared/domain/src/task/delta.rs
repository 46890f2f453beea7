//! What changed between two versions of a task, as data. A store that appends it need not write a large task again.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Task, Transition, stored};

/// The change of a task from one version to a later one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delta {
    /// Of the task without its steps and its history.
    #[serde(rename = "T")]
    head: Members,
    /// Of each step that changed, by its index.
    #[serde(rename = "S", default, skip_serializing_if = "BTreeMap::is_empty")]
    steps: BTreeMap<usize, Members>,
    /// The lines that the history keeps, as ranges of their indexes.
    #[serde(rename = "K")]
    kept: Vec<[usize; 2]>,
    /// The lines that follow them.
    #[serde(rename = "H", with = "stored")]
    added: Vec<Transition>,
}

/// Members of an object that have another value, and those that are gone. A number stays digit for digit.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Members {
    #[serde(rename = "+", default, skip_serializing_if = "BTreeMap::is_empty")]
    set: BTreeMap<String, Box<RawValue>>,
    #[serde(rename = "-", default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
}

impl Delta {
    /// The change from `before` to `after`, which have the same steps.
    ///
    /// # Errors
    /// If a value has no form in JSON.
    pub fn between(before: &Task, after: &Task) -> serde_json::Result<Self> {
        let steps = before.steps.iter().zip(&after.steps).enumerate().filter(|(_, (from, to))| from != to);
        let steps = steps.map(|(index, (from, to))| Ok((index, Members::between(from, to)?)));
        let (kept, added) = lines(&before.history, &after.history);
        Ok(Self {
            head: Members::between(&before.head(), &after.head())?,
            steps: steps.collect::<serde_json::Result<_>>()?,
            kept,
            added,
        })
    }

    /// The task after these changes, one after the other.
    ///
    /// # Errors
    /// If one is of another task.
    pub fn apply(deltas: Vec<Self>, mut task: Task) -> serde_json::Result<Task> {
        let (mut head, mut steps) = (Members::default(), BTreeMap::<usize, Members>::new());
        let mut history = std::mem::take(&mut task.history);
        for delta in deltas {
            head.follow(delta.head);
            for (index, members) in delta.steps {
                steps.entry(index).or_default().follow(members);
            }
            let kept = |[from, to]: [usize; 2]| history.get(from..to).unwrap_or_default().iter().cloned();
            history = delta.kept.into_iter().flat_map(kept).chain(delta.added).collect();
        }
        let mut after = head.apply(&task.head())?;
        (after.history, after.steps) = (history, task.steps);
        for (index, members) in steps {
            let step = after.steps.get_mut(index).ok_or_else(|| serde::de::Error::custom("it has no such step"))?;
            *step = members.apply(step)?;
        }
        Ok(after)
    }
}

impl Members {
    fn between(before: &impl Serialize, after: &impl Serialize) -> serde_json::Result<Self> {
        let (mut before, mut set) = (members(before)?, members(after)?);
        set.retain(|name, value| before.remove(name).is_none_or(|before| before.get() != value.get()));
        Ok(Self { set, gone: before.into_keys().collect() })
    }

    /// This change, and then a later one.
    fn follow(&mut self, later: Self) {
        for name in later.gone {
            self.set.remove(&name);
            self.gone.push(name);
        }
        self.gone.retain(|name| !later.set.contains_key(name));
        self.set.extend(later.set);
    }

    fn apply<T: Serialize + DeserializeOwned>(self, before: &T) -> serde_json::Result<T> {
        let mut members = members(before)?;
        members.retain(|name, _| !self.gone.contains(name));
        members.extend(self.set);
        serde_json::from_str(&serde_json::to_string(&members)?)
    }
}

fn members(value: &impl Serialize) -> serde_json::Result<BTreeMap<String, Box<RawValue>>> {
    serde_json::from_str(&serde_json::to_string(value)?)
}

/// The lines of the history before that are left, and the lines after them. The first lines that are left are those that
/// were there, since a history loses lines and gets new ones at its end.
fn lines(before: &[Transition], after: &[Transition]) -> (Vec<[usize; 2]>, Vec<Transition>) {
    let (mut kept, mut next) = (Vec::<[usize; 2]>::new(), 0);
    let mut count = 0;
    for line in after {
        let Some(place) = before[next..].iter().position(|other| other == line).map(|found| next + found) else {
            break;
        };
        match kept.last_mut() {
            Some([_, to]) if *to == place => *to += 1,
            Some(_) | None => kept.push([place, place + 1]),
        }
        (next, count) = (place + 1, count + 1);
    }
    (kept, after[count..].to_vec())
}

impl Task {
    /// The task without its steps and its history.
    fn head(&self) -> Self {
        Self {
            order_id: self.order_id,
            version: self.version,
            nonce: self.nonce,
            workflow: self.workflow.clone(),
            workflow_version: self.workflow_version,
            process_state: self.process_state,
            reason: self.reason.clone(),
            steps: Vec::new(),
            watch: self.watch,
            watch_at: self.watch_at,
            parent: self.parent.clone(),
            complete_by: self.complete_by,
            late_since: self.late_since,
            expires_at: self.expires_at,
            erased_at: self.erased_at,
            priority: self.priority,
            paused: self.paused.clone(),
            resumed: self.resumed,
            taken: self.taken.clone(),
            taken_version: self.taken_version,
            notify: self.notify,
            unsent: self.unsent.clone(),
            jobs: self.jobs.clone(),
            history: Vec::new(),
        }
    }
}
