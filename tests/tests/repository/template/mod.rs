//! What must hold of `template.yaml` beyond what linters check: each number and right in it that the code relies on.

pub(crate) mod cloudformation;
mod events;
mod functions;
mod monitoring;
mod queues;
mod roles;
mod routes;
mod tables;
