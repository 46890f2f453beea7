use super::*;

/// Folders with faults, and the faults.
const BROKEN: &str = include_str!("broken.txt");

fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn faults(of: &[(&str, &str)]) -> Vec<String> {
    let Faults(faults) = Folder::check(&files(of)).err().unwrap_or(Faults(Vec::new()));
    faults.iter().map(Fault::to_string).collect()
}

const STEP: &str = "[[step]]\nname = \"bake\"\nagent = \"bakery\"\n";

fn workflow(name: &str, version: u32) -> String {
    format!("name = {name:?}\nversion = {version}\n{STEP}")
}

#[test]
fn every_fault_of_a_broken_folder_is_found_at_once_with_its_file_line_and_column() {
    let cases: Vec<&str> = BROKEN.split("=== ").skip(1).collect();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in cases {
        let (title, rest) = case.split_once('\n').unwrap();
        let (given, expected) = rest.split_once(">>>\n").unwrap();
        let given: Vec<(&str, &str)> =
            given.split("--- ").skip(1).map(|file| file.split_once('\n').unwrap_or((file, ""))).collect();
        let found = faults(&given).join("\n");
        assert!(!found.is_empty(), "{title}");
        assert_eq!(found, expected.trim_end(), "{title}");
    }
}

#[test]
fn a_good_folder_is_what_its_files_say() {
    let deployment = "default = \"cakes\"\n[agents.bakery]\nurl = \"http://localhost:1\"\n[agents.spare]\nqueue = \"own\"\n\
                      [reply_channels]\nshop = \"http://localhost:9000/replies\"\n";
    let (one, two) = (workflow("cakes", 2), workflow("bread", 1));
    let (eleven, deployment_file) = (workflow("cakes", 11), (DEPLOYMENT_FILE, deployment));
    let given =
        [("workflows/a.toml", &*eleven), ("workflows/b.toml", &*one), ("workflows/c.toml", &*two), deployment_file];
    let checked = Folder::check(&files(&given)).unwrap();
    assert_eq!((checked.default.as_deref(), &*checked.deployment_text), (Some("cakes"), deployment));
    let of = |workflow: &CheckedWorkflow| format!("{} {:?}", workflow.file, workflow.key());
    let workflows: Vec<String> = checked.workflows.iter().map(of).collect();
    assert_eq!(
        workflows,
        ["workflows/c.toml (\"bread\", 1)", "workflows/b.toml (\"cakes\", 2)", "workflows/a.toml (\"cakes\", 11)"]
    );
    assert_eq!((&*checked.workflows[0].text, &*checked.workflows[0].workflow.steps[0].agent), (&*two, "bakery"));
    assert_eq!(checked.settings.names().collect::<Vec<_>>(), ["bakery", "spare"]);
    assert_eq!(checked.reply_channels["shop"].url, "http://localhost:9000/replies");
}

#[test]
fn a_version_is_stored_with_its_schema_whose_blanks_do_not_count() {
    let workflow = workflow("cakes", 1).replace("[[step]]", "schema = \"cake.json\" # of every cake\n[[step]]");
    let checked = |workflow: &str, schema: &str| {
        let given = [
            (DEPLOYMENT_FILE, "[agents.bakery]"),
            ("workflows/cakes-1.toml", workflow),
            ("workflows/cake.json", schema),
        ];
        let checked = Folder::check(&files(&given)).unwrap_or_else(|faults| panic!("{faults}"));
        checked.workflows.into_iter().next().unwrap()
    };
    let one = checked(&workflow, "{\n  \"const\": \"it's\"\n}\n");
    let inner = "schema = '{\"const\":\"it\\u0027s\"}' # of every cake\n";
    assert_eq!(*one.text, workflow.replace("schema = \"cake.json\" # of every cake\n", inner));
    assert_eq!(Workflow::read(&one.text).unwrap(), one.workflow);
    let hash = |of: &CheckedWorkflow| domain::definition::Definition::hash_of(&of.text);
    assert_eq!(hash(&checked(&workflow, "{\"const\":\"it's\"}")), hash(&one));
    assert_ne!(hash(&checked(&workflow, "{\"const\":\"it is\"}")), hash(&one));
    // What was stored may be applied again as a file.
    let given = [(DEPLOYMENT_FILE, "[agents.bakery]"), ("workflows/cakes-1.toml", &one.text)];
    assert_eq!(Folder::check(&files(&given)).unwrap().workflows[0].text, one.text);
    assert!(Workflow::read(&workflow).unwrap_err().to_string().contains("must be a schema here"));
}

#[test]
fn of_a_schema_that_is_not_known_nothing_is_told_but_that() {
    let text = workflow("cakes", 1).replace("[[step]]", "schema = \"cake.json\"\n[[step]]");
    let given = files(&[(DEPLOYMENT_FILE, "[agents.bakery]"), ("workflows/cakes.toml", &text)]);
    let unread = vec![Fault::of_file("workflows/cake.json", "is not text in UTF-8")];
    let found = Folder::check_read(&given, unread).unwrap_err().to_string();
    assert_eq!(found, "workflows/cake.json:1:1: is not text in UTF-8");
    let long = " ".repeat(FILE_BYTES_MAX + 1);
    let given = [(DEPLOYMENT_FILE, "[agents.bakery]"), ("workflows/cakes.toml", &text), ("workflows/cake.json", &long)];
    assert_eq!(faults(&given), ["workflows/cake.json:1:1: has more than 65536 bytes: shorten it"]);
    let broken =
        [(DEPLOYMENT_FILE, ""), ("workflows/cakes.toml", "schema = \"cake.json"), ("workflows/cake.json", "{}")];
    assert_eq!(faults(&broken).len(), 1, "{:?}", faults(&broken));
    let no_text = text.replace("\"cake.json\"", "[\"cake.json\"]");
    let given =
        [(DEPLOYMENT_FILE, "[agents.bakery]"), ("workflows/cakes.toml", &*no_text), ("workflows/cake.json", "{}")];
    assert_eq!(faults(&given).len(), 1, "{:?}", faults(&given));
}

#[test]
fn a_folder_may_say_nothing() {
    let checked = Folder::check(&files(&[(DEPLOYMENT_FILE, "")])).unwrap();
    assert!(checked.default.is_none() && checked.workflows.is_empty());
}

#[test]
fn the_agents_of_the_shipped_workflow_need_no_table_and_a_fallback_may_be_any_agent() {
    let text = workflow("order", 2).replace("bakery", "inventory");
    let deployment = "[agents.bakery]\nmemo = true\nfallback = [\"payment\", \"oven\"]\n[agents.oven]\n";
    assert_eq!(faults(&[(DEPLOYMENT_FILE, deployment), ("workflows/order.toml", &text)]), Vec::<String>::new());
}

#[test]
fn a_folder_has_limits() {
    let long = format!("# {}\n", "x".repeat(FILE_BYTES_MAX));
    let found = faults(&[(DEPLOYMENT_FILE, &long), ("workflows/a.toml", &long)]);
    let kept = "leave out versions that are applied already, they stay";
    let total =
        format!("stepwarden.toml:1:1: the files of the folder have 131155 bytes as JSON, the limit is 126976: {kept}");
    let each = |file| format!("{file}:1:1: has more than 65536 bytes: shorten it");
    assert_eq!(found, [each("stepwarden.toml"), total, each("workflows/a.toml")]);
    let many = |count: u32, more: &str| {
        let texts = (1..=count).map(|version| (format!("workflows/{version}.toml"), workflow("cakes", version) + more));
        let deployment = (DEPLOYMENT_FILE.to_owned(), "[agents.bakery]".to_owned());
        Folder::check(&texts.chain([deployment]).collect::<Vec<_>>())
    };
    assert_eq!(many(99, "").unwrap().workflows.len(), FILES_MAX - 1);
    let too_many = many(100, "").unwrap_err().to_string();
    assert_eq!(too_many, format!("stepwarden.toml:1:1: the folder has 101 files, the limit is 100: {kept}"));
    let too_large = many(2, &format!("# {}\n", "x".repeat(FILE_BYTES_MAX - 200))).unwrap_err().to_string();
    assert!(too_large.contains(" bytes as JSON, the limit is 126976"), "{too_large}");
    // A line's end and a quote have two bytes in JSON.
    let escaped = Folder::check(&files(&[(DEPLOYMENT_FILE, &"#\"\n".repeat(20_000))]));
    assert_eq!(escaped.map(|_| ()), Ok(()));
    let lines = "#\"\n".repeat(21_000);
    let escaped = faults(&[(DEPLOYMENT_FILE, &lines), ("workflows/a.toml", &lines)]);
    assert!(escaped[0].ends_with(&format!(" bytes as JSON, the limit is 126976: {kept}")), "{escaped:?}");
}
