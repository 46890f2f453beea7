//! Running the check and telling what came of it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use stateright::{Checker as _, HasDiscoveries, Model as _, Path};

use super::action::Action;
use super::protocol::Protocol;
use super::state::State;

/// What a check came to.
#[derive(Debug)]
pub struct Outcome {
    /// Transitions looked at.
    pub visited: usize,
    /// Different states.
    pub unique: usize,
    /// Actions on the longest of the shortest ways to a state.
    pub depth: usize,
    /// Different questions that the state machine was asked.
    pub questions: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether every state within the bounds was looked at.
    pub is_exhaustive: bool,
    /// Every property by its name, and what speaks against it.
    pub properties: Vec<(&'static str, Option<String>)>,
}

impl Outcome {
    /// Whether every property holds, in all states.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.is_exhaustive && self.properties.iter().all(|(_, problem)| problem.is_none())
    }
}

impl Outcome {
    /// Whether a property whose name begins so was found not to hold.
    #[must_use]
    pub fn breaks(&self, beginning: &str) -> bool {
        self.properties.iter().any(|(name, problem)| name.starts_with(beginning) && problem.is_some())
    }
}

/// Looks at every state within the bounds, on so many threads, for so long at most. Stops at the first state that breaks
/// an invariant.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "says how long it took")]
pub fn check(protocol: Protocol, threads: usize, time_max: Option<Duration>) -> Outcome {
    let started = Instant::now();
    let properties = protocol.properties();
    let mut checker = protocol.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    if let Some(time_max) = time_max {
        checker = checker.timeout(time_max);
    }
    let checker = checker.spawn_bfs().join();
    let took = started.elapsed();
    let mut discoveries = checker.discoveries();
    let in_time = time_max.is_none_or(|time_max| took < time_max);
    let mut is_broken = false;
    let properties: Vec<_> = properties
        .into_iter()
        .map(|property| {
            let found = discoveries.remove(property.name);
            let problem = match (property.expectation.discovery_is_failure(), found) {
                (true, Some(path)) => {
                    is_broken = true;
                    Some(story(path))
                }
                (false, None) => Some("never came up".to_owned()),
                (true, None) | (false, Some(_)) => None,
            };
            (property.name, problem)
        })
        .collect();
    Outcome {
        visited: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        questions: checker.model().questions(),
        took,
        is_exhaustive: in_time && !is_broken,
        properties,
    }
}

/// How it came to a state: one action a line, and the state at the end.
fn story(path: Path<State, Action>) -> String {
    let mut text = String::new();
    let last = *path.last_state();
    for (number, action) in path.into_actions().into_iter().enumerate() {
        let _ = writeln!(text, "      {:>2}. {action:?}", number + 1);
    }
    let _ = writeln!(text, "      and then: {:?}", last.breach);
    for order in last.orders {
        let _ = writeln!(text, "      {order:?}");
    }
    text
}

/// The outcome for people.
#[must_use]
pub fn text(name: &str, outcome: &Outcome) -> String {
    let Outcome { visited, unique, depth, questions, took, is_exhaustive, properties } = outcome;
    let mut text = format!("{name}\n");
    let seconds = took.as_secs_f64();
    let extent = if *is_exhaustive { "all of them" } else { "not all of them" };
    let _ = writeln!(text, "  states visited {visited}, unique {unique} ({extent}), depth {depth}, {seconds:.1} s");
    let _ = writeln!(text, "  different questions to the state machine {questions}");
    for (name, problem) in properties {
        match problem {
            None => {
                let _ = writeln!(text, "  ok      {name}");
            }
            Some(problem) => {
                let _ = writeln!(text, "  BROKEN  {name}\n{problem}");
            }
        }
    }
    text
}
