//! A DynamoDB in memory.

use std::fmt;

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Said;

/// A DynamoDB.
pub struct Dynamo(Database);

impl Dynamo {
    /// A DynamoDB with empty tables, made by these requests.
    ///
    /// # Panics
    /// If a request is wrong.
    #[must_use]
    pub fn new(tables: impl IntoIterator<Item = Value>) -> Self {
        let database = Database::memory().unwrap_or_else(|error| panic!("a database in memory: {error:?}"));
        for table in tables {
            let made = run(&table, |request| database.create_table(request));
            made.unwrap_or_else(|error| panic!("{table} makes a table: {error:?}"));
        }
        Self(database)
    }

    /// Carries out a request.
    ///
    /// # Panics
    /// If the operation is none that an adapter here uses.
    #[must_use]
    pub fn serve(&self, operation: &str, body: &Value) -> Said {
        let database = &self.0;
        let answer = match operation {
            "GetItem" => run(body, |request| database.get_item(request)),
            "PutItem" => run(body, |request| database.put_item(request)),
            "UpdateItem" => run(body, |request| database.update_item(request)),
            "DeleteItem" => run(body, |request| database.delete_item(request)),
            "Query" => run(body, |request| database.query(request)),
            "Scan" => run(body, |request| database.scan(request)),
            "BatchGetItem" => run(body, |request| database.batch_get_item(request)),
            "TransactWriteItems" => run(body, |request| database.transact_write_items(request)),
            operation => panic!("{operation} is not served"),
        };
        answer.unwrap_or_else(|error| (error.status_code(), serde_json::from_str(&error.to_json()).unwrap_or_default()))
    }
}

impl fmt::Debug for Dynamo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dynamo").finish_non_exhaustive()
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &Value,
    serve: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<Said, DynoxideError> {
    let request = serde_json::from_value(body.clone()).unwrap_or_else(|error| panic!("{body}: {error}"));
    let answer = serve(request)?;
    Ok((200, serde_json::to_value(answer).unwrap_or_default()))
}
