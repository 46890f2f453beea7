//! The tables match the code's expectations.

use aws::dynamo::{Attribute, Index, Kind, Projection, TABLES, Table};
use serde_json::{Value, json};

use super::cloudformation::{Resource, Template};

const TABLE: &str = "AWS::DynamoDB::Table";

fn key(attribute: Attribute, kind: &str) -> Value {
    json!({"AttributeName": attribute.name, "KeyType": kind})
}

fn keys(table: &Table) -> Value {
    let range = table.range.map(|range| key(range, "RANGE"));
    std::iter::once(key(table.hash, "HASH")).chain(range).collect()
}

fn index(index: &Index) -> Value {
    let projection = match index.projection {
        Projection::Keys => "KEYS_ONLY",
        Projection::All => "ALL",
    };
    json!({
        "IndexName": index.name,
        "KeySchema": [key(index.hash, "HASH"), key(index.range, "RANGE")],
        "Projection": {"ProjectionType": projection},
    })
}

/// The definitions of all keys, each once, by name.
fn attributes(table: &Table) -> Vec<Value> {
    let of_indexes = table.indexes.iter().flat_map(|index| [index.hash, index.range]);
    let mut all: Vec<Attribute> = std::iter::once(table.hash).chain(table.range).chain(of_indexes).collect();
    all.sort_unstable_by_key(|attribute| attribute.name);
    all.dedup_by_key(|attribute| attribute.name);
    let kind = |attribute: Attribute| match attribute.kind {
        Kind::Text => "S",
        Kind::Number => "N",
    };
    all.into_iter()
        .map(|attribute| json!({"AttributeName": attribute.name, "AttributeType": kind(attribute)}))
        .collect()
}

/// The table whose name is in a variable.
fn deployed<'a>(template: &'a Template, table: &Table) -> Resource<'a> {
    let value = template.get(&format!("/Globals/Function/Environment/Variables/{}", table.variable));
    template.resource(value["Ref"].as_str().unwrap())
}

#[test]
fn every_table_is_deployed_with_the_keys_and_indexes_that_the_code_uses() {
    let template = Template::main();
    for table in &TABLES {
        let Resource { id, kind, properties } = deployed(&template, table);
        assert_eq!(kind, TABLE, "{id}");
        assert_eq!(properties["KeySchema"], keys(table), "{id}");
        let indexes = properties["GlobalSecondaryIndexes"].as_array().cloned().unwrap_or_default();
        assert_eq!(indexes, table.indexes.iter().map(index).collect::<Vec<_>>(), "{id}");
        let mut defined = properties["AttributeDefinitions"].as_array().unwrap().clone();
        defined.sort_by_key(|attribute| attribute["AttributeName"].as_str().unwrap().to_owned());
        assert_eq!(defined, attributes(table), "{id}");
    }
}

#[test]
fn the_tasks_have_a_stream_with_both_images_and_no_other_table_has_one() {
    let template = Template::main();
    for table in &TABLES {
        let Resource { id, properties, .. } = deployed(&template, table);
        let expected = table.has_stream.then(|| json!({"StreamViewType": "NEW_AND_OLD_IMAGES"}));
        assert_eq!(properties.get("StreamSpecification"), expected.as_ref(), "{id}");
    }
}

#[test]
fn items_that_may_be_forgotten_are_and_no_others() {
    let template = Template::main();
    for table in &TABLES {
        let Resource { id, properties, .. } = deployed(&template, table);
        let expected = table.ttl.map(|name| json!({"AttributeName": name, "Enabled": true}));
        assert_eq!(properties.get("TimeToLiveSpecification"), expected.as_ref(), "{id}");
    }
}

#[test]
fn every_table_of_the_store_can_be_taken_back_in_time_and_is_paid_by_use() {
    let template = Template::main();
    for table in &TABLES {
        let Resource { id, properties, .. } = deployed(&template, table);
        assert_eq!(properties["PointInTimeRecoverySpecification"], json!({"PointInTimeRecoveryEnabled": true}), "{id}");
        assert_eq!(properties["BillingMode"], "PAY_PER_REQUEST", "{id}");
    }
}

#[test]
fn nobody_deletes_orders_and_tasks_by_mistake_unless_a_deployment_allows_it() {
    let template = Template::main();
    assert!(template.holds(template.get("/Conditions/IsProtected")), "by default");
    assert!(!Template::main().with("DeletionProtection", "false").holds(template.get("/Conditions/IsProtected")));
    for table in &TABLES {
        let Resource { id, properties, .. } = deployed(&template, table);
        let is_protected = ["OrdersTable", "TasksTable"].contains(&id);
        let expected = is_protected.then(|| json!({"Fn::If": ["IsProtected", true, false]}));
        assert_eq!(properties.get("DeletionProtectionEnabled"), expected.as_ref(), "{id}");
    }
}

#[test]
fn orders_and_tasks_and_their_definitions_outlive_the_stack() {
    let template = Template::main();
    for id in ["OrdersTable", "TasksTable", "DefinitionsTable"] {
        assert_eq!(template.get(&format!("/Resources/{id}/DeletionPolicy")), "RetainExceptOnCreate");
        assert_eq!(template.get(&format!("/Resources/{id}/UpdateReplacePolicy")), "Retain");
    }
}
