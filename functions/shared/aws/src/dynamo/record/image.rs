//! An item as a stream reports it: DynamoDB's JSON.

use std::borrow::Cow;
use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::task::Task;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Item, Unreadable};

/// An item in a stream.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Image<'a>(#[serde(borrow)] HashMap<String, Value<'a>>);

#[derive(Debug, Deserialize)]
enum Value<'a> {
    S(#[serde(borrow)] Cow<'a, str>),
    N(#[serde(borrow)] Cow<'a, str>),
    B(#[serde(borrow)] Cow<'a, str>),
    #[serde(rename = "BOOL")]
    Bool(bool),
    #[serde(rename = "NULL")]
    Null(IgnoredAny),
    #[serde(borrow)]
    L(Vec<Value<'a>>),
    #[serde(borrow)]
    M(HashMap<String, Value<'a>>),
    /// No task has a set.
    #[serde(rename = "SS", alias = "NS", alias = "BS")]
    Set(IgnoredAny),
}

impl Image<'_> {
    /// The task in it.
    pub(crate) fn task(self) -> Result<Task, Unreadable> {
        super::task(item(self.0)?)
    }
}

fn item(values: HashMap<String, Value<'_>>) -> Result<Item, Unreadable> {
    values.into_iter().map(|(name, value)| Ok((name, attribute(value)?))).collect()
}

fn attribute(value: Value<'_>) -> Result<AttributeValue, Unreadable> {
    Ok(match value {
        Value::S(text) => AttributeValue::S(text.into_owned()),
        Value::N(digits) => AttributeValue::N(digits.into_owned()),
        Value::B(text) => {
            let bytes = STANDARD.decode(&*text).map_err(|error| Unreadable::new("an image", error.to_string()))?;
            AttributeValue::B(Blob::new(bytes))
        }
        Value::Bool(flag) => AttributeValue::Bool(flag),
        Value::Null(_) | Value::Set(_) => AttributeValue::Null(true),
        Value::L(values) => AttributeValue::L(values.into_iter().map(attribute).collect::<Result<_, _>>()?),
        Value::M(values) => AttributeValue::M(item(values)?),
    })
}
