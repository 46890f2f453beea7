//! Checks of everything except code: contracts, documents, the template.

mod circles;
mod contracts;
mod documents;
mod keys;
mod layout;
mod order_schemas;
mod template;
