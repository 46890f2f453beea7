//! The difference of two texts, by lines.

/// The lines that only one of two texts has, in order: `- ` for the first, `+ ` for the second. Blank lines, and blanks
/// around a line, do not count.
#[must_use]
pub fn difference(before: &str, after: &str) -> Vec<String> {
    let lines = |text: &'_ str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let (before, after) = (lines(before), lines(after));
    // The length of the longest common subsequence of the lines from each pair of places on.
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for (one, old) in before.iter().enumerate().rev() {
        for (other, new) in after.iter().enumerate().rev() {
            common[one][other] = match old == new {
                true => common[one + 1][other + 1] + 1,
                false => common[one + 1][other].max(common[one][other + 1]),
            };
        }
    }
    let (mut one, mut other, mut found) = (0, 0, Vec::new());
    while one < before.len() || other < after.len() {
        let is_same = one < before.len() && other < after.len() && before[one] == after[other];
        if is_same {
            (one, other) = (one + 1, other + 1);
        } else if one < before.len() && (other == after.len() || common[one + 1][other] >= common[one][other + 1]) {
            found.push(format!("- {}", before[one]));
            one += 1;
        } else {
            found.push(format!("+ {}", after[other]));
            other += 1;
        }
    }
    found
}
