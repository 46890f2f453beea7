//! What the API answers, as the commands read it: what they show and no more, and tolerant of what is new or missing, so
//! that a command and a deployment of another version get along.

pub(crate) mod job;
pub(crate) mod task;
pub(crate) mod whole;
