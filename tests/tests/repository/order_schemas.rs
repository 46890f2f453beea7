//! The schemas of orders: what ours says of a document, another program says too.

use boon::{Compiler, Draft};
use domain::json::Json;
use domain::limits::DOCUMENT_BYTES_MAX;
use domain::schema::Schema;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// Few names and values, so that a document and a schema meet.
const NAMES: [&str; 4] = ["a", "b", "ab", "~/"];
const PATTERNS: [&str; 5] = ["^a", "b$", "^[a-c]{1,2}$", "(ab|c)+", r"\s"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

fn scalar() -> impl Strategy<Value = Value> {
    let numbers = [json!(0), json!(1), json!(-2), json!(0.5), json!(2.0), json!(7.25)];
    let texts = ["", "a", "ab", "c d", "é"].map(Value::from);
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(numbers.to_vec()),
        select(texts.to_vec())
    ]
}

fn document() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        let members = vec((select(&NAMES[..]), inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// One keyword and its value. Each of them is drawn.
fn keyword(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = (String, Value)> + use<> {
    let named = |name: &'static str, value: BoxedStrategy<Value>| value.prop_map(move |value| (name.to_owned(), value));
    let of = |names: &'static [&'static str], value: BoxedStrategy<Value>| {
        (select(names), value).prop_map(|(name, value)| (name.to_owned(), value))
    };
    let schemas = vec(inner.clone(), 1..3).prop_map(Value::from).boxed();
    let members = |names: &'static [&'static str]| {
        let members = vec((select(names), inner.clone()), 0..3);
        members.prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>())
    };
    let values = vec(document(), 1..3).prop_map(Value::from);
    let names = vec(select(&NAMES[..]), 0..3).prop_map(|mut names| {
        names.sort_unstable();
        names.dedup();
        Value::from(names)
    });
    prop_oneof![
        named("type", select(&TYPES[..]).prop_map(Value::from).boxed()),
        named("type", Just(json!(["object", "integer"])).boxed()),
        named("const", document().boxed()),
        named("enum", values.boxed()),
        of(
            &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
            select(vec![json!(0), json!(1.5), json!(2)]).boxed()
        ),
        named("multipleOf", select(vec![json!(0.5), json!(2)]).boxed()),
        of(
            &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
            (0..3_u8).prop_map(Value::from).boxed()
        ),
        named("pattern", select(&PATTERNS[..]).prop_map(Value::from).boxed()),
        named("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        named("required", names.boxed()),
        named("properties", members(&NAMES).boxed()),
        named("patternProperties", members(&PATTERNS).boxed()),
        of(&["additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"], inner.clone()),
        of(&["prefixItems", "allOf", "anyOf", "oneOf"], schemas),
        named("$ref", Just(json!("#/$defs/one")).boxed()),
    ]
}

fn subschema() -> impl Strategy<Value = Value> {
    let leaf = any::<bool>().prop_map(Value::from).boxed();
    leaf.prop_recursive(4, 40, 3, |inner| {
        vec(keyword(&inner.boxed()), 0..4).prop_map(|members| members.into_iter().collect())
    })
}

/// A schema, and one that it may name.
fn schema() -> impl Strategy<Value = Value> {
    (vec(keyword(&subschema().boxed()), 0..5), subschema()).prop_map(|(members, one)| {
        let mut whole: Value = members.into_iter().collect();
        whole["$defs"] = json!({"one": one});
        whole
    })
}

#[test]
fn a_document_fits_a_schema_where_another_program_says_so() {
    let mut runner = TestRunner::new(Config { cases: 3_000, failure_persistence: None, ..Config::default() });
    let fitting = std::cell::Cell::new((0, 0, 0));
    let verdicts = runner.run(&(schema(), vec(document(), 1..6)), |(schema, documents)| {
        let (mut refused, mut fits, mut fails) = fitting.get();
        // One that names itself on the same value has no meaning.
        match Schema::parse(&format!("{schema:#}")) {
            Err(faults) => {
                prop_assert!(faults.to_string().contains("circle"), "{}: {}", schema, faults);
                refused += 1;
            }
            Ok(ours) => {
                let mut compiler = Compiler::new();
                compiler.set_default_draft(Draft::V2020_12);
                compiler.add_resource("https://x.invalid/s", schema.clone()).expect("a schema");
                let mut schemas = boon::Schemas::new();
                let place = compiler.compile("https://x.invalid/s", &mut schemas).expect("a schema");
                for document in documents {
                    let theirs = schemas.validate(&document, place).is_ok();
                    let json = Json::received(document.to_string().as_bytes(), DOCUMENT_BYTES_MAX).expect("a document");
                    prop_assert_eq!(ours.check(&json).is_ok(), theirs, "{} of {}", schema, document);
                    (fits, fails) = if theirs { (fits + 1, fails) } else { (fits, fails + 1) };
                }
            }
        }
        fitting.set((refused, fits, fails));
        Ok(())
    });
    verdicts.unwrap_or_else(|fault| panic!("{fault}"));
    let (refused, fits, fails) = fitting.get();
    assert!(fits > 1_000 && fails > 1_000 && refused < 1_000, "{:?}", fitting.get());
}
