//! Texts that are cut to a length, and names that are compared.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::limits::ERROR_CHARS_MAX;

/// A text cut to [`ERROR_CHARS_MAX`] characters: a remote service may return a long one.
#[must_use]
pub fn shortened(text: &str) -> Arc<str> {
    match cut(text, ERROR_CHARS_MAX) {
        whole if whole.len() == text.len() => text.into(),
        part => format!("{part}…").into(),
    }
}

/// The first `chars_max` characters of a text.
#[must_use]
pub(crate) fn cut(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}

/// A text as a value of TOML, to be pasted into a file: in single quotes where it may stand so.
#[must_use]
pub fn in_quotes(text: &str) -> String {
    match text.contains(|sign: char| sign == '\'' || sign.is_control()) {
        false => format!("'{text}'"),
        // The escapes of JSON are those of TOML as well.
        true => serde_json::Value::from(text).to_string(),
    }
}

/// Letters with marks, and after each group its letter. One text may have such a letter as one character, and another as two.
const MARKED: &str = "àáâãäåāăąạảấầẩẫậắằẳẵặa çćĉċčc ďđd èéêëēĕėęěẹẻẽếềểễệe ĝğġģg ĥħh ìíîïĩīĭįıỉịi ĵj ķk ĺļľłl ñńņňn \
                      òóôõöøōŏőọỏốồổỗộơớờởỡợo ŕŗřr śŝşšșs ţťŧțt ùúûüũūŭůűųụủưứừửữựu ŵw ýÿŷỳỵỷỹy źżžz йи ёе άα έε ήη ίι όο ύυ ώω";

/// `Default_Ignorable_Code_Point` of Unicode's `DerivedCoreProperties.txt`, the empty Braille pattern, and the marks of
/// annotations.
const INVISIBLE: [RangeInclusive<char>; 18] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// A name as it is compared: without case, marks and invisible characters, and with single blanks. Two people whose names
/// differ in these alone count as one, which is the safe side where a person must not decide.
#[must_use]
pub(crate) fn name(text: &str) -> String {
    let is_seen = |sign: &char| {
        let is_invisible = INVISIBLE.iter().any(|range| range.contains(sign));
        !is_invisible && !matches!(sign, '\u{300}'..='\u{36f}') && (!sign.is_control() || sign.is_whitespace())
    };
    // Full-width letters stand for those of ASCII.
    let narrow = |sign: char| match u32::from(sign) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(sign),
        _ => sign,
    };
    let letter = |sign: char| {
        let mut groups = MARKED.split(' ').filter(|_| !sign.is_ascii());
        groups.find(|group| group.contains(sign)).and_then(|group| group.chars().last()).unwrap_or(sign)
    };
    // Sharp s has two capitals.
    let signs = text.chars().map(narrow).flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    let name: String = signs.filter(is_seen).map(letter).collect();
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_40_a_name_is_the_same_however_it_is_typed() {
        for (one, other) in [
            ("ann", " ANN "),
            ("Ann Lee", "Ann  Lee"),
            ("Ann Lee", "ann\u{a0}\tlee"),
            ("José", "Jose\u{301}"),
            ("Nguyễn", "Nguye\u{302}\u{303}n"),
            ("Андрей", "Андреи\u{306}"),
            ("ann", "\u{ff41}\u{ff4e}\u{ff4e}"),
            ("ann", "an\u{200d}n"),
            ("STRASSE", "straße"),
            ("İnci", "i\u{307}nci"),
        ] {
            assert_eq!(name(one), name(other), "{one:?} {other:?}");
        }
        for unseen in
            "\0\u{7f}\u{ad}\u{115f}\u{180e}\u{200d}\u{202e}\u{2063}\u{2800}\u{3164}\u{fe0f}\u{ffa0}\u{e0061}".chars()
        {
            assert_eq!(name(&format!("a{unseen}nn")), "ann", "{unseen:?}");
        }
        for (one, other) in [("ann", "anna"), ("Ann Lee", "AnnLee"), ("Андрей", "Андрея"), ("李", "王"), ("ann", "")]
        {
            assert_ne!(name(one), name(other), "{one:?} {other:?}");
        }
    }
}
