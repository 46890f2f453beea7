//! Where a step is, in a word or two.

use domain::task::{Direction, StepState};

/// The words for a step in this direction and state, in its so-manyth attempt.
#[must_use]
pub fn words(direction: Direction, state: StepState, attempt: u32) -> String {
    match (direction, state) {
        (_, StepState::Pending) if attempt == 0 => "-".to_owned(),
        (Direction::Forward, StepState::Pending) => "again soon".to_owned(),
        (Direction::Forward, StepState::Processing) if attempt == 1 => "under way".to_owned(),
        (Direction::Forward, StepState::Processing) => format!("try {attempt}"),
        (Direction::Forward, StepState::Processed) => "done".to_owned(),
        (Direction::Forward, StepState::Error) => "failed".to_owned(),
        (Direction::Undo, StepState::Pending) => "to undo".to_owned(),
        (Direction::Undo, StepState::Processing) => "undoing".to_owned(),
        (Direction::Undo, StepState::Processed) => "undone".to_owned(),
        (Direction::Undo, StepState::Error) => "not undone".to_owned(),
    }
}
