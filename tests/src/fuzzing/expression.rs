//! Expressions of a workflow, and the documents that they are computed of.

use domain::json::Json;
use domain::limits::SENT_BYTES_MAX;
use domain::template::Template;

/// Whatever expression a workflow has and whatever an order is: what is computed ends, is JSON, and is the same once more.
///
/// The input is a line with the expression, and a document.
pub(super) fn run(input: &[u8]) {
    let Some((expression, document)) = std::str::from_utf8(input).ok().and_then(|text| text.split_once('\n')) else {
        return;
    };
    let Ok(document) = Json::document(document.as_bytes()) else { return };
    let sent = serde_json::json!({ "x": format!("={expression}") });
    let Ok(template) = Template::parse(Json::of(&sent)) else { return };
    let fill = || template.keep(&document, SENT_BYTES_MAX);
    let filled = fill();
    assert_eq!(filled, fill());
    match filled {
        Ok(value) => assert!(Json::document(value.text().as_bytes()).is_ok(), "{}", value.text()),
        Err(fault) => assert!(fault.to_string().len() < 5_000),
    }
}
