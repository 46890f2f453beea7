//! Whether a success is one: the step must be able to keep what it needs of it.

use domain::json::Json;
use domain::output::unusable;
use domain::task::Direction;
use domain::template::Template;

use crate::service::Answer;

impl Answer {
    /// The answer of a service that says it is done. A success of which the step cannot keep what it needs counts as no
    /// answer: its body may be lost.
    #[must_use]
    pub fn done(output: Json, keep: Option<&Template>, direction: Direction) -> Self {
        match unusable(&output, keep, direction) {
            Some(problem) => Self::unknown(format!("the answer is a success, but {problem}")),
            None => Self::Done(output),
        }
    }
}
