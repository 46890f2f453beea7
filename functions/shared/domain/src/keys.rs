//! What a key of a configuration is called, holds and means. Each file of a configuration declares its keys once, as a
//! table of these: [`located`](crate::located) reads the file by it, and the crate `config` makes from it what documents,
//! `init` and editors say of the keys.

use toml::de::DeValue;

use crate::time::Timestamp;

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether its table must have it.
    pub is_required: bool,
    /// The value that counts without it, as in a file but without quotes; or in words, where it is no such value.
    pub default: &'static str,
    /// A value as in a file, but without the quotes of a text. Empty: the default is one.
    pub example: &'static str,
    /// One sentence. `(rule 7)` in it is a rule of the design.
    pub about: &'static str,
}

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Number(u32, u32),
    /// A time such as `"10s"`, in milliseconds from the first to the second.
    TimeMs(u64, u64),
    /// One of these texts.
    Word(&'static [&'static str]),
    /// A text that passes a check.
    Text(&'static Format),
    /// Any value, which stands for one of JSON.
    Template,
    /// A table whose members stand for those of a JSON object.
    Members,
    /// A point in time with its zone, in RFC 3339.
    Time,
    /// An array of as many elements, from the first to the second. One of tables is written as `[[key]]`.
    Array(usize, usize, &'static Kind),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys are names.
    Named(&'static Names),
    /// One of these, of which no two look alike.
    Either(&'static [Kind]),
}

/// A kind of text.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// What it is, for people.
    pub what: &'static str,
    /// Says what is wrong with a text.
    pub check: fn(&str) -> Result<(), String>,
}

/// A table whose keys are names.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// What stands for such a name, as `NAME`.
    pub stands_for: &'static str,
    /// Says what is wrong with a name.
    pub check: fn(&str) -> Result<(), String>,
    /// The most of them.
    pub max: usize,
    /// What each holds.
    pub kind: Kind,
}

/// Keys that are named where a table of them is expected.
const NAMED_MAX: usize = 7;
/// Any text.
pub const TEXT: Kind = Kind::Text(&Format { what: "a text", check: |_| Ok(()) });

impl Key {
    /// A key that may be left out.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, is_required: false, default: "", example: "", about: "" }
    }

    /// Its sentence.
    #[must_use]
    pub const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// It must be there.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// What counts without it.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// An example.
    #[must_use]
    pub const fn like(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}

impl Kind {
    /// The kinds of which it is one.
    #[must_use]
    pub const fn kinds(&'static self) -> &'static [Self] {
        if let Self::Either(kinds) = self { kinds } else { std::slice::from_ref(self) }
    }

    /// The keys of a table, or of each of several.
    #[must_use]
    pub fn keys(&'static self) -> &'static [Key] {
        if let Self::Array(_, _, inner) = self {
            inner.keys()
        } else if let Self::Named(names) = self {
            names.kind.keys()
        } else {
            let keys = |kind: &'static Self| if let Self::Table(keys) = kind { Some(*keys) } else { None };
            self.kinds().iter().find_map(keys).unwrap_or_default()
        }
    }

    /// The words, if it is one of some.
    pub(crate) fn words(&'static self) -> &'static [&'static str] {
        let words = |kind: &'static Self| if let Self::Word(words) = kind { Some(*words) } else { None };
        self.kinds().iter().find_map(words).unwrap_or_default()
    }

    /// Whether it is written as `[[key]]`.
    pub(crate) const fn is_of_tables(&self) -> bool {
        matches!(self, Self::Array(_, _, Self::Table(_)))
    }

    /// The kind of this value: of several, the one that it looks like.
    pub(crate) fn of(&'static self, value: &DeValue<'_>) -> &'static Self {
        self.kinds().iter().find(|kind| kind.looks_like(value)).unwrap_or(self)
    }

    fn looks_like(&self, value: &DeValue<'_>) -> bool {
        match self {
            Self::Flag => value.is_bool(),
            Self::Number(..) => value.is_integer(),
            Self::TimeMs(..) | Self::Text(_) => value.is_str(),
            Self::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Template => true,
            Self::Time => value.is_str() || matches!(value, DeValue::Datetime(_)),
            Self::Array(..) => value.is_array(),
            Self::Members | Self::Table(_) | Self::Named(_) => value.is_table(),
            Self::Either(kinds) => kinds.iter().any(|kind| kind.looks_like(value)),
        }
    }

    /// What is wrong with a value by itself, whatever its elements are.
    #[must_use]
    pub fn problem(&self, value: &DeValue<'_>) -> Option<String> {
        let is_good = match (self, value) {
            (Self::Text(format), DeValue::String(text)) => return (format.check)(text).err(),
            (Self::Number(..), _) => self.number(value).is_some(),
            (Self::TimeMs(..), _) => value.as_str().is_some_and(|text| self.time_ms(text).is_some()),
            (Self::Time, _) => time_of(value).is_some(),
            (Self::Array(min, max, _), DeValue::Array(elements)) => (*min..=*max).contains(&elements.len()),
            (kind, _) => kind.looks_like(value),
        };
        (!is_good).then(|| format!("must be {}", self.expected()))
    }

    /// A whole number in its range.
    pub(crate) fn number(&self, value: &DeValue<'_>) -> Option<u32> {
        let Self::Number(min, max) = self else { return None };
        let number = value.as_integer().filter(|number| number.radix() == 10)?.as_str().replace('_', "").parse().ok();
        number.filter(|number| (*min..=*max).contains(number))
    }

    /// The milliseconds of a text that is a time in its range.
    #[must_use]
    pub fn time_ms(&self, text: &str) -> Option<u64> {
        let Self::TimeMs(min, max) = self else { return None };
        let ms = humantime::parse_duration(text.trim()).ok()?.as_millis().try_into().unwrap_or(u64::MAX);
        (*min..=*max).contains(&ms).then_some(ms)
    }

    /// What a value must be.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Number(min, max) => format!("a whole number from {min} to {max}"),
            Self::TimeMs(min, max) => format!("a time from \"{}\" to \"{}\"", time_text(*min), time_text(*max)),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                words.join(" or ")
            }
            Self::Text(_) => "a text in quotes".to_owned(),
            Self::Template => "a table of members, or a pointer".to_owned(),
            Self::Members => "a table of members".to_owned(),
            Self::Time => "a time with its zone, such as 2026-12-01T08:00:00Z".to_owned(),
            Self::Array(min, max, _) => format!("an array of {min} to {max} elements"),
            Self::Table(keys) if keys.len() <= NAMED_MAX => {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                format!("a table of {}", names.join(", "))
            }
            Self::Table(_) | Self::Named(_) => "a table".to_owned(),
            Self::Either(kinds) => kinds.iter().map(Self::expected).collect::<Vec<_>>().join(", or "),
        }
    }
}

/// A point in time, as TOML or a text.
pub(crate) fn time_of(value: &DeValue<'_>) -> Option<Timestamp> {
    let text = value.as_datetime().map(ToString::to_string).or_else(|| value.as_str().map(str::to_owned))?;
    serde_json::from_value(text.into()).ok()
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

    #[test]
    fn a_time_is_written_in_days_if_it_is_some() {
        let times = [0, 1, 86_400_000, 86_400_001, 40 * 86_400_000].map(time_text);
        assert_eq!(times, ["0s", "1ms", "1d", "1day 1ms", "40d"]);
    }
}
