//! Tests of the simulation. Worlds with every fault keep the invariants, a repeated world has the same result, and the
//! auditor reports broken invariants.

mod asked;
mod auditor;
mod aws;
mod engine;
mod histories;
mod lines;
mod rules;
mod under_way;
mod versions;
mod wanted;
mod ways;
mod worlds;
