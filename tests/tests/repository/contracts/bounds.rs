//! The numbers in the schemas match the code.

use domain::limits::{
    COMPLETE_WITHIN_MS_MAX, DEFERRAL_MS_MAX, DOCUMENT_BYTES_MAX, NAME_CHARS_MAX, OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX,
    STEPS_MAX, TEXT_CHARS_MAX, WAIT_MS_MAX,
};
use domain::task::{ProcessState, reason};
use serde_json::{Value, json};

use super::schemas::files;

fn at<'a>(schema: &'a Value, pointer: &str) -> &'a Value {
    schema.pointer(pointer).unwrap_or_else(|| panic!("there is no {pointer}"))
}

#[test]
fn bounds_are_those_of_the_code() {
    let files = files("schemas");
    let common = &files["common"];
    for (schema, pointer, bound) in [
        (&files["request"], "/properties/BudgetMs/maximum", COMPLETE_WITHIN_MS_MAX),
        (common, "/$defs/Outcome/oneOf/2/properties/Deferred/properties/WaitMs/maximum", DEFERRAL_MS_MAX),
        (&files["request"], "/properties/WaitWithinMs/maximum", WAIT_MS_MAX),
        (common, "/$defs/CorrelationID/maxLength", TEXT_CHARS_MAX as u64),
        (common, "/$defs/ReplyChannel/maxLength", NAME_CHARS_MAX as u64),
        (common, "/$defs/Agent/maxLength", NAME_CHARS_MAX as u64),
        (&files["command"], "/properties/Command/properties/By/maxLength", TEXT_CHARS_MAX as u64),
        (&files["command"], "/properties/Command/properties/Reason/maxLength", TEXT_CHARS_MAX as u64),
        (&files["order-needs-operator"], "/properties/data/anyOf/0/properties/FailedSteps/maxItems", STEPS_MAX as u64),
    ] {
        assert_eq!(at(schema, pointer), &json!(bound), "{pointer}");
    }
    assert_eq!(at(common, "/$defs/Step/pattern"), &json!(format!("^[A-Za-z0-9_-]{{1,{NAME_CHARS_MAX}}}$")));
}

#[test]
fn bounds_that_json_schema_cannot_say_are_said_in_words() {
    let files = files("schemas");
    for (schema, pointer, bytes) in [
        ("common", "/$defs/Document/description", DOCUMENT_BYTES_MAX),
        ("common", "/$defs/Outcome/oneOf/0/properties/Done/description", OUTPUT_BYTES_MAX),
        ("request", "/properties/Outputs/description", OUTPUTS_BYTES_MAX),
    ] {
        let words = at(&files[schema], pointer).as_str().unwrap();
        assert!(words.contains(&format!("{bytes} bytes")), "{words}");
    }
}

#[test]
fn words_are_those_of_the_code() {
    let files = files("schemas");
    let common = &files["common"];
    let codes = [
        reason::REJECTED,
        reason::EXHAUSTED,
        reason::LATE,
        reason::CANCELLED,
        reason::COMPENSATION_FAILED,
        reason::HOP_LIMIT,
        reason::DEAD_LETTER,
    ];
    assert_eq!(at(common, "/$defs/Reason/properties/Code/examples"), &json!(codes));
    assert_eq!(at(common, "/$defs/ProcessState/enum"), &json!(ProcessState::ALL.map(ProcessState::name)));
}
