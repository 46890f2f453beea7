//! The tables as data. The template creates the same tables, and tests create theirs from here.
//!
//! All tables are billed on demand. Attributes that are not keys need no schema.

use serde_json::{Value, json};

/// The names of the tables in one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// The order database.
    pub orders: String,
    /// The state store.
    pub tasks: String,
    /// Leases of supervisors.
    pub leases: String,
    /// Health of the remote services.
    pub services: String,
    /// Memos of agents.
    pub memos: String,
    /// Jobs of operators.
    pub jobs: String,
    /// Definitions of workflows, and the deployment.
    pub definitions: String,
    /// The outcomes of dead letters.
    pub dead_letters: String,
    /// What orders are found by.
    pub index: String,
    /// Numbers of what happened.
    pub numbers: String,
}

impl Tables {
    /// The name of a table, by the variable of [`Table::variable`].
    #[must_use]
    pub fn name(&self, variable: &str) -> Option<&str> {
        match variable {
            "ORDERS_TABLE" => Some(&self.orders),
            "TASKS_TABLE" => Some(&self.tasks),
            "LEASES_TABLE" => Some(&self.leases),
            "SERVICES_TABLE" => Some(&self.services),
            "MEMOS_TABLE" => Some(&self.memos),
            "JOBS_TABLE" => Some(&self.jobs),
            "DEFINITIONS_TABLE" => Some(&self.definitions),
            "DEAD_LETTERS_TABLE" => Some(&self.dead_letters),
            "INDEX_TABLE" => Some(&self.index),
            "NUMBERS_TABLE" => Some(&self.numbers),
            _ => None,
        }
    }
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The environment variable with the table's name.
    pub variable: &'static str,
    /// The partition key.
    pub hash: Attribute,
    /// The sort key.
    pub range: Option<Attribute>,
    /// The attribute with the expiry time, in epoch seconds. DynamoDB may delete an item after it.
    pub ttl: Option<&'static str>,
    /// The table's global secondary indexes.
    pub indexes: &'static [Index],
    /// Whether a stream has the old and the new image of each change.
    pub has_stream: bool,
}

impl Table {
    /// The request that creates it under this name, for tests.
    #[must_use]
    pub fn creation(&self, name: &str) -> Value {
        let mut keys: Vec<Attribute> = [self.hash].into_iter().chain(self.range).collect();
        let mut request = json!({ "TableName": name, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema(&keys) });
        for Index { name, hash, range, projection } in self.indexes {
            let projection = match projection {
                Projection::Keys => "KEYS_ONLY",
                Projection::All => "ALL",
            };
            let index = json!({
                "IndexName": name, "KeySchema": schema(&[*hash, *range]), "Projection": { "ProjectionType": projection },
            });
            keys.extend([*hash, *range]);
            match request["GlobalSecondaryIndexes"].as_array_mut() {
                Some(indexes) => indexes.push(index),
                None => request["GlobalSecondaryIndexes"] = json!([index]),
            }
        }
        keys.sort_by_key(|key| key.name);
        keys.dedup();
        let attributes = keys.iter().map(|key| {
            let kind = if key.kind == Kind::Text { "S" } else { "N" };
            json!({ "AttributeName": key.name, "AttributeType": kind })
        });
        request["AttributeDefinitions"] = attributes.collect();
        if self.has_stream {
            request["StreamSpecification"] = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
        }
        request
    }
}

fn schema(keys: &[Attribute]) -> Value {
    let kinds = ["HASH", "RANGE"].into_iter();
    keys.iter().zip(kinds).map(|(key, kind)| json!({ "AttributeName": key.name, "KeyType": kind })).collect()
}

/// A global secondary index. An index is sparse if only some items have its keys; it costs nothing for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// The index's name.
    pub name: &'static str,
    /// The partition key.
    pub hash: Attribute,
    /// The sort key.
    pub range: Attribute,
    /// The attributes in an entry.
    pub projection: Projection,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute's name.
    pub name: &'static str,
    /// The attribute's type.
    pub kind: Kind,
}

/// The type of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `S`.
    Text,
    /// `N`.
    Number,
}

/// The attributes in an entry of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// `KEYS_ONLY`.
    Keys,
    /// `ALL`.
    All,
}

/// The tasks that are due for the supervisor or the operator (rule 14). It excludes finished tasks.
pub(super) const WATCH: Index =
    Index { name: "watch", hash: text("Watch"), range: number("WatchAt"), projection: Projection::Keys };
/// The tasks in `Error`. In `watch` such a task may stand among those in flight until a notice about it is sent.
pub(super) const FAILED: Index =
    Index { name: "failed", hash: text("Failed"), range: number("FailedAt"), projection: Projection::Keys };
/// The orders by the time of their submission.
pub(super) const RECENT: Index =
    Index { name: "recent", hash: text("Recent"), range: number("SubmittedAt"), projection: Projection::Keys };
/// The dead letters by the time of their settlement.
pub(super) const SETTLED: Index =
    Index { name: "settled", hash: text("Kind"), range: number("SettledAt"), projection: Projection::All };

/// All tables.
pub const TABLES: [Table; 10] = [
    Table { indexes: &[RECENT], ..table("ORDERS_TABLE", "OrderID") },
    Table { indexes: &[WATCH, FAILED], ttl: Some("TTL"), has_stream: true, ..table("TASKS_TABLE", "OrderID") },
    Table { ttl: Some("TTL"), ..table("LEASES_TABLE", "Name") },
    table("SERVICES_TABLE", "Service"),
    Table { ttl: Some("TTL"), ..table("MEMOS_TABLE", "Key") },
    Table { range: Some(text("JobID")), ..table("JOBS_TABLE", "Kind") },
    Table { range: Some(text("Key")), ..table("DEFINITIONS_TABLE", "Kind") },
    Table {
        range: Some(text("MessageID")),
        ttl: Some("TTL"),
        indexes: &[SETTLED],
        ..table("DEAD_LETTERS_TABLE", "Kind")
    },
    Table { range: Some(text("OrderID")), ..table("INDEX_TABLE", "Term") },
    Table { range: Some(number("SpanAt")), ttl: Some("TTL"), ..table("NUMBERS_TABLE", "Kind") },
];

const fn table(variable: &'static str, hash: &'static str) -> Table {
    Table { variable, hash: text(hash), range: None, ttl: None, indexes: &[], has_stream: false }
}

const fn text(name: &'static str) -> Attribute {
    Attribute { name, kind: Kind::Text }
}

const fn number(name: &'static str) -> Attribute {
    Attribute { name, kind: Kind::Number }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_table_has_a_name_of_its_own() {
        let tables = Tables {
            orders: "o".into(),
            tasks: "t".into(),
            leases: "l".into(),
            services: "s".into(),
            memos: "m".into(),
            jobs: "j".into(),
            definitions: "f".into(),
            dead_letters: "d".into(),
            index: "i".into(),
            numbers: "n".into(),
        };
        let names: BTreeSet<_> = TABLES.iter().map(|table| tables.name(table.variable).unwrap()).collect();
        assert_eq!(names.len(), TABLES.len());
        assert_eq!(tables.name("QUEUES_TABLE"), None);
    }
}
