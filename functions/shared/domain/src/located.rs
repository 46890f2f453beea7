//! Reads TOML by a table of its [`keys`](crate::keys), and collects all its faults at once, each with its line and column.
//!
//! A [`Document`] is read once: unknown and missing keys, wrong kinds and values out of range are found there. The [`Table`]
//! then gives the values that are good, and the defaults. What depends on several keys is checked by those who read them.

mod json;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

use crate::keys::{Key, Kind};
pub use table::{Document, Entry, Table};
pub use words::{WORDS, Words};
use words::{is_word_of, meant};

/// Every fault of a text, in its order. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

/// One fault, with advice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The key and its fault. It never repeats a secret.
    pub problem: String,
}

impl Fault {
    /// A fault at this byte of a text.
    #[must_use]
    pub fn at(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, problem: problem.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.problem)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if position > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

/// Collects faults.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    faults: Vec<Fault>,
    is_broken: bool,
}

impl<'a> Reader<'a> {
    /// A reader of a text that has no fault so far.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, faults: Vec::new(), is_broken: false }
    }

    /// `checked` if there is no fault.
    ///
    /// # Errors
    /// All faults, each once, in the order of the text.
    pub fn finish<T>(self, checked: T) -> Result<T, Faults> {
        let mut faults = self.faults;
        faults.sort();
        faults.dedup();
        if faults.is_empty() { Ok(checked) } else { Err(Faults(faults)) }
    }

    /// Whether the text is not TOML. What was read of it may not be all that it says.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Adds a fault at this byte, unless the text is broken: then it may follow from that.
    pub fn blame(&mut self, at: usize, problem: impl Into<String>) {
        if !self.is_broken {
            self.faults.push(Fault::at(self.text, at, problem));
        }
    }

    /// The only fault of a broken text. All others may follow from it.
    fn blame_only(&mut self, at: usize, problem: impl Into<String>) {
        self.faults = vec![Fault::at(self.text, at, problem)];
        self.is_broken = true;
    }

    /// Adds a fault of a value: its path, and the problem.
    pub fn blame_value(&mut self, entry: &Entry<'_>, problem: impl fmt::Display) {
        self.blame(entry.at, format!("{} {problem}", entry.path));
    }

    /// Where the first line with this text begins, in bytes.
    fn place_of_line(&self, text: &str) -> Option<usize> {
        let line = self.text.lines().find(|line| line.trim() == text)?;
        // A line is a part of the text.
        Some(line.as_ptr().addr() - self.text.as_ptr().addr() + line.len() - line.trim_start().len())
    }

    /// Finds what the keys tell of a file.
    fn check_file(&mut self, file: &Table<'_>) {
        let is_one = |key: &&Key| key.kind.is_of_tables() && file.get(key.name).is_some_and(|one| one.value.is_table());
        if let Some(Key { name, .. }) = file.keys.iter().find(is_one) {
            // Two of them are a key twice, which is not TOML.
            let at = self.place_of_line(&format!("[{name}]")).unwrap_or_else(|| file.at(name));
            self.blame_only(at, format!("a {name} begins with two brackets: write [[{name}]], not [{name}]"));
        }
        self.check_table(file, &[]);
    }

    /// Finds what the keys of a table tell of it. `above` are the tables that it is in, the file first.
    fn check_table(&mut self, table: &Table<'_>, above: &[&Table<'_>]) {
        let within: Vec<&Table<'_>> = above.iter().copied().chain([table]).collect();
        for (name, key_at, value) in table.values() {
            match table.key(name) {
                Some(key) => self.check(table.entry(name, &key.kind, value), key.example, &within),
                None => self.blame_unknown(name, key_at, &within),
            }
        }
        let names: Vec<&str> = table.values().map(|(name, ..)| name).collect();
        let is_missing = |key: &&Key| key.is_required && !names.contains(&key.name);
        let means = |name: &str, key: &str| {
            let is_written = |line: String| line.starts_with(&format!("[[{key}]]"));
            similar(name, [key]).is_some() || meant(name, table).is_some_and(is_written)
        };
        for key in table.keys.iter().filter(is_missing) {
            let problem = match key.kind.is_of_tables() {
                // A word for it, or a misspelt one, is a fault already.
                true if names.iter().any(|name| means(name, key.name)) => continue,
                true => format!("there is no [[{}{}]]: add one with a name", table.prefix, key.name),
                false => format!("{}{} is missing", table.prefix, key.name),
            };
            self.blame(table.at, problem);
        }
    }

    fn check(&mut self, entry: Entry<'_>, example: &str, within: &[&Table<'_>]) {
        if let Some(problem) = entry.kind.problem(entry.value) {
            let has_example = matches!(entry.kind, Kind::Array(..)) && !example.is_empty();
            let example = if has_example { format!(", such as {example}") } else { String::new() };
            return self.blame_value(&entry, format_args!("{problem}{example}"));
        }
        if let Kind::Named(names) = entry.kind {
            let (at, path) = (entry.at, entry.path.clone());
            let values = entry.named();
            if values.len() > names.max {
                self.blame(at, format!("{path} has {} entries: give at most {}", values.len(), names.max));
            }
            for (name, key_at, entry) in values {
                if let Err(problem) = (names.check)(name) {
                    self.blame(key_at, format!("{} {problem}", entry.path));
                }
                self.check(entry, example, within);
            }
        } else if entry.value.is_array() {
            entry.elements().into_iter().for_each(|element| self.check(element, "", within));
        } else if let Some(table) = entry.table() {
            self.check_table(&table, within);
        }
    }

    /// Blames a key that its table does not have. `within` are the tables that it is in, from the file to its own.
    fn blame_unknown(&mut self, name: &str, at: usize, within: &[&Table<'_>]) {
        let (Some(file), Some(table)) = (within.first(), within.last()) else { return };
        let home = within.iter().rev().find(|table| table.key(name).is_some()).map(|table| table.header.clone());
        let of_tables =
            |key: &&'static Key| key.kind.is_of_tables() && key.kind.keys().iter().any(|key| key.name == name);
        let home = home.or_else(|| {
            let of_tables = file.keys.iter().find(of_tables).filter(|_| !is_word_of(name, table))?;
            Some(format!("[[{}]]", of_tables.name))
        });
        let advice = match home.as_deref() {
            Some("") => " here: write it at the top of the file, above the first table".to_owned(),
            Some(home) => format!(" here: it belongs to {home}. Write it below that line, above the tables within it"),
            None => match meant(name, table) {
                Some(line) => format!(": write {line}"),
                None => known_names(name, "Settings", &table.keys.iter().map(|key| key.name).collect::<Vec<_>>()),
            },
        };
        self.blame(at, format!("{}{name} is not a setting{advice}", table.prefix));
    }
}

/// The known word that is most like this one, if it is a slip of one or two letters.
pub fn similar<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const DISTANCE_MAX: usize = 2;
    let with_distance = known.into_iter().map(|known| (strsim::osa_distance(word, known), known));
    let is_slip = |(distance, known): &(usize, &str)| {
        (1..=DISTANCE_MAX).contains(distance) && 3 * distance <= known.chars().count()
    };
    with_distance.filter(is_slip).min().map(|(_, known)| known)
}

/// The advice for a name that is not known: the one that may be meant, and all. `what` are they.
#[must_use]
pub fn known_names(name: &str, what: &str, known: &[&str]) -> String {
    let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match similar(name, known.iter().copied()) {
        Some(meant) => format!(": did you mean {meant}? {what} are: {all}"),
        None => format!(". {what} are: {all}"),
    }
}
