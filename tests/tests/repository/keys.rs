//! What is made of the keys of a configuration: the tables in the documents, and the schemas for editors.

use boon::{Compiler, Draft, SchemaIndex, Schemas};
use config::keys::{DEPLOYMENT, schema};
use domain::workflow::WORKFLOW;
use serde_json::Value;
use tests::documents::{files, text_of};
use tests::keys::{DOCUMENTS, with_tables};

#[test]
fn the_tables_of_keys_are_as_new_as_the_keys() {
    for path in DOCUMENTS {
        let text = text_of(path);
        assert!(text.contains("<!-- keys of "), "{path} has a table of keys");
        assert!(
            text == with_tables(&text),
            "{path} is older than the keys. Write it anew: cargo run -p tests --bin keys"
        );
    }
}

/// The schemas of `stepwarden.toml` and of a workflow.
fn schemas() -> (Schemas, [SchemaIndex; 2]) {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.set_default_draft(Draft::V7);
    let mut compile = |name: &str, keys| {
        let place = format!("https://keys.invalid/{name}.json");
        compiler.add_resource(&place, schema(name, keys)).unwrap();
        compiler.compile(&place, &mut schemas).unwrap_or_else(|error| panic!("{name}: {error:#}"))
    };
    let compiled = [compile("stepwarden.toml", DEPLOYMENT), compile("workflow", WORKFLOW)];
    (schemas, compiled)
}

fn json(toml: &str) -> Value {
    toml::from_str(toml).unwrap()
}

#[test]
fn an_editor_finds_no_fault_in_the_examples() {
    let (schemas, [deployment, workflow]) = schemas();
    let examples: Vec<_> =
        files(&["toml"]).into_iter().filter(|(path, _)| path.starts_with("infra/examples/")).collect();
    assert!(examples.len() > 8, "{}", examples.len());
    for (path, text) in examples {
        let of = if path.ends_with("/stepwarden.toml") { deployment } else { workflow };
        let fault = schemas.validate(&json(&text), of).err().map(|error| format!("{error:#}"));
        assert_eq!(fault, None, "{path}");
    }
}

#[test]
fn an_editor_finds_what_the_check_finds_by_the_keys_alone() {
    let (schemas, [deployment, workflow]) = schemas();
    let step = |line: &str| format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\n{line}");
    let agent = |line: &str| format!("[agents.a]\n{line}");
    for (of, good, bad) in [
        (workflow, step("max_failures = 3"), step("max_failures = 0")),
        (workflow, step("on_exhausted = \"hold\""), step("on_exhausted = \"wait\"")),
        (workflow, step("optional = true"), step("optionl = true")),
        (workflow, step(""), "name = \"w\"\nversion = 1".to_owned()),
        (deployment, agent("memo = { retention = \"30d\" }"), agent("memo = { retain = \"30d\" }")),
        (deployment, agent("rate = 20"), agent("rate = 2000")),
        (deployment, agent("forward.status = { 404 = \"no\" }"), agent("forward.status = { 404 = \"not\" }")),
    ] {
        assert!(schemas.validate(&json(&good), of).is_ok(), "{good}");
        assert!(schemas.validate(&json(&bad), of).is_err(), "{bad}");
    }
}
