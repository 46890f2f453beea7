//! Rule 19: a service gets what the workflow says, and nothing else.

use crate::json::Json;
use crate::limits::{HEADERS_BYTES_MAX, SENT_BYTES_MAX};
use crate::machine::request;
use crate::machine::testing::Case;
use crate::message::{Outcome, Reply, Request};
use crate::order::Order;
use crate::task::ProcessState;
use crate::workflow::{Encoding, Method};

const SECRET: &str = "4111-1111";
const SHIP: &str = r#"
send = { ref = "/OrderID", to = "/Order/ShipTo", receipt = "/Outputs/pay/Id", note = "/Order/Note?", tag = "order" }
path = "parcels/{/Order/Ref}/{/Outputs/pay/Id}"
keep = { ID = "/id" }
[step.undo]
send = { parcel = "/Outputs/ship/ID?" }
path = "cancel"
"#;

/// `pay` gets the whole document, and `ship` a part.
fn case() -> Case {
    Case::new(&[("pay", &[], ""), ("ship", &["pay"], SHIP)], false)
}

fn order_of(case: &Case, document: &str) -> Order {
    Order { document: Json::document(document.as_bytes()).unwrap(), ..case.order() }
}

fn order(case: &Case) -> Order {
    order_of(case, &format!(r#"{{"Card": "{SECRET}", "Ref": "a/b", "ShipTo": {{"Zip": 1.10e0}}}}"#))
}

fn sent(case: &Case, order: &Order, name: &str) -> Result<Request, Reply> {
    let (index, _) = case.task.step(name).unwrap();
    request(&case.task, &case.workflow, index, order, case.now, 1).unwrap().map(|(_, request)| request)
}

#[test]
fn a_mapped_request_carries_what_is_sent_and_nothing_else() {
    let mut case = case();
    case.wake();
    let order = order(&case);
    let whole = sent(&case, &order, "pay").unwrap();
    assert_eq!((&whole.order, &whole.body, &whole.path, &whole.keep), (&order.document, &None, &None, &None));
    case.done("pay");
    let mapped = sent(&case, &order, "ship").unwrap();
    let body = mapped.body.as_ref().unwrap().text();
    let expected = format!(r#"{{"receipt":7,"ref":"{}","tag":"order","to":{{"Zip": 1.10e0}}}}"#, case.task.order_id);
    assert_eq!(body, expected, "digit for digit, and without the note that the order does not have");
    assert_eq!((mapped.path.as_deref(), mapped.encode), (Some("parcels/a%2Fb/7"), Encoding::Json));
    assert!(mapped.keep.is_some() && mapped.outputs.is_empty() && mapped.order == Json::empty());
    assert!(!serde_json::to_string(&mapped).unwrap().contains(SECRET));
}

#[test]
fn rule_19_a_call_by_get_or_delete_sends_nothing_and_the_key_goes_where_the_step_says() {
    let pay = r#"
method = "PUT"
send = { key = "/IdempotencyKey" }
path = "{/OrderID}?card={/Order/Card}&note={/Order/Note?}"
headers = { X-Key = "/IdempotencyKey", X-Ref = "/Order/Ref", X-Note = "/Order/Note?", X-Kind = "order" }
[step.undo]
method = "DELETE"
path = "{/OrderID}"
"#;
    let mut case = Case::new(&[("pay", &[], pay), ("ship", &["pay"], "")], false);
    case.wake();
    let order = order(&case);
    let forward = sent(&case, &order, "pay").unwrap();
    let key = &*forward.idempotency_key;
    assert_eq!((forward.method, forward.body.unwrap().text()), (Method::Put, &*format!(r#"{{"key":"{key}"}}"#)));
    assert_eq!(forward.path.as_deref(), Some(&*format!("{}?card={SECRET}", case.task.order_id)));
    let header = |name: &str| forward.headers.get(name).map(|value| &**value);
    let null = sent(&case, &order_of(&case, r#"{"Card": 1, "Ref": "a", "Note": null}"#), "pay").unwrap();
    assert!(!null.headers.contains_key("X-Note"), "null is no value of a header");
    assert_eq!(["X-Key", "X-Ref", "X-Kind", "X-Note"].map(header), [Some(key), Some("a/b"), Some("order"), None]);
    case.done("pay");
    case.rejected("ship");
    case.done("ship");
    let undo = sent(&case, &order, "pay").unwrap();
    assert_eq!((undo.method, &undo.body, &undo.order), (Method::Delete, &None, &Json::empty()));
    assert!(undo.outputs.is_empty() && undo.headers.is_empty());
}

#[test]
fn rule_19_an_expression_is_computed_of_the_order_and_is_the_same_in_each_attempt() {
    let pay = r#"
send = { cents = "= round(/Order/Total * 100, 0, half-even)", due = "= /SubmittedAt + 30d", of = "= 'order ' + /OrderID" }
path = "cards/{= text(/Order/Total) + 'x'}"
headers = { X-Kind = "= if(/Order/Total > 100, 'large', 'small')" }
undo = "none"
"#;
    let mut case = Case::new(&[("pay", &[], pay)], false);
    case.wake();
    let order = order_of(&case, r#"{"Total": 12.505}"#);
    let first = sent(&case, &order, "pay").unwrap();
    let body = first.body.as_ref().unwrap().text();
    let (due, id) = (order.submitted_at.plus_ms(30 * 24 * 60 * 60 * 1_000), case.task.order_id);
    assert_eq!(body, format!(r#"{{"cents":1250,"due":"{due}","of":"order {id}"}}"#));
    assert_eq!((first.path.as_deref(), &*first.headers["X-Kind"]), (Some("cards/12.505x"), "small"));
    case.expire_all();
    case.retry_all();
    let second = sent(&case, &order, "pay").unwrap();
    assert_eq!((second.attempt, &second.body, &second.path), (2, &first.body, &first.path));
    let failed = sent(&case, &order_of(&case, r#"{"Total": "a lot"}"#), "pay").unwrap_err();
    let Outcome::Failed(failure) = &failed.outcome else { panic!("{failed:?}") };
    assert!(&*failure.code == "unsendable" && !failure.message.contains("a lot"), "{failure:?}");
    assert!(failure.message.contains("a number is needed, and a text is there"), "{failure:?}");
}

#[test]
fn rule_19_a_query_without_parameters_leaves_the_url_as_it_is() {
    let pay = "method = \"GET\"\npath = \"?note={/Order/Note?}\"";
    let mut case = Case::new(&[("pay", &[], pay)], false);
    case.wake();
    let path = |document: &str| sent(&case, &order_of(&case, document), "pay").unwrap().path;
    assert_eq!([path("{}"), path(r#"{"Note": 1}"#)], [None, Some("?note=1".into())]);
}

#[test]
fn rule_33_a_comparison_without_a_value_skips_nothing_and_sends_nothing() {
    let check = "when = \"/Order/Total * 2 > 1\"\nundo = \"none\"";
    let mut case = Case::new(&[("check", &[], check)], false);
    case.wake();
    assert!(sent(&case, &order_of(&case, r#"{"Total": 900}"#), "check").is_ok());
    let failed = sent(&case, &order_of(&case, r#"{"Total": "900"}"#), "check").unwrap_err();
    let Outcome::Failed(failure) = &failed.outcome else { panic!("{failed:?}") };
    let message = "`when` cannot compute \"/Order/Total * 2 > 1\": a number is needed, and a text is there";
    assert_eq!((&*failure.code, &*failure.message), ("unsendable", message));
}

#[test]
fn rule_19_what_no_header_can_hold_is_not_sent() {
    for value in [r#""a\nb""#, r#""caf\u00e9""#, r#"" a""#, "{}", &format!("\"{}\"", "x".repeat(HEADERS_BYTES_MAX))] {
        let mut case = Case::new(&[("pay", &[], "headers = { X-Ref = \"/Order/Ref\" }")], false);
        case.wake();
        let failed = sent(&case, &order_of(&case, &format!("{{\"Ref\":{value}}}")), "pay").unwrap_err();
        let Outcome::Failed(failure) = &failed.outcome else { panic!("{failed:?}") };
        assert!(&*failure.code == "unsendable" && failure.message.contains("`headers` "), "{failure:?}");
    }
}

#[test]
fn a_mapped_call_is_the_same_over_all_attempts() {
    let mut case = case();
    case.wake();
    case.done("pay");
    let order = order(&case);
    let first = sent(&case, &order, "ship").unwrap();
    case.expire_all();
    case.retry_all();
    let second = sent(&case, &order, "ship").unwrap();
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!((first.body, first.path, first.idempotency_key), (second.body, second.path, second.idempotency_key));
}

#[test]
fn an_undo_has_a_mapping_of_its_own_with_the_output_of_its_step() {
    let mut case = Case::new(&[("pay", &[], ""), ("ship", &["pay"], SHIP), ("tell", &["ship"], "")], false);
    case.wake();
    case.done("pay");
    let output = Json::parse(br#"{"ID": 2.50}"#, 99).unwrap();
    case.take(&case.reply_of("ship", Outcome::Done(output)));
    case.rejected("tell");
    case.done("tell");
    let order = order(&case);
    let undo = sent(&case, &order, "ship").unwrap();
    assert_eq!((undo.body.unwrap().text(), undo.path.as_deref()), (r#"{"parcel":2.50}"#, Some("cancel")));
    assert!(undo.keep.is_none() && undo.outputs.is_empty());
}

#[test]
fn a_mapping_that_cannot_be_filled_fails_the_step() {
    let long = "x".repeat(SENT_BYTES_MAX - 60);
    for (document, problem) in [
        (r#"{"ShipTo": 1}"#.to_owned(), "`path` needs a text, a number or a boolean at /Order/Ref"),
        (r#"{"Ref": ["a"]}"#.to_owned(), "`path` needs a text, a number or a boolean at /Order/Ref"),
        (r#"{"Ref": "a"}"#.to_owned(), "`send` has nothing at /Order/ShipTo; a ? at the end"),
        (r#"{"Ref": ".."}"#.to_owned(), "`path` has a segment that is empty or dots"),
        (format!(r#"{{"Ref": "a", "ShipTo": "{long}"}}"#), "over the limit of 131072"),
    ] {
        let mut case = case();
        case.wake();
        case.done("pay");
        let failed = sent(&case, &order_of(&case, &document), "ship").unwrap_err();
        let Outcome::Failed(failure) = &failed.outcome else { panic!("{failed:?}") };
        assert!(&*failure.code == "unsendable" && failure.message.contains(problem), "{failure:?}");
        case.take(&failed);
        assert_eq!(case.state(), ProcessState::Compensating);
    }
}

#[test]
fn only_an_object_is_sent_as_a_form() {
    for (encode, document, is_sent) in [
        ("form", r#"{"Item": {"Id": 7}}"#, true),
        ("form", r#"{"Item": [7]}"#, false),
        ("json", r#"{"Item": [7]}"#, true),
        ("json", r#"{"Item": {"Id": 7}}"#, true),
    ] {
        let step = format!("send = \"/Order/Item\"\nencode = \"{encode}\"\n[step.undo]\nsend = {{}}");
        let mut case = Case::new(&[("pay", &[], &step)], false);
        case.wake();
        let sent = sent(&case, &order_of(&case, document), "pay");
        assert_eq!(sent.is_ok(), is_sent, "{encode} {document}: {sent:?}");
    }
}
