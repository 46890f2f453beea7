//! How the texts of requests stand in the contract of the API (feature `contract`).

use std::borrow::Cow;

use domain::contract::OPEN;
use domain::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::OpenEnum;

/// A character that is no blank: a text of blanks is none.
pub const VISIBLE: &str = r"[^\u0009-\u000d \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

/// Defines schemas that stand where they are used.
macro_rules! texts {
    ($($(#[$doc:meta])+ $of:ident => $schema:expr;)+) => {
        $(
            $(#[$doc])+
            #[derive(Debug)]
            pub struct $of;

            impl JsonSchema for $of {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($of).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $schema
                }
            }
        )+
    };
}

/// A text of one to this number of characters.
#[must_use]
pub fn text(chars_max: usize) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": chars_max, "pattern": VISIBLE})
}

texts! {
    /// A reason, or another text.
    Text => text(TEXT_CHARS_MAX);
    /// A name of which nothing else is asked.
    Name => text(NAME_CHARS_MAX);
    /// The name of an operator: the caller stands in brackets behind it.
    Operator => {
        let refused = r"\]\u0000-\u001f\u007f-\u009f";
        let blank = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
        let pattern = format!(r"^[^{refused}]*[^{refused}{blank}][^{refused}]*$");
        json_schema!({"type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX, "pattern": pattern})
    };
    /// The document of an order.
    Document => json_schema!({"$ref": "#/components/schemas/Document"});
    /// A time with any fraction, in any zone.
    DateTime => json_schema!({"type": "string", "format": "date-time"});
}

/// The words that are known, as examples: a client that was made from the contract reads others, too.
impl<T: JsonSchema> JsonSchema for OpenEnum<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("OpenEnum<{}>", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.insert(OPEN.to_owned(), true.into());
        schema
    }
}
