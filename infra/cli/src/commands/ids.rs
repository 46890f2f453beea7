//! The end of an order's ID in place of the whole. IDs of one minute look alike at their beginning, so people read, copy
//! and type the end. The API takes whole IDs alone: an end is looked up in its lists.

use futures_util::future::try_join;
use serde::Deserialize;

use domain::id::OrderId;

use super::context::Context;
use super::error::CommandError;
use super::list::{self, PAGE_MAX};
use crate::args::{END_CHARS_MIN, LOOKED_THROUGH_MAX};
use crate::remote::RemoteError;

/// An order, as far as its name goes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    process_state: String,
}

/// What a text may be in place of an order's ID.
#[derive(Debug, PartialEq, Eq)]
enum Given {
    /// A whole ID, or no ID at all: the API says so.
    Whole(String),
    /// The end of one: hexadecimal digits, without hyphens.
    End(String),
}

/// The whole ID for each of these. Whole IDs cost no call.
///
/// # Errors
/// [`CommandError`] if an end is too short, is that of several orders or of none, or if the API does not list them.
pub(super) async fn whole(context: &Context, given: &[String]) -> Result<Vec<String>, CommandError> {
    let given = given.iter().map(|text| read(text)).collect::<Result<Vec<_>, _>>()?;
    let has_end = given.iter().any(|given| matches!(given, Given::End(_)));
    let orders = if has_end { looked_through(context).await? } else { Vec::new() };
    let whole = given.into_iter().map(|given| match given {
        Given::Whole(id) => Ok(id),
        Given::End(end) => only(&end, &orders),
    });
    whole.collect()
}

/// The same for one.
pub(super) async fn whole_one(context: &Context, given: &str) -> Result<String, CommandError> {
    Ok(whole(context, &[given.to_owned()]).await?.remove(0))
}

fn read(text: &str) -> Result<Given, CommandError> {
    let lower = text.to_ascii_lowercase();
    if lower.parse::<OrderId>().is_ok() {
        return Ok(Given::Whole(lower));
    }
    let digits = lower.replace('-', "");
    if text.trim().is_empty() {
        return Err(CommandError::usage("an order's ID is empty"));
    }
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Given::Whole(text.to_owned()));
    }
    if digits.len() < END_CHARS_MIN {
        let message =
            format!("{text} is too short: give an order's ID, or at least its last {END_CHARS_MIN} characters");
        return Err(CommandError::usage(message));
    }
    Ok(Given::End(digits))
}

/// The order with this end.
fn only(end: &str, orders: &[Named]) -> Result<String, CommandError> {
    let mut found: Vec<&Named> =
        orders.iter().filter(|order| order.order_id.to_string().replace('-', "").ends_with(end)).collect();
    found.sort_by_key(|order| order.order_id);
    found.dedup_by_key(|order| order.order_id);
    match found.as_slice() {
        [one] => Ok(one.order_id.to_string()),
        [] if orders.iter().any(|order| order.order_id.to_string().replace('-', "").starts_with(end)) => {
            Err(CommandError::usage(format!("an order's ID begins with {end}: give the end, not the beginning")))
        }
        [] => Err(CommandError::NotThere {
            what: format!(
                "no order of the {LOOKED_THROUGH_MAX} newest and of the {LOOKED_THROUGH_MAX} newest in Error ends with {end}"
            ),
            advice: Some("give the whole ID; `stepwarden list --all -q` prints all of them"),
        }),
        several => {
            let count = several.len();
            let names = several.iter().map(|Named { order_id, process_state }| format!("{order_id} ({process_state})"));
            let names = names.collect::<Vec<_>>().join(", ");
            Err(CommandError::usage(format!("{count} orders end with {end}: {names}; give more characters of the one")))
        }
    }
}

/// The newest orders, and the newest of those in `Error`.
async fn looked_through(context: &Context) -> Result<Vec<Named>, CommandError> {
    let in_error = [("state", "Error".to_owned())];
    let (mut orders, in_error) = try_join(newest(context, &[]), newest(context, &in_error)).await?;
    orders.extend(in_error);
    Ok(orders)
}

async fn newest(context: &Context, filter: &[(&'static str, String)]) -> Result<Vec<Named>, RemoteError> {
    let (mut orders, mut cursor) = (Vec::new(), None);
    for _ in 0..LOOKED_THROUGH_MAX / PAGE_MAX {
        let page = list::page::<Named>(&context.remote, filter, PAGE_MAX, cursor).await?;
        orders.extend(page.orders);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    const ID: &str = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";

    fn named(id: &str) -> Named {
        Named { order_id: id.parse().unwrap(), process_state: "Error".to_owned() }
    }

    #[test]
    fn a_text_is_a_whole_id_an_end_of_one_or_left_to_the_api() {
        for (text, expected) in [
            (ID, Given::Whole(ID.to_owned())),
            (&ID.to_uppercase(), Given::Whole(ID.to_owned())),
            ("nobody", Given::Whole("nobody".to_owned())),
            ("../bulk", Given::Whole("../bulk".to_owned())),
            ("E011", Given::End("e011".to_owned())),
            ("8a21-5f0c9f4be011", Given::End("8a215f0c9f4be011".to_owned())),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        for text in ["011", "e-0-1"] {
            assert!(read(text).unwrap_err().to_string().contains("its last 4 characters"), "{text}");
        }
        for text in ["", " "] {
            assert_eq!(read(text).unwrap_err().exit(), Exit::Usage);
        }
    }

    #[test]
    fn an_end_is_that_of_one_order() {
        let other = "01934b2e-1c5a-7d3f-8a21-ffffffffe011";
        // An order in Error is in both lists.
        let orders = [named(ID), named(other), named(ID)];
        for end in ["4be011", "8a215f0c9f4be011", &ID.replace('-', "")] {
            assert_eq!(only(end, &orders).unwrap(), ID);
        }
        let several = only("e011", &orders).unwrap_err();
        let said = format!("2 orders end with e011: {ID} (Error), {other} (Error); give more characters of the one");
        assert_eq!(several.to_string(), said);
        let beginning = only("01934b2e", &orders).unwrap_err().to_string();
        assert_eq!(beginning, "an order's ID begins with 01934b2e: give the end, not the beginning");
        assert!(matches!(only("e012", &orders), Err(CommandError::NotThere { .. })));
        assert!(matches!(only(&format!("0{}", ID.replace('-', "")), &orders), Err(CommandError::NotThere { .. })));
    }
}
