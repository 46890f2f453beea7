//! The contracts of messages in `infra/contracts`: what the code writes is as the schemas say, what the schemas allow is
//! read, what was ever written stays readable, and AsyncAPI says of the queues what the template does.

#![allow(clippy::disallowed_methods, reason = "a test reads files")]

mod asyncapi;
mod bounds;
mod drawn;
mod golden;
mod read;
mod schemas;
mod spoilt;
mod world;
