//! Reads TOML and collects all its faults at once, each with its line and column.
//!
//! A [`Reader`] hands out the [`Table`] of a text. Keys are taken from a table one by one, and those that are left at
//! its [`end`](Reader::end) are unknown. A bad value is read as `None`, so that reading goes on.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

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
    homes: &'static [Home],
}

/// Keys, and where they belong: for those that stand in another table.
pub type Home = (&'static [&'static str], &'static str);

/// A value at its key.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Like `agents.payment.url`.
    pub path: String,
    /// Where the value begins, in bytes.
    pub at: usize,
    /// The value.
    pub value: DeValue<'a>,
}

/// A table, whose keys are taken one by one.
#[derive(Debug)]
pub struct Table<'a> {
    /// Like `agents.payment`, or a name for people.
    pub path: String,
    /// Where the table begins, in bytes.
    pub at: usize,
    /// What the paths of its values begin with.
    prefix: String,
    entries: BTreeMap<String, (usize, Entry<'a>)>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    fn new(path: String, prefix: String, at: usize, table: DeTable<'a>) -> Self {
        let entry = |(key, value): (Spanned<std::borrow::Cow<'a, str>>, Spanned<DeValue<'a>>)| {
            let key_at = key.span().start;
            let key = key.into_inner().into_owned();
            let path = format!("{prefix}{key}");
            (key, (key_at, Entry { path, at: value.span().start, value: value.into_inner() }))
        };
        let entries = table.into_iter().map(entry).collect();
        Self { path, at, prefix, entries, known: Vec::new() }
    }

    /// The value of a known key.
    pub fn take(&mut self, key: &'static str) -> Option<Entry<'a>> {
        self.known.push(key);
        self.entries.remove(key).map(|(_, entry)| entry)
    }

    /// Whether an unknown key looks like this one.
    #[must_use]
    pub fn has_like(&self, key: &'static str) -> bool {
        self.entries.keys().any(|left| similar(left, [key]).is_some())
    }

    /// All values that are left, for a table whose keys are names. With each comes the place of its key.
    pub fn take_all(&mut self) -> impl Iterator<Item = (String, usize, Entry<'a>)> + use<'a> {
        std::mem::take(&mut self.entries).into_iter().map(|(key, (at, entry))| (key, at, entry))
    }
}

impl<'a> Entry<'a> {
    /// Whether it is written as `[[key]]`, or as an array of tables.
    fn has_tables(&self) -> bool {
        let DeValue::Array(elements) = &self.value else { return false };
        elements.iter().next().is_some_and(|first| first.get_ref().is_table())
    }

    /// The elements, if the value is an array.
    pub fn elements(self) -> Option<impl ExactSizeIterator<Item = Entry<'a>>> {
        let Self { path, value, .. } = self;
        let DeValue::Array(elements) = value else { return None };
        let element = move |(index, value): (usize, Spanned<DeValue<'a>>)| Entry {
            path: format!("{path}[{index}]"),
            at: value.span().start,
            value: value.into_inner(),
        };
        Some(elements.into_iter().enumerate().map(element))
    }

    /// The place of the first text in the value that `is_it`; otherwise the place of the value.
    #[must_use]
    pub fn place_of(&self, is_it: impl Fn(&str) -> bool) -> usize {
        let mut open = vec![(self.at, &self.value)];
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

impl<'a> Reader<'a> {
    /// The table of the whole text.
    #[must_use]
    pub fn new(text: &'a str) -> (Self, Table<'a>) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = Self { text, faults: Vec::new(), is_broken: false, homes: &[] };
        let place = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        if let Some(first) = errors.iter().min_by_key(|error| place(error)) {
            reader.blame_only(place(first), format!("is not TOML: {}", first.message()));
        }
        (reader, Table::new(String::new(), String::new(), 0, table.into_inner()))
    }

    /// Says where keys belong, for faults of those that stand elsewhere.
    pub const fn set_homes(&mut self, homes: &'static [Home]) {
        self.homes = homes;
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
    pub fn blame_only(&mut self, at: usize, problem: impl Into<String>) {
        self.faults = vec![Fault::at(self.text, at, problem)];
        self.is_broken = true;
    }

    /// Where the first line with this text begins, in bytes.
    #[must_use]
    pub fn place_of_line(&self, text: &str) -> Option<usize> {
        let line = self.text.lines().find(|line| line.trim() == text)?;
        // A line is a part of the text.
        Some(line.as_ptr().addr() - self.text.as_ptr().addr() + line.len() - line.trim_start().len())
    }

    /// Adds a fault of a value: its path, and the problem.
    pub fn blame_value(&mut self, entry: &Entry<'_>, problem: impl fmt::Display) {
        self.blame(entry.at, format!("{} {problem}", entry.path));
    }

    /// Blames every key that was not taken.
    pub fn end(&mut self, table: Table<'_>) {
        let known = table.known.join(", ");
        for (key, (at, entry)) in table.entries {
            let home = self.homes.iter().find(|(keys, _)| keys.contains(&&*key));
            let advice = match (home, similar(&key, table.known.iter().copied())) {
                (Some((_, home)), _) => format!(" here: {home}"),
                (None, Some(meant)) if entry.has_tables() => {
                    format!(": did you mean [[{meant}]]? Settings are: {known}")
                }
                (None, Some(meant)) => format!(": did you mean {meant}? Settings are: {known}"),
                (None, None) => format!(". Settings are: {known}"),
            };
            self.blame(at, format!("{} is not a setting{advice}", entry.path));
        }
    }

    /// The value of a key that must be there.
    pub fn required<'e>(&mut self, table: &mut Table<'e>, key: &'static str) -> Option<Entry<'e>> {
        let entry = table.take(key);
        if entry.is_none() {
            self.blame(table.at, format!("{}{key} is missing", table.prefix));
        }
        entry
    }

    /// A table, with its values to take.
    pub fn table<'e>(&mut self, entry: Option<Entry<'e>>) -> Option<Table<'e>> {
        let Entry { path, at, value } = entry?;
        let DeValue::Table(table) = value else {
            self.blame(at, format!("{path} must be a table"));
            return None;
        };
        let prefix = format!("{path}.");
        Some(Table::new(path, prefix, at, table))
    }

    /// The same, with a name for people before its keys: `step "pay": agent`.
    pub fn titled_table<'e>(&mut self, entry: Option<Entry<'e>>, title: &str) -> Option<Table<'e>> {
        let Entry { at, value, .. } = entry?;
        let DeValue::Table(table) = value else {
            self.blame(at, format!("{title} must be a table"));
            return None;
        };
        Some(Table::new(title.to_owned(), format!("{title}: "), at, table))
    }

    /// The elements of an array of at most this many.
    pub fn array<'e>(&mut self, entry: Option<Entry<'e>>, len_max: usize) -> Option<Vec<Entry<'e>>> {
        let entry = entry?;
        let (at, path) = (entry.at, entry.path.clone());
        if let Some(elements) = entry.elements()
            && (1..=len_max).contains(&elements.len())
        {
            return Some(elements.collect());
        }
        self.blame(at, format!("{path} must be an array of 1 to {len_max} elements"));
        None
    }

    /// A text without blanks at its ends, with the entry for further checks.
    pub fn text<'e>(&mut self, entry: Option<Entry<'e>>) -> Option<(String, Entry<'e>)> {
        self.exact_text(entry).map(|(text, entry)| (text.trim().to_owned(), entry))
    }

    /// A text as it stands, with the entry for further checks.
    pub fn exact_text<'e>(&mut self, entry: Option<Entry<'e>>) -> Option<(String, Entry<'e>)> {
        let entry = entry?;
        let text = entry.value.as_str().map(str::to_owned);
        if text.is_none() {
            self.blame_value(&entry, "must be a text in quotes");
        }
        text.map(|text| (text, entry))
    }

    /// One of these words, each with its meaning.
    pub fn word<T: Clone>(&mut self, entry: Option<Entry<'_>>, words: &[(&str, T)]) -> Option<T> {
        let entry = entry?;
        let known = words.iter().find(|(word, _)| entry.value.as_str() == Some(word));
        if known.is_none() {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            self.blame_value(&entry, format_args!("must be {}", words.join(" or ")));
        }
        known.map(|(_, meaning)| meaning.clone())
    }

    /// `true` or `false`.
    pub fn flag(&mut self, entry: Option<Entry<'_>>) -> Option<bool> {
        let entry = entry?;
        let flag = entry.value.as_bool();
        if flag.is_none() {
            self.blame_value(&entry, "must be true or false");
        }
        flag
    }

    /// A whole number in this range.
    pub fn number(&mut self, entry: Option<Entry<'_>>, range: RangeInclusive<u32>) -> Option<u32> {
        let entry = entry?;
        let number = entry.value.as_integer().filter(|number| number.radix() == 10);
        let number = number.and_then(|number| number.as_str().replace('_', "").parse().ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.blame_value(&entry, format_args!("must be a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// A time such as `"10s"`, in milliseconds.
    pub fn time_ms(&mut self, entry: Option<Entry<'_>>, range: RangeInclusive<u64>) -> Option<u64> {
        let entry = entry?;
        let time = entry.value.as_str().and_then(|text| humantime::parse_duration(text.trim()).ok());
        let ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).filter(|ms| range.contains(ms));
        if ms.is_none() {
            let [from, to] = [range.start(), range.end()].map(|&ms| time_text(ms));
            self.blame_value(&entry, format_args!("must be a time from \"{from}\" to \"{to}\""));
        }
        ms
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

/// A time as it stands in a file.
#[must_use]
pub fn time_text(ms: u64) -> String {
    const DAY_MS: u64 = 86_400_000;
    // A month has no length that anybody knows.
    if ms > 0 && ms.is_multiple_of(DAY_MS) {
        return format!("{}d", ms / DAY_MS);
    }
    humantime::format_duration(std::time::Duration::from_millis(ms)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str, read: impl FnOnce(&mut Reader<'_>, &mut Table<'_>)) -> Vec<String> {
        let (mut reader, mut table) = Reader::new(text);
        read(&mut reader, &mut table);
        reader.end(table);
        let faults = reader.finish(()).err().map_or_else(Vec::new, |Faults(faults)| faults);
        faults.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn every_fault_is_found_at_once_in_the_order_of_the_text_with_its_line_and_column() {
        let found = faults("\"ä\" = { x = 1, y = 2 }\ntext = 7\nflag = \"no\"\n", |reader, table| {
            let flag = table.take("flag");
            assert_eq!(reader.flag(flag), None);
            let text = table.take("text");
            assert!(reader.text(text).is_none());
            let inner = table.take("ä");
            let mut inner = reader.table(inner).unwrap();
            let x = inner.take("x");
            assert_eq!(reader.number(x, 1..=1), Some(1));
            reader.end(inner);
            assert!(reader.required(table, "name").is_none());
        });
        let expected = [
            "1:1: name is missing",
            "1:16: ä.y is not a setting. Settings are: x",
            "2:8: text must be a text in quotes",
            "3:8: flag must be true or false",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_text_that_is_not_toml_has_one_fault_since_others_may_follow_from_it() {
        let found = faults("name = \"w\nversion = 1\n", |reader, table| {
            let _ = (reader.required(table, "name"), reader.required(table, "version"));
            assert!(reader.required(table, "steps").is_none());
        });
        assert!(found.len() == 1 && found[0].starts_with("1:10: is not TOML"), "{found:?}");
    }

    #[test]
    fn an_unknown_key_comes_with_the_one_that_may_be_meant_or_with_its_place() {
        let read = |reader: &mut Reader<'_>, table: &mut Table<'_>| {
            reader.set_homes(&[(&["default"], "write it at the top")]);
            assert!(!table.has_like("agents") && table.has_like("step"));
            let _ = [table.take("step"), table.take("max_failures"), table.take("of")];
        };
        let found = faults("max_failure = 1\ndefault = 1\nor = 1\n[[steps]]\n", read);
        let settings = "Settings are: step, max_failures, of";
        let expected = [
            format!("1:1: max_failure is not a setting: did you mean max_failures? {settings}"),
            "2:1: default is not a setting here: write it at the top".to_owned(),
            format!("3:1: or is not a setting. {settings}"),
            format!("4:3: steps is not a setting: did you mean [[step]]? {settings}"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_text_within_a_value_has_its_own_place() {
        let (mut reader, mut table) = Reader::new("a = [\"x\", { b = \"y\" }]\n");
        let entry = table.take("a").unwrap();
        assert_eq!((entry.place_of(|text| text == "y"), entry.place_of(|text| text == "z")), (16, 4));
        reader.blame(entry.place_of(|text| text == "y"), "here");
        assert_eq!(reader.finish(()).unwrap_err().to_string(), "1:17: here");
    }

    #[test]
    fn a_line_is_found_where_its_text_begins() {
        let (reader, _) = Reader::new("a = 1\n  # here  \nb = 2\n");
        assert_eq!(
            ["a = 1", "# here", "b = 2", "c"].map(|line| reader.place_of_line(line)),
            [Some(0), Some(8), Some(17), None]
        );
    }

    #[test]
    fn a_time_is_written_in_days_if_it_is_some() {
        let times = [0, 1, 86_400_000, 86_400_001, 40 * 86_400_000].map(time_text);
        assert_eq!(times, ["0s", "1ms", "1d", "1day 1ms", "40d"]);
    }

    #[test]
    fn a_word_is_one_of_those_that_there_are() {
        let (mut reader, mut table) = Reader::new("a = \"on\"\nb = \"of\"");
        let words = [("on", true), ("off", false)];
        let [a, b] = ["a", "b"].map(|key| table.take(key));
        assert_eq!((reader.word(a, &words), reader.word(b, &words)), (Some(true), None));
        assert_eq!(reader.finish(()).unwrap_err().to_string(), "2:5: b must be \"on\" or \"off\"");
    }

    #[test]
    fn a_table_may_have_a_name_for_people() {
        let found = faults("[[step]]\ncolour = 1\n", |reader, table| {
            let steps = table.take("step").unwrap().elements().unwrap();
            for step in steps {
                let mut step = reader.titled_table(Some(step), "step \"a\"").unwrap();
                let _ = reader.required(&mut step, "agent");
                reader.end(step);
            }
        });
        let expected =
            ["1:1: step \"a\": agent is missing", "2:1: step \"a\": colour is not a setting. Settings are: agent"];
        assert_eq!(found, expected);
    }
}
