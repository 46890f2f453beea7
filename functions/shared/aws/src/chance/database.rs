//! A DynamoDB in memory, with our tables in it.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::network::{Chance, Cloud};
use crate::dynamo::{Attribute, Kind, TABLES, Tables};
use crate::testing::Said;

/// A DynamoDB.
pub(super) struct Dynamo(Database);

/// The names of its tables.
pub(super) fn tables() -> Tables {
    Tables {
        orders: "ORDERS_TABLE".into(),
        tasks: "TASKS_TABLE".into(),
        leases: "LEASES_TABLE".into(),
        services: "SERVICES_TABLE".into(),
        memos: "MEMOS_TABLE".into(),
        jobs: "JOBS_TABLE".into(),
        definitions: "DEFINITIONS_TABLE".into(),
        dead_letters: "DEAD_LETTERS_TABLE".into(),
    }
}

impl Dynamo {
    /// A DynamoDB with empty tables.
    pub(super) fn new() -> Self {
        let database = Database::memory().unwrap();
        for table in &TABLES {
            let mut keys: Vec<Attribute> = [table.hash].into_iter().chain(table.range).collect();
            let schema = schema(&keys);
            let indexes = table.indexes.iter().map(|index| {
                keys.extend([index.hash, index.range]);
                let schema = self::schema(&[index.hash, index.range]);
                json!({ "IndexName": index.name, "KeySchema": schema, "Projection": { "ProjectionType": "KEYS_ONLY" } })
            });
            let indexes: Vec<Value> = indexes.collect();
            keys.sort_by_key(|key| key.name);
            keys.dedup();
            let attributes = keys.iter().map(|key| {
                let kind = if key.kind == Kind::Text { "S" } else { "N" };
                json!({ "AttributeName": key.name, "AttributeType": kind })
            });
            let attributes: Vec<Value> = attributes.collect();
            let mut request = json!({
                "TableName": table.variable, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema,
                "AttributeDefinitions": attributes,
            });
            if !indexes.is_empty() {
                request["GlobalSecondaryIndexes"] = json!(indexes);
            }
            run(&request, |request| database.create_table(request)).unwrap();
        }
        Self(database)
    }
}

fn schema(keys: &[Attribute]) -> Vec<Value> {
    let kinds = ["HASH", "RANGE"].into_iter();
    keys.iter().zip(kinds).map(|(key, kind)| json!({ "AttributeName": key.name, "KeyType": kind })).collect()
}

impl Cloud for Dynamo {
    fn serve(&mut self, operation: &str, body: &Value, _: &Chance) -> Said {
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
        answer.unwrap_or_else(|error| (error.status_code(), serde_json::from_str(&error.to_json()).unwrap()))
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &Value,
    serve: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<Said, DynoxideError> {
    let answer = serve(serde_json::from_value(body.clone()).unwrap())?;
    Ok((200, serde_json::to_value(answer).unwrap()))
}
