//! The difference of two texts, by lines.

/// The longest texts of which the lines in common are looked for: what differs in the middle of longer ones is told as
/// a whole. The search takes time and memory for each pair of lines.
const LINES_MAX: usize = 1_000;

/// The lines that only one of two texts has, in order: `- ` for the first, `+ ` for the second. Blank lines, comments,
/// and blanks around a line, do not count.
#[must_use]
pub fn difference(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (lines(before), lines(after));
    let head = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let (before, after) = (&before[head..], &after[head..]);
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(old, new)| old == new).count();
    let (before, after) = (&before[..before.len() - tail], &after[..after.len() - tail]);
    let is_long = before.len().max(after.len()) > LINES_MAX;
    let common = if is_long { Vec::new() } else { lengths(before, after) };
    let (mut one, mut other, mut found) = (0, 0, Vec::new());
    while one < before.len() || other < after.len() {
        let is_same = !is_long && one < before.len() && other < after.len() && before[one] == after[other];
        let is_removed = || other == after.len() || is_long || common[one + 1][other] >= common[one][other + 1];
        if is_same {
            (one, other) = (one + 1, other + 1);
        } else if one < before.len() && is_removed() {
            found.push(format!("- {}", before[one]));
            one += 1;
        } else {
            found.push(format!("+ {}", after[other]));
            other += 1;
        }
    }
    found
}

fn lines(text: &str) -> Vec<&str> {
    // A schema is one long line.
    let parts = |line: &'_ str| if is_schema(line) { ',' } else { '\n' };
    text.lines()
        .flat_map(|line| line.split_inclusive(parts(line)))
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn is_schema(line: &str) -> bool {
    line.strip_prefix("schema").is_some_and(|value| value.trim_start().starts_with('='))
}

/// The length of the longest common subsequence of the lines from each pair of places on.
fn lengths(before: &[&str], after: &[&str]) -> Vec<Vec<usize>> {
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for (one, old) in before.iter().enumerate().rev() {
        for (other, new) in after.iter().enumerate().rev() {
            common[one][other] = match old == new {
                true => common[one + 1][other + 1] + 1,
                false => common[one + 1][other].max(common[one][other + 1]),
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_do_not_count_and_the_rest_is_in_order() {
        let before = "a = 1\n# old\n\nb = 2\nc = 3\nd = 4\n";
        assert_eq!(difference(before, "  a = 1\nc = 3\n# new\nx = 5\nd = 4\n"), ["- b = 2", "+ x = 5"]);
        assert_eq!(difference(before, before), [""; 0]);
        let schema =
            |max: u32| format!("schema = '{{\"type\":\"object\",\"maxProperties\":{max},\"title\":\"x\"}}'\na = 1");
        assert_eq!(difference(&schema(7), &schema(8)), ["- \"maxProperties\":7,", "+ \"maxProperties\":8,"]);
    }

    #[test]
    fn what_differs_in_the_middle_of_long_texts_is_told_as_a_whole() {
        let text = |lines: usize, word: &str| -> String { (0..lines).map(|n| format!("{word} {n}\n")).collect() };
        let (before, after) = (text(40_000, "a"), format!("x\n{}", text(30_000, "a")));
        let told = difference(&before, &after);
        assert_eq!((told.len(), &*told[0], &*told[70_000]), (70_001, "- a 0", "+ a 29999"));
        let one = difference(&before, &before.replace("a 20000\n", "b\n"));
        assert_eq!(one, ["- a 20000", "+ b"]);
    }
}
