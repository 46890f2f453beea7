//! The rules of the protocol across the handlers: the real ones, on the ports in memory, with faults between
//! their effects. What a rule means for one task alone is tested with the state machine in `domain`.

mod agents;
mod bounds;
mod commit_then_send;
mod compensation;
mod erase;
mod notices;
mod operator;
mod replies;
mod supervision;
mod trust;
