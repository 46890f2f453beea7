//! How long the orders of a workflow are kept after their end (rule 44).

use crate::located::Table;
use crate::state::ProcessState;

/// The time for which an order is kept after its end, in milliseconds, by the state in which it ended. `None`: for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retain {
    /// `Processed`.
    pub processed_ms: Option<u64>,
    /// `Compensated`.
    pub compensated_ms: Option<u64>,
    /// `Closed`.
    pub closed_ms: Option<u64>,
}

impl Retain {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let [processed_ms, compensated_ms, closed_ms] =
            ["processed", "compensated", "closed"].map(|key| table.time_ms(key));
        Self { processed_ms, compensated_ms, closed_ms }
    }

    /// The shortest time for which any ended order is kept.
    #[must_use]
    pub fn shortest_ms(self) -> Option<u64> {
        let Self { processed_ms, compensated_ms, closed_ms } = self;
        [processed_ms, compensated_ms, closed_ms].into_iter().flatten().min()
    }

    /// The time for an order that ended in this state. An order that has not ended is kept.
    #[must_use]
    pub const fn after(self, state: ProcessState) -> Option<u64> {
        match state {
            ProcessState::Processed => self.processed_ms,
            ProcessState::Compensated => self.compensated_ms,
            ProcessState::Closed => self.closed_ms,
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating | ProcessState::Error => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Workflow;

    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

    fn parse(retain: &str) -> Result<Workflow, String> {
        let text = format!(
            "name = \"w\"\nversion = 1\n{retain}\n[[step]]\nname = \"a\"\nagent = \"a\"\ncomplete_within = \"10s\"\n"
        );
        Workflow::parse(&text, &["a"]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn rule_44_each_final_state_has_a_time_of_its_own_and_is_kept_for_ever_without_one() {
        assert_eq!(parse("").unwrap().retain, Retain::default());
        let retain = parse("[retain]\nprocessed = \"90d\"\nclosed = \"10y\"").unwrap().retain;
        assert_eq!(retain.after(ProcessState::Processed), Some(90 * DAY_MS));
        assert!(retain.after(ProcessState::Closed).is_some_and(|ms| ms > 3_600 * DAY_MS));
        for state in [ProcessState::Compensated, ProcessState::Error, ProcessState::Processing] {
            assert_eq!(retain.after(state), None);
        }
        for (wrong, words) in [
            ("[retain]\nprocessed = \"23h\"", "must be a time from \"1d\""),
            ("[retain]\nprocessed = \"101y\"", "must be a time from"),
            ("[retain]\nerror = \"90d\"", "error"),
            ("retain = \"90d\"", "retain must be a table"),
        ] {
            let faults = parse(wrong).unwrap_err();
            assert!(faults.contains(words), "{wrong}: {faults}");
        }
    }
}
