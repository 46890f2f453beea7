//! apply, and the version that new orders begin with.

use std::fs;
use std::path::Path;

use crate::run::{Ended, Served, run};

/// A service that answers nothing: its orders stay open.
const SETTINGS: &str = "default = \"shop\"\n\n[agents.stock]\nurl = \"http://127.0.0.1:9\"\n";

fn version(number: u32, failures: u32) -> String {
    format!(
        "name = \"shop\"\nversion = {number}\n\n[[step]]\nname = \"reserve\"\nagent = \"stock\"\n\
         max_failures = {failures}\n"
    )
}

fn write(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("workflows")).unwrap();
    fs::write(folder.join("stepwarden.toml"), SETTINGS).unwrap();
    fs::write(folder.join("workflows/shop.toml"), text).unwrap();
}

#[test]
fn a_folder_is_applied_shared_chosen_and_retired_and_what_would_strand_orders_is_refused() {
    let served = Served::start();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_str().unwrap();
    let apply = |more: &[&str]| served.run(&[&["apply", folder, "--reason", "season"], more].concat());
    let act = |more: &[&str]| served.run(&[&["workflows"], more, &["--reason", "season"]].concat());
    let versions = |words: &[&str]| {
        served.run(&["workflows"]).with_status(0).shows(words);
    };

    write(scratch.path(), &version(1, 3));
    apply(&[]).with_status(2).says(&["workflow shop/1", "Apply this?", "--yes"]);
    apply(&["--yes"]).with_status(0).says(&["default", "applied"]);
    apply(&["--yes"]).with_status(0).says(&["nothing changes"]);
    let id = served.accepted("{}");
    served.reach(&id, "Processing");
    let listed = |workflow: &str| served.run(&["list", "--workflow", workflow, "-o", "json"]).with_status(0).lines();
    assert_eq!((listed("shop").len(), listed("shop/1").len(), listed("shop/2").len()), (1, 1, 0));

    write(scratch.path(), &version(1, 4));
    let refused = apply(&["--yes"]).with_status(4);
    refused.says(&["stepwarden: - max_failures = 3\n", "stepwarden: + max_failures = 4\n", "the next version\n"]);

    write(scratch.path(), &version(2, 4));
    apply(&["--share", "0", "--yes"]).with_status(2).says(&["must be from 1 to 99"]);
    apply(&["--share", "20%", "--yes"]).with_status(0).says(&["20 %"]);
    versions(&["1 (80 % of new orders, default)", "2 (20 % of new orders, default)", "1 (no new orders)"]);
    let text = served.run(&["workflows", "shop/2", "--text"]).with_status(0).stdout;
    assert_eq!(text, version(2, 4));

    act(&["retire", "shop/1"]).with_status(4).says(&["choose another version first"]);
    act(&["choose", "shop"]).with_status(2).says(&["names no version", "shop/2"]);
    act(&["choose", "shop/9"]).with_status(3).says(&["no workflow of this name and version"]);
    act(&["choose", "shop/2"]).with_status(0).says(&["new orders of shop begin with shop/2"]);
    versions(&["2 (new orders, default)", "1 (no new orders)"]);
    act(&["retire", "shop/1"]).with_status(4).says(&["workflow shop/1 has open orders (1)", "workflow=shop/1"]);

    write(scratch.path(), &version(3, 5));
    apply(&["--share", "50", "--yes"]).with_status(0);
    act(&["choose", "shop/2"]).with_status(0);
    versions(&["3 (no new orders)"]);
    act(&["retire", "shop/3"]).with_status(0).says(&["shop/3 is retired"]);
    versions(&["3 (retired)"]);
    act(&["choose", "shop/3"]).with_status(4).says(&["was retired"]);
    act(&["choose", "order/1", "--default"]).with_status(4).says(&["no table [agents.inventory]"]);
}

#[test]
fn faults_of_a_folder_are_named_before_any_call() {
    let scratch = tempfile::tempdir().unwrap();
    write(scratch.path(), "name = \"shop\"\n");
    let mut command = crate::run::program(&["apply", ".", "--reason", "x", "--yes"]);
    command.current_dir(scratch.path()).env("STEPWARDEN_API", "http://127.0.0.1:9");
    let ended: Ended = run(command, "").with_status(1);
    ended.shows(&["workflows/shop.toml:1:1", "version"]);
}
