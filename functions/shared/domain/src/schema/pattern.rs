//! Regular expressions of a schema: in the part of ECMA-262 that takes linear time.

use regex_lite::{Regex, RegexBuilder};

use crate::limits::TEXT_CHARS_MAX;

/// Largest pattern once it is compiled, in bytes. It bounds the time for each character of a text.
const COMPILED_BYTES_MAX: usize = 16 * 1024;
/// Smallest size that is told apart, in bytes.
const COMPILED_BYTES_MIN: usize = 512;
/// The part of a compiled pattern that is tried on one character in one step, in bytes.
const BYTES_PER_STEP: usize = 256;

/// What `\s` means in ECMA-262.
const SPACES: &str = r"\t\n\x0b\x0c\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// A pattern. It is found anywhere in a text, unless it has anchors.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// Its compiled form has no more bytes than this.
    bytes: usize,
    /// As the schema has it.
    pub(super) text: Box<str>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        if text.chars().count() > TEXT_CHARS_MAX {
            return Err(format!("is longer than {TEXT_CHARS_MAX} characters"));
        }
        let spelled = translated(text).map_err(|part| format!("has {part}, which is not of its dialect, ECMA-262"))?;
        let mut bytes = COMPILED_BYTES_MIN;
        loop {
            match RegexBuilder::new(&spelled).size_limit(bytes).build() {
                Ok(regex) => return Ok(Self { regex, bytes, text: text.into() }),
                Err(fault) if bytes >= COMPILED_BYTES_MAX => return Err(format!("cannot be used: {fault}")),
                Err(_) => bytes *= 2,
            }
        }
    }

    /// The steps of looking for it in a text.
    pub(super) fn steps(&self, text: &str) -> usize {
        self.bytes * (1 + text.len()) / BYTES_PER_STEP
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// The same pattern as the library spells it.
///
/// # Errors
/// The part that means something to the library, and nothing or something else in ECMA-262.
fn translated(pattern: &str) -> Result<String, &'static str> {
    const FOREIGN: [&str; 9] = [r"\A", r"\z", r"\a", r"\U", r"\x{", r"\b{", r"\<", r"\>", "(?P"];
    let mut into = String::with_capacity(pattern.len());
    let (mut rest, mut is_in_class) = (pattern, false);
    while let Some(first) = rest.chars().next() {
        if let Some(part) = FOREIGN.iter().find(|part| rest.starts_with(**part)) {
            return Err(part);
        }
        let is_flag = |flags: &str| !flags.starts_with([':', '<', '=', '!']);
        if !is_in_class && rest.strip_prefix("(?").is_some_and(is_flag) {
            return Err("flags in (?...)");
        }
        let length =
            if first == '\\' { 1 + rest[1..].chars().next().map_or(0, char::len_utf8) } else { first.len_utf8() };
        let (part, after) = rest.split_at(length);
        match (part, is_in_class) {
            (r"\s", true) => into.push_str(SPACES),
            (r"\s", false) => into.extend(["[", SPACES, "]"]),
            (r"\S", true) => return Err(r"\S within [...]"),
            (r"\S", false) => into.extend(["[^", SPACES, "]"]),
            (".", false) => into.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            ("[", true) => into.push_str(r"\["),
            ("[", false) if after.starts_with(']') || after.starts_with("^]") => return Err("an empty class []"),
            _ => into.push_str(part),
        }
        is_in_class = part == "[" || (is_in_class && part != "]");
        rest = after;
    }
    Ok(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_what_it_means_in_ecma_262() {
        for (pattern, text, expected) in [
            ("b+", "abba", true),
            ("^b+$", "abba", false),
            (r"^\d{2}$", "12", true),
            (r"^\d{2}$", "١٢", false),
            (r"^\w$", "é", false),
            (r"^\s$", "\u{a0}", true),
            (r"^[\s,]$", "\u{3000}", true),
            (r"^\S$", "\u{feff}", false),
            ("^.$", "\u{2028}", false),
            ("^.$", "😀", true),
            ("^[.]$", "x", false),
            ("^[[]$", "[", true),
            ("^[[:alpha:]]$", "a]", true),
            (r"^[\]]\/$", "]/", true),
            (r"^\u0041\x42\u{43}$", "ABC", true),
            (r"^(?<year>\d+)(?:-)\d+$", "2026-11", true),
            (r"^a$", "a\n", false),
        ] {
            let found = Pattern::of(pattern).unwrap_or_else(|fault| panic!("{pattern}: {fault}"));
            assert_eq!(found.is_in(text), expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn what_it_cannot_mean_or_takes_too_long_is_refused() {
        for (pattern, fault) in [
            ("(", "cannot be used: found open group"),
            ("(?=a)", "cannot be used: look-around is not supported"),
            (r"(a)\1", "cannot be used: backreferences are not supported"),
            (r"\p{L}", "cannot be used: Unicode character classes are not supported"),
            ("(?i)a", "has flags in (?...), which"),
            (r"\Aa\z", r"has \A, which"),
            (r"[\S]", r"has \S within [...], which"),
            ("^[]a]$", "has an empty class [], which"),
            ("^[^]a]$", "has an empty class [], which"),
            ("((((a{30}){30}){30}){30}){30}", "cannot be used: compiled regex exceeded size limit"),
            (&"(".repeat(100), "cannot be used: pattern has too much nesting"),
            (&"a".repeat(257), "is longer than 256 characters"),
        ] {
            let found = Pattern::of(pattern).unwrap_err();
            assert!(found.starts_with(fault), "{pattern}: {found}");
        }
        let [small, large] = ["^a$", "^[a-z]{1,60}$"].map(|pattern| Pattern::of(pattern).unwrap().steps("aaaa"));
        assert!(small == 10 && large > 10 * small, "{small} {large}");
    }
}
