//! Texts from elsewhere on a terminal: of documents, services and operators.
//!
//! A terminal takes some characters for commands, and some turn the order of what is shown. No such character of a text
//! reaches it.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

/// Says something on stderr. Whether anybody reads it changes no exit status: the macros of the library panic then.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// In one line, without what a text could do to a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() || turns(c) { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A file of text, without what it could do to a terminal.
#[must_use]
pub fn lines(text: &str) -> String {
    text.replace(|c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c), " ")
}

/// With an escape such as `\u009b` for each character that JSON and TOML allow and a terminal takes for a command. So
/// they have the same value. What is below U+0020 stays: JSON has none, and the lines and colours are ours.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| matches!(c, '\u{7f}'..='\u{9f}') || turns(c);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) {
            // All of them are of the basic plane.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Whether it turns the direction in which the text after it is shown.
const fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARMFUL: [char; 8] = ['\u{7f}', '\u{80}', '\u{9b}', '\u{9f}', '\u{200e}', '\u{202e}', '\u{2066}', '\u{61c}'];

    #[test]
    fn a_file_keeps_its_lines_and_its_tabs_alone() {
        assert_eq!(lines("a = 1\n\tb = \"é\u{1b}[2J\"\r\n\u{9b}\u{202e}"), "a = 1\n\tb = \"é [2J\" \n  ");
    }

    #[test]
    fn json_keeps_its_value_and_has_nothing_harmful() {
        for c in HARMFUL {
            let text = format!(r#"{{"a":"é{c}31m\\{c}→"}}"#);
            let shown = escaped(&text);
            assert!(!shown.contains(HARMFUL) && shown.contains("\\u"), "{shown}");
            let [before, after] =
                [&*text, &*shown].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
            assert_eq!(before, after);
        }
        assert!(matches!(escaped("{\"a\": \"é → \u{1b}[31m\"}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_is_one_line_without_them() {
        assert_eq!(plain("no\nanswer\u{1b}[2J\u{9b}31m\u{202e}x  y"), "no answer [2J 31m x y");
        assert_eq!(plain("é → ünïcode"), "é → ünïcode");
    }
}
