//! A DynamoDB in memory.

use std::fmt;

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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
            "DescribeTable" => run(body, |request| database.describe_table(request)),
            "TransactWriteItems" => run(body, |request| database.transact_write_items(request)),
            operation => panic!("{operation} is not served"),
        };
        answer.unwrap_or_else(|error| (error.status_code(), serde_json::from_str(&error.to_json()).unwrap_or_default()))
    }
}

impl Dynamo {
    /// The changes of a table with a stream, oldest first, after the change of this sequence number. They have the form
    /// in which a Lambda function is given them.
    ///
    /// # Panics
    /// If the table has no stream.
    #[must_use]
    pub fn changes(&self, table: &str, after: Option<&str>) -> Vec<Value> {
        let (database, streams) = (&self.0, json!({ "TableName": table }));
        let asked = |answer: Result<Said, DynoxideError>| answer.unwrap_or_else(|error| panic!("{table}: {error:?}")).1;
        let stream = asked(run(&streams, |request| database.list_streams(request)))["Streams"][0]["StreamArn"].take();
        let described = asked(run(&json!({ "StreamArn": stream }), |request| database.describe_stream(request)));
        let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
        let kind = if after.is_some() { "AFTER_SEQUENCE_NUMBER" } else { "TRIM_HORIZON" };
        let mut from = json!({ "StreamArn": stream, "ShardId": shard, "ShardIteratorType": kind });
        if let Some(after) = after {
            from["SequenceNumber"] = after.into();
        }
        let mut iterator = asked(run(&from, |request| database.get_shard_iterator(request)))["ShardIterator"].take();
        let mut changes = Vec::new();
        loop {
            let page = json!({ "ShardIterator": iterator });
            let mut page = asked(run(&page, |request| database.get_records(request)));
            let Some(records) = page["Records"].as_array_mut().filter(|records| !records.is_empty()) else {
                return changes;
            };
            changes.append(records);
            iterator = page["NextShardIterator"].take();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_an_index_has_the_type_that_the_table_declares() {
        let dynamo = Dynamo::new([json!({
            "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "K", "AttributeType": "S"}, {"AttributeName": "DueAt", "AttributeType": "N"}],
            "KeySchema": [{"AttributeName": "K", "KeyType": "HASH"}],
            "GlobalSecondaryIndexes": [{
                "IndexName": "index", "KeySchema": [{"AttributeName": "DueAt", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }],
        })]);
        for (value, is_taken) in [(json!({"N": "7"}), true), (json!({"S": "7"}), false), (json!({"NULL": true}), false)]
        {
            let put = json!({"TableName": "Tasks", "Item": {"K": {"S": "a"}, "DueAt": value}});
            assert_eq!(dynamo.serve("PutItem", &put).0 == 200, is_taken, "{put}");
            let update = json!({
                "TableName": "Tasks", "Key": {"K": {"S": "b"}}, "UpdateExpression": "SET DueAt = :at",
                "ExpressionAttributeValues": {":at": value},
            });
            assert_eq!(dynamo.serve("UpdateItem", &update).0 == 200, is_taken, "{update}");
        }
    }
}
