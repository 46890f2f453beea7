//! The simulation, tried: worlds in which everything goes wrong hold, run again they are the same, and the auditor who says
//! so complains where it has to.

mod auditor;
mod histories;
mod rules;
mod worlds;
