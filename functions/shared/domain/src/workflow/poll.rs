//! How the state of a call is asked that a service took on (rule 36).

use serde::{Deserialize, Serialize};

use super::call::Method;
use super::mapping::Mapping;
use crate::located::{Reader, Table};
use crate::template::{BodyCondition, PollPath, Template};

/// How the state of a call is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// Where.
    pub path: PollPath,
    /// How often, in milliseconds.
    pub every_ms: u64,
    /// What the answers mean. Without any, a 200 in which `keep` finds its values is done.
    pub answers: Vec<PollAnswer>,
    /// Its places of the order.
    pub(super) mapping: Mapping,
}

/// What some answers mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct PollAnswer {
    /// Their status.
    #[cfg_attr(feature = "contract", schemars(range(min = 200, max = 499)))]
    pub status: u16,
    /// What holds of their body: an expression whose pointers begin there.
    pub when: BodyCondition,
    /// What they mean.
    pub means: PollMeaning,
}

/// The meaning of an answer about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum PollMeaning {
    /// The step is done.
    Done,
    /// It is rejected for good.
    No,
}

impl PollMeaning {
    /// Its word in a workflow's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::No => "no",
        }
    }
}

impl Poll {
    /// Reads the table of a step.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        step: &Table<'_>,
        method: Method,
        keep: Option<&Template>,
        within_ms: Option<u64>,
    ) -> Option<Self> {
        // An approval has none, which is said already.
        let entry = step.get("poll").filter(|_| step.get("agent").is_some())?;
        if method == Method::Get {
            reader.blame_value(&entry, "has no use for a GET: its answer is the state. Leave one of them out");
            return None;
        }
        let table = step.table("poll");
        let every_ms = table.time_ms("every").unwrap_or_default();
        match within_ms {
            None => reader.blame_value(&entry, "needs `wait_within`: how long the result is awaited"),
            Some(within_ms) if within_ms < every_ms => {
                let every = table.get("every");
                let fault = format!("{}.every (1m if absent) must not be longer than wait_within", entry.path);
                reader.blame(every.map_or(entry.at, |every| every.at), fault);
            }
            Some(_) => {}
        }
        let tells_result = keep.map_or(step.get("keep").is_some(), Template::needs_members);
        if table.get("answers").is_none() && !tells_result {
            let advice = "answers = [{ status = 200, when = '/status == \"paid\"', means = \"done\" }]";
            let why =
                "without them, or a keep that finds its values in the result alone, each answer would be the result";
            reader.blame(entry.at, format!("{} needs answers, such as {advice}: {why}", entry.path));
        }
        let path = PollPath::parse(table.exact_text("path")?).ok()?;
        let mut answer = |table: Table<'_>| {
            let status = table.number("status")?;
            if let Some(entry) = table.get("status").filter(|_| (300..400).contains(&status)) {
                reader.blame_value(&entry, "must be 200 to 299 or 400 to 499: redirects are not followed");
            }
            Some(PollAnswer {
                status: status.try_into().ok()?,
                when: BodyCondition::parse(table.text("when")?).ok()?,
                means: table.word("means", &[PollMeaning::Done, PollMeaning::No])?,
            })
        };
        let answers = table.elements("answers").into_iter().filter_map(|entry| answer(entry.table()?)).collect();
        let mapping = Mapping { path: Some(path.of_order()), ..Mapping::default() };
        Some(Self { path, every_ms, answers, mapping })
    }
}
