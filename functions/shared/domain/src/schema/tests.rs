use super::value::Node;
use super::*;
use crate::limits::{DOCUMENT_BYTES_MAX, MISFITS_MAX, SCHEMA_NESTING_MAX, SCHEMA_STEPS_MAX, SUBSCHEMAS_MAX};

fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap_or_else(|faults| panic!("{text}: {faults}"))
}

fn document(text: &str) -> Json {
    Json::received(text.as_bytes(), DOCUMENT_BYTES_MAX).unwrap()
}

fn misfits(of: &str, text: &str) -> Vec<String> {
    let found = schema(of).check(&document(text)).err().unwrap_or_default();
    found.iter().map(ToString::to_string).collect()
}

fn faults(text: &str) -> Vec<String> {
    let Faults(faults) = Schema::parse(text).err().unwrap_or(Faults(Vec::new()));
    faults.iter().map(ToString::to_string).collect()
}

/// The steps of a validation.
fn steps(of: &Schema, text: &str) -> usize {
    let compiled = Compiled::of(of.text()).ok().unwrap();
    Validation::counted(&compiled, &Node::of(text), SCHEMA_STEPS_MAX).1
}

#[test]
fn each_misfit_has_its_place_and_its_reason_and_no_value() {
    let order = r##"{
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "type": "object",
      "required": ["Total", "Lines"],
      "additionalProperties": false,
      "properties": {
        "Total": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
        "Currency": {"enum": ["EUR", "USD"]},
        "Email": {"type": "string", "pattern": "@", "maxLength": 10},
        "Lines": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/$defs/line"}}
      },
      "$defs": {"line": {"required": ["Sku"], "properties": {"Quantity": {"type": "integer", "minimum": 1}}}}
    }"##;
    assert_eq!(misfits(order, r#"{"Total": 12.50, "Lines": [{"Sku": "a", "Quantity": 2.0}]}"#), [""; 0]);
    let found = misfits(order, r#"{"Total": "12.50", "Currency": "secret", "Lines": [{"Quantity": 0}]}"#);
    let expected = [
        "/Currency must be one of \"EUR\", \"USD\"",
        "/Lines/0 must have Sku",
        "/Lines/0/Quantity must be at least 1",
        "/Total must be a number, and is a string",
    ];
    assert_eq!(found, expected);
    let found = misfits(order, r#"{"a/b~c": 1, "Email": "much too long", "Lines": [], "Total": 0.005}"#);
    let expected = [
        "/Email must match the pattern \"@\"",
        "/Email must have at most 10 characters, and has 13",
        "/Lines must have at least 1 elements, and has 0",
        "/Total must be a multiple of 0.01",
        "/a~1b~0c must not be there",
    ];
    let mut found = found;
    found.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(misfits(order, r#"{"Lines": [{"Sku": "a"}, {"Sku": "a"}]}"#)[0], "the document must have Total");
    let twice =
        misfits(order, r#"{"Total": 1, "Lines": [{"Sku": "a", "N": 1}, {"Sku": "b"}, {"N": 1.0, "Sku": "\u0061"}]}"#);
    assert_eq!(twice, ["/Lines must not have the same element twice, as at 0 and 2"]);
    assert_eq!(misfits(r#"{"items": {"type": "null"}}"#, "[1,2,3,4,5,6,7,8]").len(), MISFITS_MAX);
}

#[test]
fn numbers_are_compared_digit_for_digit() {
    for (of, fits, fails) in [
        (r#"{"multipleOf": 0.01}"#, "12.50", "12.505"),
        (r#"{"multipleOf": 0.01}"#, "19.99", "0.001"),
        (r#"{"multipleOf": 0.1}"#, "123456789012345678901234567890.7", "123456789012345678901234567890.75"),
        (r#"{"multipleOf": 0.03}"#, "0.09", "0.10"),
        (r#"{"exclusiveMaximum": 2}"#, "1.99999999999999999999", "2.0"),
        (r#"{"exclusiveMinimum": 2}"#, "2.00000000000000000001", "2.0"),
        (r#"{"minimum": 2}"#, "2.0", "1.99999999999999999999"),
        (r#"{"multipleOf": 7}"#, "7e100000000000", "1e100000000000"),
        (r#"{"multipleOf": 2.5}"#, "-7.5", "1e-9"),
        (r#"{"const": 9007199254740993}"#, "9007199254740993.0", "9007199254740992"),
        (r#"{"maximum": 0.1}"#, "0.1", "0.10000000000000000001"),
        (r#"{"enum": [1e2, "1e2"]}"#, "100", "\"100\""),
        (r#"{"type": "integer"}"#, "1.50e1", "1.50"),
        (r#"{"type": "integer"}"#, "-0.0", "1e-1"),
        (r#"{"minLength": 2.0}"#, "\"😀é\"", "\"😀\""),
        (
            r#"{"uniqueItems": true}"#,
            "[1, true, \"1\", [1], {\"a\": 1}]",
            "[{\"a\": 1, \"b\": 2.0}, {\"b\": 2, \"a\": 1}]",
        ),
    ] {
        assert_eq!(misfits(of, fits), [""; 0], "{of} {fits}");
        assert_eq!(misfits(of, fails).len(), 1, "{of} {fails}");
    }
}

#[test]
fn a_schema_is_a_text_without_blanks_that_reads_the_same() {
    let text = "{ \"const\" : \"it's \\u007f \u{7f}\" , \"$comment\": \"a\\nb\" }";
    let of = schema(text);
    assert_eq!(of.text(), r#"{"const":"it\u0027s \u007f \u007f","$comment":"a\nb"}"#);
    assert_eq!(schema(of.text()), of);
    let stored = Schema::stored(of.text());
    assert_eq!(stored.check(&document("\"it's \u{7f} \u{7f}\"")), Ok(()));
    assert_eq!(stored.check(&document("7")).unwrap_err().len(), 1);
    let reasons = [&of, &stored].map(|schema| schema.check(&document("7")).unwrap_err()[0].reason.clone());
    assert!(reasons[0].starts_with("must be \"it's ") && reasons[0] == reasons[1], "{reasons:?}");
    // U+FFFD by itself, and a surrogate without its other half.
    for value in ["\"\u{fffd} it's \u{7f}\"", r#""\uD83D it's \u007F \ud83d\ude00 \"""#, r#""it \uDC00\\uDC00'""#] {
        let of = schema(&format!("{{\"const\":{value}}}"));
        let stored = Schema::stored(of.text());
        assert_eq!([of.check(&document(value)), stored.check(&document(value))], [Ok(()), Ok(())], "{value}");
        let other = document(&value.replace("it", "at"));
        assert!(of.check(&other).is_err() && of.check(&other) == stored.check(&other), "{value}");
    }
    let later = Schema::stored(r#"{"keywordOfNextYear": 1}"#).check(&document("7")).unwrap_err();
    assert!(later[0].reason.contains("another version"), "{later:?}");
}

#[test]
fn every_fault_of_a_schema_is_found_with_its_line_and_column() {
    for (text, expected) in [
        ("{\n \"type\": }", "2:10: is not valid JSON: expected value"),
        ("", "1:1: is not valid JSON: EOF"),
        ("{\"a\":1,\"a\":2}", "1:1: is ambiguous: /a is there twice"),
        ("7", "1:1: must be a schema: an object, true or false"),
        (
            r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#,
            "1:13: $schema must be \"https://json-schema.org/draft/2020-12/schema\"",
        ),
        (
            "{\n  \"minimun\": 1}",
            "2:3: \"minimun\" is not a keyword of JSON Schema 2020-12: did you mean minimum? Keywords are: ",
        ),
        (
            r#"{"properties": {"a": {"requird": []}}}"#,
            "1:23: \"requird\" is not a keyword of JSON Schema 2020-12: did you mean required?",
        ),
        (r#"{"definitions": {}}"#, "1:2: definitions is not supported: write $defs, as of 2020-12"),
        (
            r#"{"unevaluatedProperties": false}"#,
            "1:2: unevaluatedProperties is not supported: write additionalProperties",
        ),
        (r#"{"not": {"$id": "x"}}"#, "1:10: $id stands at the top of the file alone"),
        (
            r#"{"$ref": "other.json#/a"}"#,
            "1:10: $ref \"other.json#/a\" is not a place in this file: put the schema into $defs",
        ),
        (r##"{"$ref": "#/$defs/a"}"##, "1:10: $ref \"#/$defs/a\" leads to no schema in this file"),
        (r##"{"$ref": "#here"}"##, "1:10: $ref \"#here\" is not a place in this file"),
        (r##"{"$ref": "#"}"##, "1:1: the $ref of this schema, or of one within it, leads in a circle"),
        (
            r##"{"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}"##,
            "leads in a circle",
        ),
        (r#"{"pattern": "(a"}"#, "1:13: the pattern \"(a\" cannot be used"),
        (r#"{"patternProperties": {"[": true}}"#, "1:29: the pattern \"[\" cannot be used"),
        (r#"{"type": "int"}"#, "1:10: type must be one or several of null, boolean"),
        (r#"{"items": [{}]}"#, "1:11: must be a schema: an object, true or false"),
        (r#"{"exclusiveMinimum": true}"#, "1:22: exclusiveMinimum must be a number"),
        (r#"{"required": true}"#, "1:14: required must be an array of names"),
        (r#"{"minLength": -1}"#, "1:15: minLength must be a whole number from 0 on"),
        (r#"{"maxItems": 1e999999999}"#, "1:14: maxItems must be a whole number from 0 on"),
        (r#"{"multipleOf": 0}"#, "1:16: multipleOf must be above 0, and have at most 15 digits"),
        (r#"{"minimum": 1e9999999999}"#, "1:13: minimum must be a number"),
        (r#"{"enum": []}"#, "1:10: enum must be an array of at least one value"),
        (r#"{"anyOf": []}"#, "1:11: anyOf must be an array of at least one schema"),
        (r#"{"properties": []}"#, "1:16: properties must be an object of schemas"),
        (r#"{"uniqueItems": 1}"#, "1:17: uniqueItems must be true or false"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
    }
    let found = faults("{\"maxLenght\": 1,\n\"type\": 7,\n\"enum\": 1}");
    assert_eq!(found.len(), 3, "all at once: {found:?}");
    assert!(!schema(r##"{"properties": {"a": {"$ref": "#"}}}"##).text().is_empty(), "one level deeper there is an end");
}

#[test]
fn a_schema_has_limits() {
    let of = |count: usize| format!("{{\"anyOf\":[{}]}}", vec!["true"; count].join(","));
    assert_eq!(faults(&of(SUBSCHEMAS_MAX - 1)), [""; 0]);
    assert_eq!(
        faults(&of(SUBSCHEMAS_MAX + 5)),
        [format!("1:{}: has more than 1000 schemas in it: shorten it", 11 + 5 * (SUBSCHEMAS_MAX - 1))]
    );
    let long = format!("{{\"$comment\":{:?}}}", "x".repeat(SCHEMA_BYTES_MAX));
    assert_eq!(faults(&long), ["1:1: has 32783 bytes without its blanks, the limit is 32768"]);
    assert_eq!(faults(&format!("{}{}", schema("{\"type\":\"null\"}").text(), " \n".repeat(SCHEMA_BYTES_MAX))), [""; 0]);
    assert_eq!(faults(&format!("{}{}", "{\"not\":".repeat(70), "}".repeat(70))).len(), 1);
}

/// Documents and schemas that make a validation without bounds slow. Work is counted in steps, never in time.
#[test]
fn a_validation_ends_whatever_the_document_and_the_schema_are() {
    let refused = |of: &str, text: &str| {
        let of = schema(of);
        assert_eq!(steps(&of, text), SCHEMA_STEPS_MAX, "{}", of.text());
        let found = of.check(&document(text)).unwrap_err();
        assert!(
            found.len() == 1 && found[0].to_string().contains("the document takes more than 1000000 steps"),
            "{found:?}"
        );
    };
    // Each schema asks the next one twice: 2^40 ways.
    let doubled = (0..40).map(|n| {
        format!("\"d{n}\":{{\"allOf\":[{{\"$ref\":\"#/$defs/d{0}\"}},{{\"$ref\":\"#/$defs/d{0}\"}}]}}", n + 1)
    });
    let doubled = doubled.collect::<Vec<_>>().join(",");
    refused(&format!("{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{doubled},\"d40\":{{}}}}}}"), "{}");
    let choices = doubled.replace("allOf", "oneOf");
    refused(&format!("{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{choices},\"d40\":{{\"type\":\"null\"}}}}}}"), "{}");
    // A long text and a pattern that a backtracking engine tries in 2^n ways, or that has many states.
    let long = format!("\"{}!\"", "a".repeat(130_000));
    let linear = schema(r#"{"pattern": "^(a+)+$"}"#);
    assert!(steps(&linear, &long) < 300_000, "{}", steps(&linear, &long));
    assert_eq!(linear.check(&document(&long)).unwrap_err()[0].reason, "must match the pattern \"^(a+)+$\"");
    refused(
        r#"{"allOf": [{"pattern": "(a|aa){1,50}b"}, {"pattern": "(a|aa){1,49}b"}, {"pattern": "(a|aa){1,48}b"}, {"pattern": "(a|aa){1,48}c"}]}"#,
        &long,
    );
    // Many elements, all alike but the last; many elements that each try many schemas.
    let many = format!("[{}1]", "[],".repeat(40_000));
    let unique = schema(r#"{"uniqueItems": true}"#);
    assert!(steps(&unique, &many) < 60_000, "{}", steps(&unique, &many));
    let tried = format!("{{\"items\":{{\"oneOf\":[{},{{}}]}}}}", vec!["{\"type\":\"null\"}"; 500].join(","));
    refused(&tried, &many);
    refused(&format!("{{\"contains\":{{\"anyOf\":[{}]}}}}", vec!["{\"const\":1}"; 500].join(",")), &many);
    // A document as deep as it may be, and a schema that goes along.
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    assert_eq!(misfits(r##"{"items": {"$ref": "#"}, "type": "array"}"##, &deep), [""; 0]);
    let chain = (0..99).map(|n| format!("\"c{n}\":{{\"$ref\":\"#/$defs/c{}\"}}", n + 1)).collect::<Vec<_>>().join(",");
    let chain =
        format!("{{\"$ref\":\"#/$defs/c0\",\"$defs\":{{{chain},\"c99\":{{\"items\":{{\"$ref\":\"#/$defs/c0\"}}}}}}}}");
    assert_eq!(misfits(&chain, "[7]"), [""; 0]);
    let found = misfits(&chain, &deep);
    assert!(
        found.len() == 1 && found[0].contains("takes more than"),
        "{SCHEMA_NESTING_MAX} schemas within each other: {found:?}"
    );
    // A number without end.
    let far = format!("1e{}", "9".repeat(100_000));
    assert_eq!(misfits(r#"{"multipleOf": 0.01, "minimum": 3, "type": "integer"}"#, &far), [""; 0]);
}

#[test]
fn lone_surrogates_are_no_two_elements_alike_and_have_no_length_of_their_own() {
    assert_eq!(misfits(r#"{"uniqueItems": true}"#, r#"["\ud800", "\ud801"]"#), [""; 0]);
    assert_eq!(misfits(r#"{"uniqueItems": true}"#, r#"["\u00e9", "é"]"#).len(), 1);
    assert_eq!(misfits(r#"{"propertyNames": {"pattern": "^[a-z]+$"}}"#, r#"{"\ud800": 1}"#).len(), 1);
}

#[test]
fn each_element_counts_also_where_nothing_is_asked_of_it_and_a_type_counts_once() {
    let list = format!("[{}1]", "1,".repeat(9_999));
    for of in [r#"{"items":{"title":"any"}}"#, r#"{"contains":{"type":"null"}}"#, r#"{"prefixItems":[{}],"items":{}}"#]
    {
        assert!(steps(&schema(of), &list) >= 10_000, "{of}: {}", steps(&schema(of), &list));
    }
    let digits = format!("0.{}", "1".repeat(9_999));
    let [once, often] = [1, 2_000].map(|times| {
        let types = vec!["\"integer\""; times].join(",");
        steps(&schema(&format!("{{\"type\":[{types}]}}")), &digits)
    });
    assert_eq!(once, often);
}
