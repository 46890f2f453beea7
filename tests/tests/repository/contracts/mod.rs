//! The contracts of messages in `infra/contracts`. Written messages are valid by the schemas, and the code reads all
//! valid messages. Old messages stay readable. AsyncAPI describes the queues as the template does.

#![allow(clippy::disallowed_methods, reason = "a test reads files")]

mod asyncapi;
mod bounds;
mod drawn;
mod golden;
mod read;
mod schemas;
mod spoilt;
mod world;
