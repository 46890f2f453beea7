//! The tables of a file, and the values at their keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Reader;
use crate::keys::{Key, Kind, time_of};
use crate::time::Timestamp;

/// A text of TOML.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    table: DeTable<'a>,
    /// Where it is no TOML, and why.
    broken: Option<(usize, String)>,
}

/// A table of a file, with its keys. A value with a fault is read as if it was not there.
#[derive(Debug, Clone)]
pub struct Table<'t> {
    /// Like `agents.payment`, or a name for people.
    pub path: String,
    /// Where the table begins, in bytes.
    pub at: usize,
    /// What the paths of its values begin with.
    pub(super) prefix: String,
    /// The line that begins it in a file. Empty for the file itself.
    pub(super) header: String,
    pub(super) keys: &'static [Key],
    /// `None`: the file does not have it.
    values: Option<&'t DeTable<'t>>,
}

/// A value at its key.
#[derive(Debug, Clone)]
pub struct Entry<'t> {
    /// Like `agents.payment.url`.
    pub path: String,
    /// Where the value begins, in bytes.
    pub at: usize,
    /// Where it ends.
    pub end: usize,
    /// The value.
    pub value: &'t DeValue<'t>,
    pub(super) kind: &'static Kind,
}

impl<'a> Document<'a> {
    /// Reads what can be read of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let place = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        let first = errors.iter().min_by_key(|error| place(error));
        let broken = first.map(|first| (place(first), format!("is not TOML: {}", first.message())));
        Self { text, table: table.into_inner(), broken }
    }

    /// The table of the whole text, and all faults of it that these keys tell.
    pub fn read(&self, keys: &'static [Key]) -> (Reader<'a>, Table<'_>) {
        let mut reader = Reader::new(self.text);
        let (path, prefix, header) = (String::new(), String::new(), String::new());
        let root = Table { path, at: 0, prefix, header, keys, values: Some(&self.table) };
        if let Some((at, problem)) = &self.broken {
            reader.blame_only(*at, problem);
        }
        reader.check_file(&root);
        (reader, root)
    }
}

impl<'t> Table<'t> {
    pub(super) fn values(&self) -> impl Iterator<Item = (&'t str, usize, &'t Spanned<DeValue<'t>>)> + use<'t> {
        let values = self.values.into_iter().flat_map(|values| values.iter());
        values.map(|(key, value)| (&**key.get_ref(), key.span().start, value))
    }

    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(super) fn entry(&self, name: &str, kind: &'static Kind, value: &'t Spanned<DeValue<'t>>) -> Entry<'t> {
        let path = format!("{}{name}", self.prefix);
        Entry::new(path, kind, value)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Entry<'t>> {
        let key = self.key(name);
        debug_assert!(key.is_some(), "{name} is no key of {}", self.path);
        let (_, _, value) = self.values().find(|(known, ..)| *known == name)?;
        Some(self.entry(name, &key?.kind, value))
    }

    /// Whether the file has this table.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.values.is_some()
    }

    /// Where the value of a key begins; without it, where the table does.
    #[must_use]
    pub fn at(&self, name: &str) -> usize {
        self.get(name).map_or(self.at, |entry| entry.at)
    }

    fn default(&self, name: &str) -> &'static str {
        self.key(name).map_or("", |key| key.default)
    }

    /// A text without blanks at its ends.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'t str> {
        self.exact_text(name).map(str::trim)
    }

    /// A text as it stands.
    #[must_use]
    pub fn exact_text(&self, name: &str) -> Option<&'t str> {
        self.get(name)?.exact_text()
    }

    /// The one of these that a word names. They are in the order of the words.
    #[must_use]
    pub fn word<T: Copy>(&self, name: &str, meanings: &[T]) -> Option<T> {
        let words = self.key(name)?.kind.words();
        let position = |word: &str| words.iter().position(|known| *known == word);
        let given = self.get(name).and_then(|entry| position(entry.value.as_str()?));
        meanings.get(given.or_else(|| position(self.default(name)))?).copied()
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(|entry| entry.value.as_bool()).unwrap_or_else(|| self.default(name) == "true")
    }

    /// A whole number in its range, or else the default.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        let given = self.get(name).and_then(|entry| entry.kind.number(entry.value));
        given.or_else(|| self.default(name).parse().ok())
    }

    /// A time in its range in milliseconds, or else the default.
    #[must_use]
    pub fn time_ms(&self, name: &str) -> Option<u64> {
        let given = self.get(name).and_then(|entry| entry.kind.time_ms(entry.value.as_str()?));
        given.or_else(|| self.key(name)?.kind.time_ms(self.default(name)))
    }

    /// A point in time.
    #[must_use]
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        time_of(self.get(name)?.value)
    }

    /// A table. Where the file has none, all its keys have their defaults.
    #[must_use]
    pub fn table(&self, name: &str) -> Table<'t> {
        let keys = self.key(name).map_or(&[][..], |key| key.kind.keys());
        let given = self.get(name).and_then(Entry::table);
        given.unwrap_or_else(|| Table { path: format!("{}{name}", self.prefix), keys, values: None, ..self.clone() })
    }

    /// The elements of an array.
    #[must_use]
    pub fn elements(&self, name: &str) -> Vec<Entry<'t>> {
        self.get(name).map(Entry::elements).unwrap_or_default()
    }

    /// The elements of an array, or the value that stands for an array of one.
    #[must_use]
    pub fn one_or_more(&self, name: &str) -> Vec<Entry<'t>> {
        match self.get(name) {
            Some(entry) if !entry.value.is_array() => vec![entry],
            entry => entry.map(Entry::elements).unwrap_or_default(),
        }
    }

    /// All values of a table whose keys are names. With each comes the place of its key.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<(&'t str, usize, Entry<'t>)> {
        self.get(name).map(Entry::named).unwrap_or_default()
    }
}

impl<'t> Entry<'t> {
    fn new(path: String, kind: &'static Kind, value: &'t Spanned<DeValue<'t>>) -> Self {
        let (span, value) = (value.span(), value.get_ref());
        Self { path, at: span.start, end: span.end, value, kind: kind.of(value) }
    }

    /// A text without blanks at its ends.
    #[must_use]
    pub fn text(&self) -> Option<&'t str> {
        self.exact_text().map(str::trim)
    }

    /// A text as it stands.
    #[must_use]
    pub fn exact_text(&self) -> Option<&'t str> {
        self.value.as_str().filter(|_| self.kind.problem(self.value).is_none())
    }

    /// The table, if the value is one. One of an array that has a name is called by it: `step "pay"`.
    #[must_use]
    pub fn table(self) -> Option<Table<'t>> {
        let (Kind::Table(keys), DeValue::Table(values)) = (self.kind, self.value) else { return None };
        let Self { path, at, .. } = self;
        let element = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
        let Some((array, index)) = element.filter(|_| keys.iter().any(|key| key.name == "name")) else {
            let (prefix, header) = (format!("{path}."), format!("[{path}]"));
            return Some(Table { path, at, prefix, header, keys, values: Some(values) });
        };
        let name = self.value.get("name").and_then(|name| name.get_ref().as_str());
        let number = index.parse().map_or(0, |index: usize| index + 1);
        let path = name.map_or_else(|| format!("{array} {number}"), |name| format!("{array} {name:?}"));
        let (prefix, header) = (format!("{path}: "), format!("[[{array}]]"));
        Some(Table { path, at, prefix, header, keys, values: Some(values) })
    }

    /// The elements, if the value is an array.
    #[must_use]
    pub fn elements(self) -> Vec<Entry<'t>> {
        let (Kind::Array(_, _, kind), DeValue::Array(elements)) = (self.kind, self.value) else { return Vec::new() };
        let element = |(index, value)| Entry::new(format!("{}[{index}]", self.path), kind, value);
        match self.kind.problem(self.value) {
            None => elements.iter().enumerate().map(element).collect(),
            Some(_) => Vec::new(),
        }
    }

    pub(super) fn named(self) -> Vec<(&'t str, usize, Entry<'t>)> {
        let (Kind::Named(names), DeValue::Table(values)) = (self.kind, self.value) else { return Vec::new() };
        let (prefix, header, path) = (format!("{}.", self.path), String::new(), self.path);
        let table = Table { path, at: self.at, prefix, header, keys: &[], values: Some(values) };
        table.values().map(|(name, at, value)| (name, at, table.entry(name, &names.kind, value))).collect()
    }

    /// The place of the first text in the value that `is_it`; otherwise the place of the value.
    #[must_use]
    pub fn place_of(&self, is_it: impl Fn(&str) -> bool) -> usize {
        let mut open = vec![(self.at, self.value)];
        while let Some((at, value)) = open.pop() {
            match value {
                DeValue::String(text) if is_it(text) => return at,
                DeValue::Array(elements) => {
                    open.extend(elements.iter().rev().map(|element| (element.span().start, element.get_ref())));
                }
                DeValue::Table(members) => {
                    let members = members.iter().map(|(_, value)| (value.span().start, value.get_ref()));
                    open.extend(members.collect::<Vec<_>>().into_iter().rev());
                }
                DeValue::String(_)
                | DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_) => {}
            }
        }
        self.at
    }
}
