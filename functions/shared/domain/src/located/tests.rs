use super::*;
use crate::keys::TEXT;

const INNER: &[Key] = &[Key::new("x", Kind::Number(1, 7)).about("A number").or("3")];
const STEP: &[Key] = &[
    Key::new("name", TEXT).about("Its name").required(),
    Key::new("agent", TEXT).about("Its agent").required(),
    Key::new("inner", Kind::Table(INNER)).about("A table"),
];
const FILE: &[Key] = &[
    Key::new("text", TEXT).about("A text"),
    Key::new("flag", Kind::Flag).about("A flag").or("true"),
    Key::new("word", Kind::Word(&["on", "off"])).about("A word").or("off"),
    Key::new("time", Kind::TimeMs(1_000, 60_000)).about("A time").or("2s"),
    Key::new("inner", Kind::Either(&[Kind::Flag, Kind::Table(INNER)])).about("A table, or not"),
    Key::new("several", Kind::Either(&[TEXT, Kind::Array(1, 2, &TEXT)])).about("One or more"),
    Key::new("step", Kind::Array(1, 3, &Kind::Table(STEP))).about("The steps").required(),
];

/// The faults of a text before a good step.
fn faults(text: &str) -> Vec<String> {
    let text = format!("{text}\n[[step]]\nname = \"a\"\nagent = \"b\"\n");
    let document = Document::new(&text);
    let faults = document.read(FILE).0.finish(()).err().map_or_else(Vec::new, |Faults(faults)| faults);
    faults.iter().map(Fault::to_string).collect()
}

#[test]
fn every_fault_is_found_at_once_in_the_order_of_the_text_with_its_line_and_column() {
    let found = faults(
        "\"ä\" = 1\ninner = { x = 8, y = 2 }\ntext = 7\nflag = \"no\"\nword = \"of\"\ntime = \"2m\"\nseveral = [1]\n\
         [[step]]\nname = \"c\"",
    );
    let settings = "Settings are: text, flag, word, time, inner, several, step";
    let expected = [
        &*format!("1:1: ä is not a setting. {settings}"),
        "2:15: inner.x must be a whole number from 1 to 7",
        "2:18: inner.y is not a setting. Settings are: x",
        "3:8: text must be a text in quotes",
        "4:8: flag must be true or false",
        "5:8: word must be \"on\" or \"off\"",
        "6:8: time must be a time from \"1s\" to \"1m\"",
        "7:12: several[0] must be a text in quotes",
        "8:1: step \"c\": agent is missing",
    ];
    assert_eq!(found, expected);
    assert_eq!(faults("inner = 1"), ["1:9: inner must be true or false, or a table of x"]);
    assert_eq!(faults("several = []"), ["1:11: several must be an array of 1 to 2 elements"]);
}

#[test]
fn a_text_that_is_not_toml_has_one_fault_since_others_may_follow_from_it() {
    let found = faults("text = \"w\ncolour = 1\n");
    assert!(found.len() == 1 && found[0].starts_with("1:10: is not TOML"), "{found:?}");
}

#[test]
fn an_unknown_key_comes_with_the_one_that_may_be_meant_or_with_its_place() {
    let found = faults("agent = 1\n[[step]]\nname = \"c\"\nagent = \"d\"\nnam = 1\ntext = 2\n[step.inner]\nagent = 3");
    let home = "it belongs to [[step]]. Write it below that line, above the tables within it";
    let expected = [
        format!("1:1: agent is not a setting here: {home}"),
        "5:1: step \"c\": nam is not a setting: did you mean name? Settings are: name, agent, inner".to_owned(),
        "6:1: step \"c\": text is not a setting here: write it at the top of the file, above the first table"
            .to_owned(),
        format!("8:1: step \"c\": inner.agent is not a setting here: {home}"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_array_of_tables_that_is_missing_misspelt_or_a_table_is_one_fault() {
    let found = |text: &str| Document::new(text).read(FILE).0.finish(()).unwrap_err().to_string();
    assert_eq!(found(""), "1:1: there is no [[step]]: add one with a name");
    assert!(found("[[steps]]\n").starts_with("1:3: steps is not a setting: did you mean step? Settings are: text"));
    let expected = "2:1: a step begins with two brackets: write [[step]], not [step]";
    assert_eq!(found("text = \"a\"\n[step]\nname = 7"), expected);
    assert_eq!(found("text = \"a\"\n[step]\n[step]\n"), expected, "though a key twice is no TOML");
}

#[test]
fn a_value_that_is_missing_or_has_a_fault_is_read_as_its_default() {
    for text in ["", "flag = 7\nword = \"x\"\ntime = \"9h\"\ninner = { x = 8 }\n"] {
        let document = Document::new(text);
        let (_, root) = document.read(FILE);
        assert_eq!((root.flag("flag"), root.word("word", &[1, 2]), root.time_ms("time")), (true, Some(2), Some(2_000)));
        assert_eq!(root.table("inner").number("x"), Some(3));
        assert!(root.text("text").is_none() && root.one_or_more("several").is_empty());
    }
    let document = Document::new("text = \" a \"\nflag = false\ninner = true\nseveral = \"b\"");
    let (_, root) = document.read(FILE);
    assert_eq!((root.text("text"), root.exact_text("text"), root.flag("flag")), (Some("a"), Some(" a "), false));
    assert!(!root.table("inner").is_given());
    assert_eq!(root.one_or_more("several").iter().filter_map(Entry::text).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_text_within_a_value_has_its_own_place() {
    let document = Document::new("step = [\"x\", { b = \"y\" }]\n");
    let (mut reader, root) = document.read(FILE);
    let entry = root.get("step").unwrap();
    assert_eq!((entry.place_of(|text| text == "y"), entry.place_of(|text| text == "z")), (19, 7));
    reader.blame(entry.place_of(|text| text == "y"), "here");
    assert!(reader.finish(()).unwrap_err().to_string().contains("1:20: here"));
}
