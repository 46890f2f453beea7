//! The rusqlite of today, for the tests' DynamoDB.

pub use current::*;
