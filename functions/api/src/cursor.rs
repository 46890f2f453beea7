//! The cursor of a caller from one page of a list to the next.
//!
//! To the caller it is opaque. It contains the list that it was made for and the store's own cursor. The checksum is
//! no secret. It keeps accidental cursors from the store, which must withstand a forged one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::ports::{ListError, Page, Store};
use domain::task::ProcessState;
use sha2::{Digest, Sha256};

use crate::ports::ApiPorts;
use crate::problem::Problem;

const CHECKSUM_BYTES: usize = 8;
/// Longest accepted cursor, in characters.
const CURSOR_CHARS_MAX: usize = 2_048;

/// The caller's cursor for the store's cursor `next` of this list, whose name has no colon.
pub(crate) fn seal(list: &str, next: &str) -> String {
    let content = format!("{list}:{next}");
    let mut sealed = checksum(&content).to_vec();
    sealed.extend_from_slice(content.as_bytes());
    URL_SAFE_NO_PAD.encode(sealed)
}

/// The store's cursor from the caller's cursor.
///
/// # Errors
/// [`Problem::Invalid`] if it was not made by [`seal`], or for another list.
pub(crate) fn open(list: &str, cursor: &str) -> Result<String, Problem> {
    let content = content(cursor).ok_or_else(made_up)?;
    let (made_for, next) = content.split_once(':').ok_or_else(made_up)?;
    if made_for != list {
        return Err(Problem::parameter("cursor", "belongs to another list"));
    }
    Ok(next.to_owned())
}

/// The problem of a cursor that no list returned.
pub(crate) fn made_up() -> Problem {
    Problem::parameter("cursor", "is not one that this list gave; start without it")
}

fn content(cursor: &str) -> Option<String> {
    if cursor.len() > CURSOR_CHARS_MAX {
        return None;
    }
    let sealed = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (sum, content) = sealed.split_at_checked(CHECKSUM_BYTES)?;
    let content = std::str::from_utf8(content).ok()?;
    (sum == checksum(content)).then(|| content.to_owned())
}

fn checksum(content: &str) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&Sha256::digest(content)[..CHECKSUM_BYTES]);
    sum
}

/// A page of the store's own list.
///
/// # Errors
/// [`Problem::Invalid`] if `after` is not of this list; [`Problem::Unavailable`].
pub(crate) async fn page(
    ports: &impl ApiPorts,
    state: Option<ProcessState>,
    after: Option<&str>,
    limit: usize,
) -> Result<Page, Problem> {
    ports.store().list(state, after, limit).await.map_err(problem)
}

/// The problem of a list that could not be made.
pub(crate) fn problem(error: ListError) -> Problem {
    match error {
        ListError::Cursor => made_up(),
        ListError::Port(error) => Problem::unread(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_opened_for_the_list_that_it_was_made_for() {
        for list in ["", "Error", "Processed"] {
            assert_eq!(open(list, &seal(list, "a:b/ü")).unwrap(), "a:b/ü");
        }
        assert!(open("Error", &seal("", "x")).is_err());
        assert!(open("", &seal("Error", "x")).is_err());
    }

    #[test]
    fn a_forged_or_changed_cursor_is_refused() {
        let sealed = seal("Error", "position");
        for at in 0..sealed.len() {
            let other = if sealed.as_bytes()[at] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &sealed[..at], &sealed[at + 1..]);
            assert!(open("Error", &changed).is_err(), "{changed}");
        }
        let forged = URL_SAFE_NO_PAD.encode("00000000Error:position");
        for made_up in ["", "x", "Error:position", &forged, &sealed[1..], &format!("{sealed}=")] {
            assert!(open("Error", made_up).is_err(), "{made_up}");
        }
    }
}
