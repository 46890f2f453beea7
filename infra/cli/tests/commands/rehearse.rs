//! `stepwarden rehearse` as a process.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::{Ended, program, run};

fn rehearse(directory: &Path, more: &[&str]) -> Ended {
    let mut command = program(&[&["rehearse", "shop"], more].concat());
    command.current_dir(directory);
    run(command, "")
}

/// A folder as `init` makes it.
fn begun() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut init = program(&["init", "shop"]);
    init.current_dir(directory.path());
    run(init, "").with_status(0).shows(&["stepwarden rehearse shop"]);
    directory
}

#[test]
fn a_begun_folder_is_clean_and_each_form_of_the_report_says_so() {
    let directory = begun();
    let files = ["--report", "shop.html", "--junit", "shop.xml"];
    let clean = rehearse(directory.path(), &[&["--seeds", "20"], &files[..]].concat()).with_status(0);
    clean.shows(&["shop: 20 worlds", "Nothing goes wrong.", "Processed"]);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert!(read("shop.html").contains("Nothing goes wrong"));
    assert!(read("shop.xml").contains("failures=\"0\""));
    let json = rehearse(directory.path(), &["--seeds", "20", "--json"]).with_status(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["Verdict"], &json["Worlds"]), (&"clean".into(), &20.into()));
}

#[test]
fn what_goes_wrong_has_its_key_its_value_and_a_world_to_look_at() {
    let directory = begun();
    let rehearsal = "[services.bank]\nrejects = { share = \"30%\", status = 200, code = \"declined\" }\n";
    fs::write(directory.path().join("shop/rehearsal.toml"), rehearsal).unwrap();
    let found = rehearse(directory.path(), &["--seeds", "20", "--json"]).with_status(1);
    let json: Value = serde_json::from_str(&found.stdout).unwrap();
    let first = &json["Violations"][0];
    assert_eq!(first["Kind"], "processed and not carried out");
    assert_eq!(
        (&first["Change"]["File"], &first["Change"]["Key"]),
        (&"stepwarden.toml".into(), &"agents.bank.forward.answers".into())
    );
    assert_eq!(json["WithChanges"]["WithViolations"], 0);
    let seed = first["Seed"].to_string();
    let world = rehearse(directory.path(), &["--seed", &seed, "--trace"]).with_status(1);
    world.shows(&["EFFECT of reserve-stock #1", "processed and not carried out: "]);
    // What is proposed is accepted.
    let file = directory.path().join("shop/stepwarden.toml");
    let line = first["Change"]["Line"].as_str().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let table = line.strip_prefix("agents.bank.forward.").unwrap();
    let operation =
        text.lines().skip_while(|line| *line != "[agents.bank]").find(|line| line.starts_with("forward = "));
    let text = match operation {
        Some(of) => text.replace(of, &format!("forward.{}\nforward.{table}", of.replace("forward = ", "operation = "))),
        None => text.replace("[agents.bank]\n", &format!("[agents.bank]\nforward.{table}\n")),
    };
    fs::write(&file, text).unwrap();
    rehearse(directory.path(), &["--seeds", "20"]).with_status(0);
}

#[test]
fn what_cannot_be_rehearsed_says_what_to_do() {
    let directory = begun();
    let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
    rehearse(directory.path(), &["--init"]).with_status(0).shows(&["rehearsal.toml"]);
    rehearse(directory.path(), &["--init"]).with_status(2).says(&["rehearsal.toml is there already"]);
    rehearse(directory.path(), &["--seeds", "2"]).with_status(0);
    write("shop/rehearsal.toml", "[services.bnk]\n");
    rehearse(directory.path(), &["--seeds", "2"]).with_status(2).says(&["no step has the agent bnk", "bank"]);
    write("shop/rehearsal.toml", "[services.bank]\nlatncy.p50 = \"1s\"\n");
    rehearse(directory.path(), &["--seeds", "2"]).with_status(2).says(&["rehearsal.toml:2:1", "latency"]);
    fs::remove_file(directory.path().join("shop/rehearsal.toml")).unwrap();
    write("orders", "{\"Total\": 1}\n{\"Total\": \n");
    rehearse(directory.path(), &["--orders", "orders"]).with_status(2).says(&["orders:2: is no JSON"]);
    write("orders", "{\"Nothing\": \"that the shop wants\"}\n");
    rehearse(directory.path(), &["--orders", "orders"]).with_status(2).says(&["no order can be posted"]);
    rehearse(directory.path(), &["--trace"]).with_status(2).says(&["--seed"]);
}
