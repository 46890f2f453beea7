//! The size of an item as DynamoDB bills it, in bytes:
//!
//! - a name or text: its length in UTF-8;
//! - a number: one byte for every two digits, and one more;
//! - a list or map: three bytes, and one for each member.

use aws_sdk_dynamodb::types::AttributeValue;

use super::Item;

pub(in crate::dynamo) fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other kind is written")]
fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number_bytes(number),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
        AttributeValue::L(values) => 3 + values.len() + values.iter().map(value_bytes).sum::<usize>(),
        AttributeValue::M(members) => 3 + members.len() + item_bytes(members),
        _ => panic!("nothing here is {value:?}"),
    }
}

/// Counts whole numbers only, because a record has no others.
fn number_bytes(number: &str) -> usize {
    let digits = number.trim_start_matches('-').trim_start_matches('0').trim_end_matches('0').len();
    digits.div_ceil(2) + 1 + usize::from(number.starts_with('-'))
}
