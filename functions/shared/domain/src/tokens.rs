//! One pass over the text of a JSON value.
//!
//! A search, a redaction or a fingerprint looks at every byte once, however deep the value is nested. A parser of one
//! level at a time reads the innermost value as often as there are levels around it.

use std::borrow::Cow;

/// A part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `{` or `[`.
    Open(&'a str),
    /// `}` or `]`.
    Close(&'a str),
    Comma,
    /// The literal of a member's name, with its quotes. The colon after it is consumed.
    Key(&'a str),
    /// The literal of a string, a number, `true`, `false` or `null`.
    Scalar(&'a str),
}

impl<'a> Token<'a> {
    /// Its text, of a key without the colon.
    pub(crate) const fn text(self) -> &'a str {
        match self {
            Self::Open(text) | Self::Close(text) | Self::Key(text) | Self::Scalar(text) => text,
            Self::Comma => ",",
        }
    }

    pub(crate) const fn is_key(self) -> bool {
        matches!(self, Self::Key(_))
    }
}

/// The tokens of a text that is known to be JSON. Of any other text the tokens mean nothing, and end.
#[derive(Debug, Clone)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) const fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Passes over the next value, and returns its text.
    pub(crate) fn value(&mut self) -> &'a str {
        self.skip_space();
        let begin = self.at;
        let mut depth = 0_usize;
        for token in self.by_ref() {
            match token {
                Token::Open(_) => depth += 1,
                Token::Close(_) => depth = depth.saturating_sub(1),
                Token::Comma | Token::Key(_) | Token::Scalar(_) => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.from(begin)
    }

    /// Calls `visit` with the key of each member of the object that begins here; `visit` passes over the value.
    pub(crate) fn members(&mut self, mut visit: impl FnMut(&mut Self, &'a str)) {
        self.next();
        while let Some(token) = self.next() {
            match token {
                Token::Key(key) => visit(self, key),
                Token::Comma => {}
                Token::Open(_) | Token::Close(_) | Token::Scalar(_) => break,
            }
        }
    }

    /// Calls `visit` with the position of each element of the array that begins here; `visit` passes over the element.
    pub(crate) fn elements(&mut self, mut visit: impl FnMut(&mut Self, usize)) {
        self.next();
        for place in 0.. {
            if matches!(self.first(), None | Some(b']')) {
                break;
            }
            visit(self, place);
            if self.next() != Some(Token::Comma) {
                return;
            }
        }
        self.next();
    }

    /// The first byte of the next token.
    pub(crate) fn first(&mut self) -> Option<u8> {
        self.skip_space();
        self.byte()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    fn from(&self, begin: usize) -> &'a str {
        self.text.get(begin..self.at).unwrap_or_default()
    }

    fn pass_string(&mut self) {
        self.at += 1;
        while let Some(rest) = self.text.as_bytes().get(self.at..) {
            let Some(plain) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
                self.at = self.text.len();
                return;
            };
            let is_end = rest[plain] == b'"';
            self.at += plain + if is_end { 1 } else { 2 };
            if is_end {
                return;
            }
        }
    }

    fn pass_plain(&mut self) {
        self.at += 1;
        while let Some(byte) = self.byte() {
            if matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\n' | b'\r') {
                return;
            }
            self.at += 1;
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let first = self.first()?;
        let begin = self.at;
        match first {
            b'"' => {
                self.pass_string();
                let (literal, end) = (self.from(begin), self.at);
                if self.first() == Some(b':') {
                    self.at += 1;
                    return Some(Token::Key(literal));
                }
                // What follows is no part of the string.
                self.at = end;
                return Some(Token::Scalar(literal));
            }
            b'{' | b'[' | b'}' | b']' | b',' => self.at += 1,
            _ => self.pass_plain(),
        }
        let text = self.from(begin);
        Some(match first {
            b'{' | b'[' => Token::Open(text),
            b'}' | b']' => Token::Close(text),
            b',' => Token::Comma,
            _ => Token::Scalar(text),
        })
    }
}

/// The text of a string literal; `None` for one that stands for no text (a lone surrogate).
pub(crate) fn literal_text(literal: &str) -> Option<Cow<'_, str>> {
    match is_plain(literal) {
        true => literal.get(1..literal.len() - 1).map(Cow::Borrowed),
        false => serde_json::from_str(literal).ok().map(Cow::Owned),
    }
}

/// Whether a literal has no escapes, the usual case: the characters between its quotes are its text, in its only
/// spelling.
pub(crate) fn is_plain(literal: &str) -> bool {
    literal.len() >= 2 && !literal.as_bytes().contains(&b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> Vec<String> {
        Tokens::of(text)
            .map(|token| match token {
                Token::Open(text) | Token::Close(text) | Token::Scalar(text) => text.to_owned(),
                Token::Comma => ",".to_owned(),
                Token::Key(text) => format!("{text}:"),
            })
            .collect()
    }

    #[test]
    fn a_text_is_cut_where_json_cuts_it() {
        let text = r#" { "a\"}" : [ 1.50e+3,true , "b:" ,{}, [] ] ,"é":null} "#;
        let expected = [
            "{",
            r#""a\"}":"#,
            "[",
            "1.50e+3",
            ",",
            "true",
            ",",
            r#""b:""#,
            ",",
            "{",
            "}",
            ",",
            "[",
            "]",
            "]",
            ",",
            r#""é":"#,
            "null",
            "}",
        ];
        assert_eq!(spelled(text), expected);
        assert_eq!(spelled(" \"x\" "), ["\"x\""]);
        assert_eq!(spelled(r#""\\""#), [r#""\\""#]);
    }

    #[test]
    fn a_value_is_passed_over_as_a_whole() {
        let mut tokens = Tokens::of(r#" [ {"a": [1, "]" ]} , "2" ]"#);
        assert_eq!(tokens.next(), Some(Token::Open("[")));
        assert_eq!(tokens.value(), r#"{"a": [1, "]" ]}"#);
        assert_eq!(tokens.next(), Some(Token::Comma));
        assert_eq!((tokens.value(), tokens.next(), tokens.next()), ("\"2\"", Some(Token::Close("]")), None));
    }

    #[test]
    fn members_and_elements_come_in_their_order() {
        let mut seen = Vec::new();
        let mut tokens = Tokens::of(r#"{"a": {"x": 1}, "b": [], "a": 2} 7"#);
        tokens.members(|tokens, key| seen.push(format!("{key} {}", tokens.value())));
        assert_eq!(seen, [r#""a" {"x": 1}"#, r#""b" []"#, r#""a" 2"#]);
        assert_eq!(tokens.value(), "7");
        let mut tokens = Tokens::of("[[], 2 ,{}] [ ] 8");
        seen.clear();
        tokens.elements(|tokens, place| seen.push(format!("{place} {}", tokens.value())));
        tokens.elements(|_, _| panic!("the array is empty"));
        assert_eq!((seen, tokens.value()), (["0 []", "1 2", "2 {}"].map(str::to_owned).to_vec(), "8"));
    }

    #[test]
    fn any_text_comes_to_an_end() {
        for text in ["", "\"", "\"\\", "{\"a\"", ":::", "]]", "é\u{80}x", "{,}", "[1 2]", "\"a\\\u{e9}\""] {
            let _ = (spelled(text), Tokens::of(text).value());
            Tokens::of(text).members(|tokens, _| _ = tokens.value());
            Tokens::of(text).elements(|tokens, _| _ = tokens.value());
        }
    }
}
