//! What is no code and must still be true: contracts, documents, the template.

mod contracts;
mod documents;
mod layout;
mod template;
