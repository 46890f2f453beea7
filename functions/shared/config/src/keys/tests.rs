use domain::keys::{Key, Kind};
use domain::located::{Document, Faults, WORDS, Words};
use domain::workflow::WORKFLOW;

use super::*;

/// A copy of the keys of a step's file, where a step has one key more.
fn with_another(key: Key) -> &'static [Key] {
    let with = |of: &'static Key| {
        let mut keys = of.kind.keys().to_vec();
        keys.push(key);
        let kind = Box::leak(Box::new(Kind::Table(Box::leak(keys.into_boxed_slice()))));
        Key { kind: Kind::Array(1, 50, kind), ..*of }
    };
    let copy: Vec<Key> = WORKFLOW.iter().map(|key| if key.name == "step" { with(key) } else { *key }).collect();
    Box::leak(copy.into_boxed_slice())
}

fn faults(keys: &'static [Key], text: &str) -> Vec<String> {
    let faults = Document::new(text).read(keys).0.finish(()).err().map_or_else(Vec::new, |Faults(faults)| faults);
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn a_key_that_is_added_in_one_place_is_read_and_told_everywhere() {
    let patience = Key::new("patience", Kind::TimeMs(1_000, 60_000)).about("How long it waits for tea").or("5s");
    let keys = with_another(patience);
    let text = |line: &str| format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\n{line}\n");
    assert_eq!(faults(keys, &text("patience = \"2s\"")), [""; 0]);
    assert_eq!(
        faults(keys, &text("patience = \"2h\"")),
        ["5:12: step \"a\": patience must be a time from \"1s\" to \"1m\""]
    );
    let misspelt = faults(keys, &text("patiense = \"2s\"")).concat();
    assert!(misspelt.starts_with("5:1: step \"a\": patiense is not a setting: did you mean patience? "), "{misspelt}");
    assert!(misspelt.ends_with(", patience"), "{misspelt}");
    let elsewhere = faults(keys, &format!("patience = \"2s\"\n{}", text(""))).concat();
    assert!(elsewhere.starts_with("1:1: patience is not a setting here: it belongs to [[step]]"), "{elsewhere}");

    let step = keys.iter().find(|key| key.name == "step").unwrap().kind.keys();
    let comments = commented(step, |_| false);
    assert!(comments.contains("# patience = \"5s\""), "{comments}");
    assert!(comments.contains("# How long it waits for tea: 1s to 1m. Default: 5s\n"), "{comments}");
    assert!(markdown(step, |_| false).contains("| `patience` | 1s to 1m (5s) | How long it waits for tea |\n"));
    let schema = schema("w", keys);
    let property = &schema["properties"]["step"]["items"]["properties"]["patience"];
    assert_eq!(property["default"], "5s");
    assert_eq!(property["description"], "How long it waits for tea: 1s to 1m. Default: 5s");
}

#[test]
fn every_value_in_a_comment_is_one_that_the_check_takes() {
    let head = "name = \"w\"\nversion = 1\n";
    let step = "[[step]]\nname = \"a\"\n";
    let cases = [
        (DEPLOYMENT, DEPLOYMENT, String::new(), String::new()),
        (WORKFLOW, WORKFLOW, String::new(), format!("{head}{step}")),
        (WORKFLOW, keys_of(WORKFLOW, "step"), format!("{head}{step}"), String::new()),
    ];
    for (file, keys, before, after) in cases {
        let lines = commented(keys, |path| !before.is_empty() && path == "name" || path == "version" || path == "step");
        for line in lines.lines().filter(|line| !line.starts_with("# name =")) {
            let setting = line.strip_prefix("# ").unwrap();
            let found = faults(file, &format!("{before}{setting}\n{after}"));
            // Its table may need more than this line.
            let found: Vec<&String> = found.iter().filter(|fault| !fault.ends_with(" is missing")).collect();
            assert!(found.is_empty(), "{setting}: {found:?}");
        }
        assert!(lines.lines().count() > 10, "{lines}");
    }
}

#[test]
fn no_table_has_a_key_twice_and_every_key_says_what_it_means_and_what_holds_without_it() {
    fn check(keys: &'static [Key]) {
        for (index, key) in keys.iter().enumerate() {
            let Key { name, kind, is_required, default, about, .. } = key;
            assert!(!keys[..index].iter().any(|earlier| earlier.name == *name), "{name}");
            assert!(about.chars().next().is_some_and(char::is_uppercase) && !about.ends_with('.'), "{name}: {about}");
            assert!(!is_required || default.is_empty(), "{name} has no default, since it is required");
            check(kind.keys());
        }
    }
    check(DEPLOYMENT);
    check(WORKFLOW);
}

/// The tables of keys that have this key, with that of the file.
fn tables_with(key: &str) -> Vec<&'static [Key]> {
    fn within(keys: &'static [Key]) -> Vec<&'static [Key]> {
        let inner = keys.iter().flat_map(|key| within(key.kind.keys()));
        [keys].into_iter().chain(inner).collect()
    }
    let all = [WORKFLOW, DEPLOYMENT].map(within).concat();
    all.into_iter().filter(|keys| keys.iter().any(|known| known.name == key)).collect()
}

#[test]
fn every_line_that_is_advised_for_a_word_of_another_system_is_one_that_the_check_takes() {
    for Words { of, rows, .. } in WORDS {
        for keys in tables_with(of) {
            for (words, line, _) in *rows {
                let found = faults(keys, line).join("\n");
                // Its table needs more than this line.
                let is_good = |fault: &str| fault.ends_with(" is missing") || fault.contains("there is no [[step]]");
                assert!(found.lines().all(is_good), "{words}: {line}: {found}");
            }
        }
    }
}

#[test]
fn every_word_of_another_system_has_its_advice_in_each_table_where_it_is_looked_for() {
    let fault_of = |keys, word: &str| faults(keys, &format!("{word} = 1")).join("\n");
    for Words { of, elsewhere, rows, .. } in WORDS {
        // A step, its undo and its drop have what is sent; the poll of a step and both operations of an agent have answers.
        let tables = [("send", 3), ("means", 3)].iter().find(|(key, _)| key == of).map_or(1, |(_, tables)| *tables);
        assert_eq!(tables_with(of).len(), tables, "{of}");
        let words = rows.iter().flat_map(|(words, line, note)| words.split(' ').map(move |word| (word, line, note)));
        for (word, line, note) in words {
            let is_unknown = |keys: &&[Key]| !keys.iter().any(|key| key.name == word);
            for keys in tables_with(of).into_iter().filter(is_unknown) {
                let found = fault_of(keys, word);
                let advice = format!("1:1: {word} is not a setting: write {line}");
                assert!(found.contains(&advice) && found.contains(note), "{found}");
            }
            for keys in elsewhere.iter().flat_map(|key| tables_with(key)).filter(is_unknown) {
                let found = fault_of(keys, word);
                // That table may have a key for the word itself, or have one with its name in a table of its own.
                assert!(found.contains(": write ") || found.contains(" here: "), "{found}");
            }
        }
    }
}
