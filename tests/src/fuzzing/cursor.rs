//! Cursors of lists: as somebody made them up, and such as get past the checksum, which is no secret.

use api::{ApiConfig, Caller};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use domain::ports::{ListError, Store};
use http::Request;
use sha2::{Digest, Sha256};

use super::api as target;
use crate::world::now;

/// A cursor is taken or refused, and never a fault of ours; what the store is asked for it can answer.
pub(super) fn run(input: &[u8]) {
    let memory = target::memory();
    let Ok(text) = std::str::from_utf8(input) else { return };
    match now(memory.list(None, Some(text), 10)) {
        Ok(page) => assert!(page.tasks.len() <= 3),
        Err(error) => assert!(matches!(error, ListError::Cursor), "{error}"),
    }
    for (path, list) in [("/orders?", ""), ("/orders?state=Error&", "Error"), ("/dead-letters?", "dead-letters")] {
        for cursor in [percent_encoded(input), sealed(list, text)] {
            let request = Request::get(format!("{path}limit=1&cursor={cursor}")).body(Bytes::new());
            let Ok(request) = request else { continue };
            let response = now(api::handle(&memory, &ApiConfig::default(), &Caller::unrestricted("shop"), request));
            assert!([200, 400].contains(&response.status().as_u16()), "{response:?}");
        }
    }
}

/// A cursor with a valid checksum for a list, around a position that the store never gave.
fn sealed(list: &str, place: &str) -> String {
    let content = format!("{list}:{place}");
    let mut bytes = Sha256::digest(&content)[..8].to_vec();
    bytes.extend_from_slice(content.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn percent_encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
}
