//! Checks of `template.yaml` beyond those of linters: the numbers and permissions that the code relies on.

pub(crate) mod cloudformation;
mod events;
mod functions;
mod monitoring;
mod queues;
mod roles;
mod routes;
mod tables;
