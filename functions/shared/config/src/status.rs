//! The meaning of the statuses of a service. `functions/shared/agent/README.md` has the table.

use std::collections::BTreeMap;

use domain::template::BodyCondition;
use http::StatusCode;

/// The meaning of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The service did the work.
    Done,
    /// The service is at work on it: ask again.
    UnderWay,
    /// An earlier call with the same key is under way, if there can be one; else the step is rejected.
    Conflict,
    /// The service fails: ask again.
    Failing,
    /// No answer of the service: ask again, and the effect is unknown.
    Unknown,
    /// A fault of the configuration: ask again.
    Misconfigured,
    /// The same, unless the body has a JSON `code`. With it, the step is rejected.
    MisconfiguredWithoutCode,
    /// The step is rejected for good.
    No,
}

impl Meaning {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::UnderWay,
        Self::Conflict,
        Self::Failing,
        Self::Unknown,
        Self::Misconfigured,
        Self::MisconfiguredWithoutCode,
        Self::No,
    ];

    /// Its word in the settings.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::UnderWay => "under-way",
            Self::Conflict => "conflict",
            Self::Failing => "failing",
            Self::Unknown => "unknown",
            Self::Misconfigured => "misconfigured",
            Self::MisconfiguredWithoutCode => "misconfigured-without-code",
            Self::No => "no",
        }
    }

    /// The meaning of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|meaning| meaning.word() == word)
    }
}

/// The answers of one operation of one service that have another meaning than usual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusTable {
    /// By status.
    pub statuses: BTreeMap<u16, Meaning>,
    /// By status and body. The first condition that is met decides, before the status.
    pub conditions: Vec<Condition>,
}

impl StatusTable {
    /// The meaning of a status. Where 200 means that the work is under way, so does every success without a meaning of its
    /// own.
    #[must_use]
    pub fn meaning(&self, status: StatusCode) -> Meaning {
        let of = |status: StatusCode| self.statuses.get(&status.as_u16()).copied();
        of(status).unwrap_or_else(|| match (usual(status), of(StatusCode::OK)) {
            (Meaning::Done, Some(Meaning::UnderWay)) => Meaning::UnderWay,
            (usual, _) => usual,
        })
    }

    /// Whether a condition looks at the body of an answer with this status.
    #[must_use]
    pub fn depends_on_body(&self, status: StatusCode) -> bool {
        self.conditions.iter().any(|condition| condition.status == status.as_u16())
    }
}

fn usual(status: StatusCode) -> Meaning {
    match status.as_u16() {
        202 => Meaning::UnderWay,
        200..=299 => Meaning::Done,
        409 | 423 => Meaning::Conflict,
        // Of these redirects the new address is for good: the one in the settings is wrong.
        301 | 308 | 401 | 403 | 407 => Meaning::Misconfigured,
        404 | 405 | 410 | 421 => Meaning::MisconfiguredWithoutCode,
        // A gateway may say so while the service behind it is still at work.
        408 | 502 | 504 => Meaning::Unknown,
        // A redirect is not followed, but it is no answer about the order either: a maintenance page must not
        // compensate it.
        425 | 429 | 300..=399 | 500..=599 => Meaning::Failing,
        400..=499 => Meaning::No,
        // 101 was not asked for, and HTTP has no class from 600 on.
        _ => Meaning::Failing,
    }
}

/// A meaning for the answers with one status of whose body something holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The status.
    pub status: u16,
    /// What must hold of the body.
    pub when: BodyCondition,
    /// The meaning.
    pub means: Meaning,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_17_where_200_is_under_way_so_is_every_success_without_a_meaning_of_its_own() {
        let meanings = |statuses: &[(u16, Meaning)]| {
            let table = StatusTable { statuses: statuses.iter().copied().collect(), conditions: Vec::new() };
            [200, 201, 202, 204, 404].map(|status| table.meaning(StatusCode::from_u16(status).unwrap()).word())
        };
        let (done, way, open) = ("done", "under-way", "misconfigured-without-code");
        assert_eq!(meanings(&[]), [done, done, way, done, open]);
        assert_eq!(meanings(&[(200, Meaning::UnderWay)]), [way, way, way, way, open]);
        let own = [(200, Meaning::UnderWay), (204, Meaning::Done)];
        assert_eq!(meanings(&own), [way, way, way, done, open]);
        assert_eq!(meanings(&[(200, Meaning::No)]), ["no", done, way, done, open]);
    }
}
