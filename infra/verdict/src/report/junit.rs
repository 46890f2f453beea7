//! The report as JUnit XML: a test case for each kind of violation.

use super::Report;
use crate::judge::Kind;
use crate::story;

/// Each kind, in the order of what it costs.
const KINDS: [Kind; 16] = [
    Kind::ChargedTwice,
    Kind::StillCharged,
    Kind::DroppedStillCharged,
    Kind::NotShipped,
    Kind::LineUndecided,
    Kind::Stuck,
    Kind::StoppedByLine,
    Kind::TurnedForNothing,
    Kind::GivenUp,
    Kind::GivenUpInOutage,
    Kind::WaitedTooShort,
    Kind::Unsendable,
    Kind::Late,
    Kind::TooFast,
    Kind::NotBraked,
    Kind::Panicked,
];

/// One document.
#[must_use]
pub fn document(report: &Report<'_>) -> String {
    let name = escaped(report.name);
    let mut cases = String::new();
    for kind in KINDS {
        let of_kind = report.findings.all.iter().filter(|finding| finding.violation.kind == kind);
        let failures: String = of_kind
            .map(|finding| {
                let change: String = finding.edits().map(|edit| format!(" Change {edit}.")).collect();
                let words = format!("{}. Seed {}.{change}", story::sentence(report.folder, finding), finding.seed);
                format!("<failure message=\"{}\"/>", escaped(&words))
            })
            .collect();
        cases.push_str(&format!(
            "  <testcase classname=\"{name}\" name=\"not {}\">{failures}</testcase>\n",
            kind.name()
        ));
    }
    let failures =
        KINDS.iter().filter(|kind| report.findings.all.iter().any(|finding| finding.violation.kind == **kind)).count();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"stepwarden rehearse {name}\" tests=\"{}\" \
         failures=\"{failures}\">\n{cases}</testsuite>\n",
        KINDS.len()
    )
}

/// A text in an attribute. Control characters have no place in XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other if other.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_within_its_attribute() {
        assert_eq!(escaped("a<b & \"c\"\n"), "a&lt;b &amp; &quot;c&quot; ");
    }
}
