//! Another spelling of a JSON text, made without the code that makes the canonical one.

use std::collections::BTreeSet;

/// The same value, spelled otherwise: members in reverse, white space wherever there may be some, every character of a
/// string escaped. The text must be JSON.
///
/// Members whose names are repeated stay in their order, since that says which of them counts.
pub(super) fn another(text: &str) -> String {
    let mut reader = Reader { text, at: 0 };
    let mut spelled = String::new();
    reader.value().write(&mut spelled);
    spelled
}

enum Tree<'a> {
    Object(Vec<(&'a str, Tree<'a>)>),
    Array(Vec<Tree<'a>>),
    /// A literal as it stands there.
    Leaf(&'a str),
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> u8 {
        while self.text.as_bytes()[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.as_bytes()[self.at]
    }

    /// Whether the list ends here; steps over its end, or over the comma before what follows.
    fn ends(&mut self, end: u8) -> bool {
        let found = self.peek();
        if found == b',' || found == end {
            self.at += 1;
        }
        found == end
    }

    fn value(&mut self) -> Tree<'a> {
        match self.peek() {
            b'{' => {
                self.at += 1;
                let mut members = Vec::new();
                while !self.ends(b'}') {
                    self.peek();
                    let name = self.literal();
                    self.peek();
                    self.at += 1;
                    members.push((name, self.value()));
                }
                Tree::Object(members)
            }
            b'[' => {
                self.at += 1;
                let mut elements = Vec::new();
                while !self.ends(b']') {
                    elements.push(self.value());
                }
                Tree::Array(elements)
            }
            _ => Tree::Leaf(self.literal()),
        }
    }

    /// A string, a number or a word.
    fn literal(&mut self) -> &'a str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if bytes[start] == b'"' {
            self.at += 1;
            while bytes[self.at] != b'"' {
                self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
            }
            self.at += 1;
        } else {
            let ends = |byte: &u8| b",]}".contains(byte) || byte.is_ascii_whitespace();
            self.at = bytes[start..].iter().position(ends).map_or(bytes.len(), |length| start + length);
        }
        &self.text[start..self.at]
    }
}

impl Tree<'_> {
    fn write(&self, into: &mut String) {
        match self {
            Self::Leaf(literal) => write_literal(literal, into),
            Self::Array(elements) => {
                into.push_str("[ ");
                for (place, element) in elements.iter().enumerate() {
                    into.push_str(if place == 0 { "" } else { "\t,\r\n" });
                    element.write(into);
                }
                into.push_str(" ]");
            }
            Self::Object(members) => {
                let names: BTreeSet<String> = members.iter().map(|(name, _)| plain(name)).collect();
                let mut order: Vec<usize> = (0..members.len()).collect();
                if names.len() == members.len() {
                    order.reverse();
                }
                into.push_str("{ ");
                for (place, member) in order.into_iter().enumerate() {
                    into.push_str(if place == 0 { "" } else { " , " });
                    write_literal(members[member].0, into);
                    into.push_str(" : ");
                    members[member].1.write(into);
                }
                into.push_str(" }");
            }
        }
    }
}

/// What a string stands for; of one that stands for no text, as a lone surrogate does, how it is spelled.
fn plain(literal: &str) -> String {
    serde_json::from_str(literal).unwrap_or_else(|_| literal.to_owned())
}

fn write_literal(literal: &str, into: &mut String) {
    let Ok(text) = serde_json::from_str::<String>(literal) else {
        return into.push_str(literal);
    };
    into.push('"');
    for unit in text.encode_utf16() {
        into.push_str(&format!("\\u{unit:04X}"));
    }
    into.push('"');
}
