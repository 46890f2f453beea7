//! An error in one line.

use std::error::Error;

use local::terminal::plain;

/// The error and its causes in one line. A cause that the line already contains is not repeated.
#[must_use]
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        source = cause.source();
    }
    plain(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot {what}")]
    struct Outer {
        what: &'static str,
        source: Inner,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("disk\nfull")]
    struct Inner;

    #[test]
    fn causes_are_told_once_and_in_one_line() {
        assert_eq!(one_line(&Outer { what: "write", source: Inner }), "cannot write: disk full");
        assert_eq!(one_line(&Outer { what: "write: disk\nfull", source: Inner }), "cannot write: disk full");
    }
}
