//! Checks of the documents: a number that code cites is in the design, every link works, and what a newcomer reads first
//! is short.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use tests::documents::Kind::{Fault, Invariant, Rule};
use tests::documents::{
    DESIGN, Number, anchors, cited, dead_links, defined, defined_by_the_design, files, links, text_of,
};

/// The longest pages that a newcomer reads first.
const LINES_MAX: [(&str, usize); 2] = [("README.md", 180), ("functions/README.md", 650)];

/// The citations of a text that are not among these.
fn missing(text: &str, defined: &[Number]) -> Vec<Number> {
    cited(text).into_iter().filter(|number| !defined.contains(number)).collect()
}

#[test]
fn every_rule_fault_and_invariant_that_code_cites_is_in_the_design() {
    let design = defined_by_the_design();
    let sources = files(&["rs", "js", "py", "md"]);
    // This file cites undefined numbers.
    let others = sources.iter().filter(|(path, _)| *path != "tests/tests/repository/documents.rs");
    let missing: Vec<_> =
        others.map(|(path, text)| (path, missing(text, &design))).filter(|(_, of)| !of.is_empty()).collect();
    assert!(missing.is_empty(), "{DESIGN:?} do not have {missing:#?}");
}

#[test]
fn the_design_has_each_rule_fault_and_invariant_once_without_a_gap() {
    let defined = defined_by_the_design();
    for (kind, at_least) in [(Rule, 47), (Fault, 72), (Invariant, 18)] {
        let mut numbers: Vec<u32> = defined.iter().filter(|(of, _)| *of == kind).map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(1..=numbers.last().copied().unwrap_or(0)), "{kind:?}: {numbers:?}");
        assert!(numbers.len() >= at_least, "{kind:?}: {numbers:?}");
    }
}

#[test]
fn a_number_without_a_place_is_missed_however_it_is_cited() {
    let design = "### Rule 1: Claim\n### Rule 2: Commit\n- **F01** a repeat\n- **Invariant 1**, custody\n\n    ### Rule 3: code\n";
    for (text, expected) in [
        ("// see rule 3", vec![(Rule, 3)]),
        ("(Rule 1, and rule\n    /// 3)", vec![(Rule, 3)]),
        ("//! Rules 1, 2, 4 and 5 across handlers", vec![(Rule, 4), (Rule, 5)]),
        ("rules 1 to 4:", vec![(Rule, 3), (Rule, 4)]),
        ("[rule 9](#rule-9-compensation)", vec![(Rule, 9)]),
        ("invariants 1 and 16.", vec![(Invariant, 16)]),
        ("a claim (F61)", vec![(Fault, 61)]),
        ("async fn f61_a_test() {", vec![(Fault, 61)]),
        ("fn f01_to_f02_a_test() {", vec![(Fault, 2)]),
    ] {
        assert_eq!(missing(text, &defined(design)), expected, "{text}");
    }
}

#[test]
fn a_number_with_a_place_is_not_missed_and_not_every_number_is_a_citation() {
    let design = "### Rule 1: Claim\n### Rule 2: Commit\n- **F01** a repeat\n- **Invariant 1**, custody\n";
    for text in [
        "Rules 1 and 2, invariant 1 and F01",
        "rule 2 and 3 others",
        "rules of 7 steps",
        "these four rules: 5 of them",
        "0xF05, F5, F005, AF61 and f(61)",
        "fn invariant_61() {}",
        "from_secs_f64(x)",
    ] {
        assert_eq!(missing(text, &defined(design)), [], "{text}");
    }
}

#[test]
fn no_link_of_a_document_is_dead() {
    let dead: Vec<_> = files(&["md"])
        .iter()
        .map(|(path, text)| (path.clone(), dead_links(path, text)))
        .filter(|(_, dead)| !dead.is_empty())
        .collect();
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn a_link_to_a_missing_file_or_anchor_is_dead_and_code_has_no_links() {
    let document = "[a](README.md) [b](gone.md) ![c](infra/gone.png) [d](#here) [e](#gone) [f](functions/README.md#gone)\n\
                    <img src=\"gone.jpg\"> [`g`](also-gone.md) `[h](code.md)` [i](https://example.com/x)\n\n    [j](code.md)\n\n\
                    ```\n[k](code.md)\n```\n## Here\n";
    assert_eq!(links(document).len(), 8);
    // The path names a file without a heading "Here".
    let dead = dead_links("README.md", document);
    assert_eq!(
        dead,
        ["gone.md", "infra/gone.png", "#here", "#gone", "functions/README.md#gone", "also-gone.md", "gone.jpg"]
    );
}

#[test]
fn anchors_are_those_that_github_makes() {
    let expected = ["in-rust", "in-rust-1", "rule-2-commit-then-send-then-acknowledge", "f01-the-clients-post", "a--b"];
    let document = "# In Rust\n## In `Rust`\n### Rule 2: Commit, then send, then acknowledge\n#### F01: the client's post\n## A & B\n";
    assert_eq!(anchors(document), expected.map(String::from).into_iter().collect::<BTreeSet<_>>());
}

#[test]
fn what_a_newcomer_reads_first_is_short() {
    for (path, lines_max) in LINES_MAX {
        let lines = text_of(path).lines().count();
        assert!(lines <= lines_max, "{path} has {lines} lines, the limit is {lines_max}");
    }
}

#[test]
fn the_pictures_of_the_console_are_as_new_as_its_pages() {
    const PAGES: &str = "functions/api/src/console/";
    let pages = files(&["js", "css", "html"]);
    let text: String = pages.iter().filter(|(path, _)| path.starts_with(PAGES)).map(|(_, text)| &**text).collect();
    let (now, taken) = (hex::encode(Sha256::digest(text)), text_of("infra/console/pages.sha256"));
    assert_eq!(taken.trim(), now, "the pages have changed. Take the pictures again: tests/run console --screenshots");
}

#[test]
fn no_comment_and_no_document_cites_what_is_not_in_the_repository() {
    let is_foreign = |text: &str| {
        let numbered = |word: &str| {
            text.match_indices(word)
                .any(|(at, _)| text[at + word.len()..].starts_with(|next: char| next.is_ascii_digit()))
        };
        text.contains(&["design", "\u{a7}"].join(" ")) || numbered(&["issue", ""].join(" "))
    };
    assert!(
        is_foreign(&["issue", "7"].join(" "))
            && is_foreign(&["design", "\u{a7}4"].join(" "))
            && !is_foreign("issue no")
    );
    let foreign: Vec<String> =
        files(&["rs", "md"]).into_iter().filter(|(_, text)| is_foreign(text)).map(|(path, _)| path).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
