//! What commands show to people: tables and lines. Texts from elsewhere are shown without what they could do to the
//! terminal.

mod alone;
pub(crate) mod drawing;
pub(crate) mod job;
mod lines;
pub(crate) mod order;
mod step;
pub(crate) mod table;
pub(crate) mod time;
