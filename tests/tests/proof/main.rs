//! The proof, in a reduced run: the rules under every fault, the simulation, the model, the stored inputs of the
//! fuzzers.
//! `tests/README.md` says what each part holds and how it is run at length.

mod bugs;
mod children;
mod every_node;
mod faults;
mod fuzzing;
mod model;
mod night;
mod protocol;
mod schedules;
mod simulation;
mod storm;
mod under_way;
