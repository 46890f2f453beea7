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

/// What outlives the stack, in the order of the parameter `Tables`. There the stream of the tasks is the third.
const KEPT: [&str; 9] = [
    "OrdersTable",
    "TasksTable",
    "MemosTable",
    "JobsTable",
    "DefinitionsTable",
    "DeadLettersTable",
    "IndexTable",
    "NumbersTable",
    "SupervisorLog",
];

/// A variable with the name of a table.
fn variable<'a>(template: &'a Template, table: &Table) -> &'a Value {
    template.get(&format!("/Globals/Function/Environment/Variables/{}", table.variable))
}

/// The table whose name is in a variable, where the stack makes it.
fn deployed<'a>(template: &'a Template, table: &Table) -> Resource<'a> {
    let value = variable(template, table);
    template.resource(value.get("Fn::If").map_or(value, |branches| &branches[1])["Ref"].as_str().unwrap())
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
fn what_another_stack_may_take_over_outlives_the_stack_and_nothing_else_does() {
    let template = Template::main();
    for Resource { id, .. } in template.resources() {
        let resource = template.get(&format!("/Resources/{id}"));
        let policies = ["DeletionPolicy", "UpdateReplacePolicy"].map(|name| resource.get(name).and_then(Value::as_str));
        let is_kept = KEPT.contains(&id);
        // Of a function it is the policy of its versions.
        let of_versions = (resource["Type"] == "AWS::Serverless::Function").then_some("Retain");
        let expected = if is_kept { [Some("RetainExceptOnCreate"), Some("Retain")] } else { [None, of_versions] };
        assert_eq!((policies, resource["Condition"] == "MakesTables"), (expected, is_kept), "{id}");
    }
}

#[test]
fn a_stack_uses_the_tables_that_it_is_given_and_names_them_for_the_next_one() {
    let output = |template: &Template| template.text(template.get("/Outputs/Tables/Value")).unwrap();
    let own = output(&Template::main());
    let (stream, own): (Vec<&str>, Vec<&str>) = own.split(',').partition(|name| name.contains("/stream/"));
    assert_eq!((own.as_slice(), stream.len()), (&KEPT[..], 1));
    let given = "o,t,arn:aws:dynamodb:eu-west-1:1:table/t/stream/1,m,j,d,l,i,n,/aws/lambda/s-supervisor";
    let template = Template::main().with("Tables", given);
    assert_eq!(output(&template), given);
    let names: Vec<String> = TABLES.iter().map(|table| template.text(variable(&template, table)).unwrap()).collect();
    let kept: Vec<&str> = names.iter().map(|name| &**name).filter(|name| !name.ends_with("Table")).collect();
    assert_eq!(kept.len(), KEPT.len() - 1, "{names:?}");
    let stream = &template.resource("Supervisor").properties["Events"]["Changes"]["Properties"]["Stream"];
    assert_eq!(template.text(stream), given.split(',').nth(2).map(str::to_owned));
    let log = &template.resource("Supervisor").properties["LoggingConfig"]["LogGroup"];
    assert_eq!(template.text(log), given.split(',').next_back().map(str::to_owned));
}
