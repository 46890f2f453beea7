//! The parts of an expression that was read: its pointers, and its texts in quotes.

/// What stands in an expression.
pub(super) struct Parts<'t> {
    /// The pointers, as they are written. Those of `at("…")` are texts.
    pub(super) pointers: Vec<&'t str>,
    /// The texts in quotes, each with what stands before it.
    pub(super) texts: Vec<(&'t str, &'t str)>,
}

impl<'t> Parts<'t> {
    /// No pointer has a quote, and no text has an escape. So a quote always begins or ends a text.
    pub(super) fn of(expression: &'t str) -> Self {
        let (mut pointers, mut texts, mut rest) = (Vec::new(), Vec::new(), expression);
        loop {
            let at = rest.find(['"', '\'']).unwrap_or(rest.len());
            let (bare, quoted) = rest.split_at(at);
            let words = bare.split(|sign: char| sign.is_whitespace() || "(),[]".contains(sign));
            let words = words.map(|word| word.trim_start_matches('-'));
            pointers.extend(words.filter(|word| word.len() > 1 && word.starts_with('/')));
            let inner = quoted.get(1..).and_then(|inner| inner.split_once(&quoted[..1]));
            let Some((text, after)) = inner else { return Self { pointers, texts } };
            texts.push((bare, text));
            rest = after;
        }
    }

    /// Whether it names a position.
    pub(super) fn has_place(&self) -> bool {
        !self.pointers.is_empty() || self.texts.iter().any(|(before, _)| is_at(before))
    }
}

/// Whether a text behind this is that of `at("…")`: a pointer.
pub(super) fn is_at(before: &str) -> bool {
    before.trim_end().strip_suffix('(').is_some_and(|before| before.trim_end().ends_with("at"))
}
