//! The state of a step, in a word or two.

use domain::task::{Direction, StepState};
use wire::{OpenEnum, Step};

use local::terminal::plain;

/// The words for a step. An unknown state of a newer server is shown as it is, but for what it could do to a terminal.
pub(crate) fn words(step: &Step<'_>) -> String {
    match (&step.direction, &step.process_state) {
        (OpenEnum::Known(direction), OpenEnum::Known(state)) => known(*direction, *state, step.attempt),
        (_, OpenEnum::Unknown(word)) | (OpenEnum::Unknown(word), _) => plain(word),
    }
}

fn known(direction: Direction, state: StepState, attempt: u32) -> String {
    match (direction, state) {
        (_, StepState::Skipped) => "skipped".to_owned(),
        (_, StepState::Pending) if attempt == 0 => "-".to_owned(),
        (Direction::Forward, StepState::Pending) => "again soon".to_owned(),
        (Direction::Forward, StepState::Processing) if attempt == 1 => "under way".to_owned(),
        (Direction::Forward, StepState::Processing) => format!("attempt {attempt}"),
        (Direction::Forward, StepState::Processed) => "done".to_owned(),
        (Direction::Forward, StepState::Error) => "failed".to_owned(),
        (Direction::Undo, StepState::Pending) => "to undo".to_owned(),
        (Direction::Undo, StepState::Processing) => "undoing".to_owned(),
        (Direction::Undo, StepState::Processed) => "undone".to_owned(),
        (Direction::Undo, StepState::Error) => "not undone".to_owned(),
    }
}
