//! Texts of the page.

/// A text between tags or in an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push('\n'),
            other if other.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A sentence, escaped: it begins with a capital and ends with a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if text.ends_with('.') { "" } else { "." };
    escaped(&format!("{first}{}{stop}", characters.as_str()))
}

/// A number with a comma at each thousand.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
pub(super) fn many(count: u64, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {one}{s}", number(count))
}

/// A time in its two greatest units at most.
pub(super) fn short(ms: u64) -> String {
    let two = |great: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{great}{unit}"),
        _ => format!("{great}{unit} {small}{small_unit}"),
    };
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 if ms % 1_000 < 100 => format!("{}s", ms / 1_000),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => two(ms / 60_000, "m", ms % 60_000 / 1_000, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "m"),
        86_400_000.. => two(ms / 86_400_000, "d", ms % 86_400_000 / 3_600_000, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_opens_no_tag_and_leaves_no_attribute() {
        assert_eq!(escaped("<b a='1' c=\"2\">&\u{0}"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp; ");
        assert_eq!((sentence("a<b"), sentence("done.")), ("A&lt;b.".to_owned(), "Done.".to_owned()));
    }

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((many(1, "world"), many(2_000, "world")), ("1 world".to_owned(), "2,000 worlds".to_owned()));
        let times = [0, 999, 1_050, 59_999, 610_720, 3_600_000, 90_061_000].map(short);
        assert_eq!(times, ["0ms", "999ms", "1s", "59.9s", "10m 10s", "1h", "1d 1h"]);
    }
}
