//! Schemas of orders, and documents.

use domain::json::Json;
use domain::limits::{DOCUMENT_BYTES_MAX, MISFITS_MAX};
use domain::schema::Schema;
use domain::search::Pointer;

/// Stands between the schema and the documents.
const DOCUMENT: &str = "---\n";

/// A fault has a place in the text. What has none is stored in a text of TOML, and says the same of every document.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut parts = text.split(DOCUMENT);
    let given = parts.next().unwrap_or_default();
    let schema = match Schema::parse(given) {
        Ok(schema) => schema,
        Err(faults) => {
            let lines = given.matches('\n').count() + 1;
            assert!(!faults.0.is_empty());
            assert!(faults.0.iter().all(|fault| (1..=lines).contains(&fault.line) && !fault.problem.is_empty()));
            return;
        }
    };
    assert!(schema.text().chars().all(|one| one != '\'' && !one.is_ascii_control()), "it stands in quotes of TOML");
    let stored = Schema::stored(schema.text());
    assert_eq!(Schema::parse(stored.text()).as_ref(), Ok(&schema), "once minified it stays as it is");
    for text in parts {
        let Ok(document) = Json::received(text.as_bytes(), DOCUMENT_BYTES_MAX) else { continue };
        let verdict = schema.check(&document);
        assert_eq!(stored.check(&document), verdict);
        let Err(misfits) = verdict else { continue };
        assert!((1..=MISFITS_MAX).contains(&misfits.len()));
        for misfit in misfits {
            assert!(!misfit.reason.is_empty());
            assert!(misfit.pointer.ends_with(['?', '…']) || Pointer::parse(&misfit.pointer).is_ok(), "{misfit}");
        }
    }
}
