//! Reads documents and comments: headings, links, and the numbers of the design that they cite.
//!
//! [`DESIGN`] has all rules, faults and invariants. A comment cites them as `rule 7`, `F23` and `invariant 4`, and a
//! test by a name like `f23_…`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The pages of the design: the first one, and those to which it sends its reader.
pub const DESIGN: [&str; 6] = [
    "functions/README.md",
    "functions/faults.md",
    "functions/records.md",
    "functions/reports.md",
    "functions/shared/agent/README.md",
    "infra/README.md",
];

/// A kind of number that code cites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `rule 7`
    Rule,
    /// `F23`
    Fault,
    /// `invariant 4`
    Invariant,
}

/// A rule, a fault or an invariant.
pub type Number = (Kind, u32);

/// The folder of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder of the repository").to_owned()
}

/// The text of a file of the repository.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files of the repository with one of these extensions and their texts, by path from its root. Folders that are
/// hidden or made by a build are left out.
#[must_use]
pub fn files(extensions: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && !["target", "node_modules", "__pycache__"].contains(&&*name) {
                folders.push(path);
            } else if path.is_file()
                && path.extension().is_some_and(|found| extensions.iter().any(|known| found == *known))
            {
                let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
                found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned());
            }
        }
    }
    found
}

/// The numbers that have a heading in this document, or a line of a list that begins with them.
#[must_use]
pub fn defined(document: &str) -> Vec<Number> {
    let lines = prose(document).filter_map(|line| Some(line.strip_prefix("- **")?.split_once("**")?.0));
    headings(document)
        .filter_map(|heading| Some(heading.split_once(':')?.0))
        .chain(lines)
        .filter_map(number_of)
        .collect()
}

/// The numbers that the pages of the design have, each once for each of its places.
#[must_use]
pub fn defined_by_the_design() -> Vec<Number> {
    DESIGN.iter().flat_map(|path| defined(&text_of(path))).collect()
}

fn number_of(name: &str) -> Option<Number> {
    match name.split_once(' ') {
        Some(("Rule", number)) => Some((Kind::Rule, number.parse().ok()?)),
        Some(("Invariant", number)) => Some((Kind::Invariant, number.parse().ok()?)),
        Some(_) => None,
        None => Some((Kind::Fault, name.strip_prefix('F').filter(|digits| digits.len() == 2)?.parse().ok()?)),
    }
}

/// The numbers that this source or document cites.
#[must_use]
pub fn cited(text: &str) -> BTreeSet<Number> {
    // A citation may go on in the next line of a comment.
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!', '#', '*', '|']));
    let text = lines.collect::<Vec<_>>().join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = BTreeSet::new();
    for (place, word) in words.iter().enumerate() {
        let numbers = |kind, of| numbers_in(of).into_iter().map(move |number| (kind, number));
        let after = &words[place + 1..];
        match word.trim_start_matches(|character: char| !character.is_alphanumeric()).to_lowercase().as_str() {
            "rule" => found.extend(numbers(Kind::Rule, &after[..after.len().min(1)])),
            "rules" => found.extend(numbers(Kind::Rule, after)),
            "invariant" => found.extend(numbers(Kind::Invariant, &after[..after.len().min(1)])),
            "invariants" => found.extend(numbers(Kind::Invariant, after)),
            _ => {}
        }
        found.extend(faults_in(word).map(|number| (Kind::Fault, number)));
    }
    found
}

/// The numbers at the beginning of these words: `7`, `2, 5 and 9`, `1 to 3`.
fn numbers_in(words: &[&str]) -> Vec<u32> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut is_range = false;
    for word in words {
        let end = word.find(|character: char| !character.is_ascii_digit()).unwrap_or(word.len());
        let (digits, rest) = word.split_at(end);
        match (digits.parse::<u32>(), rest) {
            (Ok(number), _) => {
                let first = if is_range { numbers.last().map_or(number, |last| last + 1) } else { number };
                numbers.extend(first..=number);
                is_range = false;
                if !matches!(rest, "" | ",") {
                    break;
                }
            }
            (Err(_), "and" | "or") if !numbers.is_empty() => {}
            (Err(_), "to") if !numbers.is_empty() => is_range = true,
            (Err(_), _) => break,
        }
    }
    numbers
}

/// The faults that a word names: `(F23)`, or `f23_a_test` and `f24_to_f33_a_test`.
fn faults_in(word: &str) -> impl Iterator<Item = u32> {
    let parts = word.split(|character: char| !character.is_ascii_alphanumeric());
    let is_name = matches!(word.as_bytes(), [b'f', b'0'..=b'9', b'0'..=b'9', b'_', ..]);
    parts.filter_map(move |part| {
        let digits = part.strip_prefix('F').or_else(|| part.strip_prefix('f').filter(|_| is_name))?;
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    })
}

/// The lines of a document that are not code.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    document.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ")
    })
}

fn headings(document: &str) -> impl Iterator<Item = &str> {
    prose(document).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim())
}

/// The anchors of a document, as GitHub makes them from its headings.
#[must_use]
pub fn anchors(document: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for heading in headings(document) {
        let kept = heading.chars().filter(|character| character.is_alphanumeric() || " -_".contains(*character));
        let anchor: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let repeated = (1..).map(|count| format!("{anchor}-{count}"));
        let free = std::iter::once(anchor.clone()).chain(repeated).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

/// The targets of a document's links and pictures that are within the repository.
#[must_use]
pub fn links(document: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(document) {
        // Every other part stands between back-ticks.
        let line: String = line.split('`').step_by(2).collect();
        for (begin, end) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            let parts = line.split(begin).skip(1).filter_map(|part| part.split_once(end));
            targets.extend(parts.map(|(target, _)| target.to_owned()));
        }
    }
    targets.retain(|target| !target.contains("://"));
    targets
}

/// The links of the document at `path` that lead nowhere.
#[must_use]
pub fn dead_links(path: &str, document: &str) -> Vec<String> {
    let is_dead = |target: &String| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let to = match file {
            "" => root().join(path),
            _ => root().join(path).parent().unwrap_or(Path::new("")).join(file),
        };
        let has_anchor = || fs::read_to_string(&to).is_ok_and(|text| anchors(&text).contains(anchor));
        !to.exists() || !(anchor.is_empty() || has_anchor())
    };
    links(document).into_iter().filter(is_dead).collect()
}
