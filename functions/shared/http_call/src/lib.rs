//! The HTTP call of a step: method, URL, headers and body, of a request and the settings of its agent.
//!
//! An agent makes its calls with [`request`]. [`Trial`] shows what the steps of an order would send, by the same code:
//! for `stepwarden try` and the API.
//!
//! What must never be here: the sending of a call, the values of secrets, and the meaning of answers.

mod form;
mod request;
mod shown;
mod trial;

pub use form::escaped;
pub use request::{Unsendable, remote, request};
pub use shown::{Shown, call_of};
pub use trial::{Trial, unknown_base};
