//! Orders of 1, 18 and 200 lines: how they are shown, and what an operator does about one line.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::run::Served;
use crate::stub::{Stub, answer};

const EACH: &str = "for_each = \"/Order/Lines\"\nitem_id = \"/SKU\"\nsend = { sku = \"/Item/SKU\" }\n\
                    undo = { send = { sku = \"/Item/SKU\" } }\n";

/// A shop whose carrier refuses what is heavy until it is mended.
struct Shop {
    served: Served,
    is_mended: Arc<AtomicBool>,
    _carrier: Stub,
}

impl Shop {
    fn start() -> Self {
        let is_mended = Arc::new(AtomicBool::new(false));
        let seen = is_mended.clone();
        let carrier = Stub::start(move |_, asked| {
            let is_refused = asked.target == "/do" && asked.body.contains("heavy") && !seen.load(Ordering::Relaxed);
            match is_refused {
                true => answer("422 No", "", r#"{"code": "too-heavy", "message": "more than 30 kg"}"#),
                false => answer("200 OK", "", "{}"),
            }
        });
        let (served, folder) = (Served::start(), tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join("workflows")).unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        // Of many calls at once one may be lost, and its undo waits for it.
        let times = "call_timeout = \"1s\"\nsettles_within = \"2s\"\n";
        write("stepwarden.toml", format!("default = \"sale\"\n[agents.carrier]\nurl = \"{}\"\n{times}", carrier.url));
        let step = |name: &str, more: &str| format!("[[step]]\nname = {name:?}\nagent = \"carrier\"\n{more}");
        let ship = step("ship", &format!("on_rejected = \"hold\"\n{EACH}"));
        let tell = step("tell", "after = [\"ship\"]\nsend = { all = \"/Outputs/ship\" }\nundo = \"none\"\n");
        write("workflows/sale.toml", format!("name = \"sale\"\nversion = 1\n{ship}{tell}"));
        write("workflows/pick.toml", format!("name = \"pick\"\nversion = 1\n{ship}"));
        served.run(&["apply", folder.path().to_str().unwrap(), "--reason", "test", "--yes"]).with_status(0);
        Self { served, is_mended, _carrier: carrier }
    }

    /// An order in `Error`. This number of its lines, from the first on, are heavy. Nothing is under way any more.
    fn held(&self, workflow: &str, count: usize, heavy: usize) -> String {
        let sku = |place: usize| format!("{}-{place}", if place < heavy { "heavy" } else { "mug" });
        let lines: Vec<Value> = (0..count).map(|place| json!({"SKU": sku(place)})).collect();
        let id = self.served.accepted(&json!({"Workflow": workflow, "Lines": lines}).to_string());
        for _ in 0..600 {
            let seen = self.served.run(&["get", &id, "-o", "json"]);
            let text = seen.stdout.matches("\"ProcessState\":\"Error\"").count();
            // That of the order is one more.
            if seen.status == 0 && text == heavy + 1 && !seen.stdout.contains("\"ProcessState\":\"Processing\"") {
                return id;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{id} does not wait for an operator");
    }

    fn get(&self, id: &str) -> Value {
        self.served.run(&["get", id, "-o", "json"]).json()
    }

    fn settle(&self, id: &str, step: &str, outcome: &str) -> crate::run::Ended {
        self.served.run(&["settle", id, step, "--outcome", outcome, "--reason", "asked the carrier"])
    }

    /// Waits until a step has left `Error`.
    fn is_settled(&self, id: &str, step: &str) {
        for _ in 0..200 {
            let task = self.get(id);
            let steps = task["Steps"].as_array().unwrap();
            if steps.iter().any(|one| one["Name"] == step && one["ProcessState"] != "Error") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{step} of {id} is not settled");
    }
}

/// All but the lines of the history, which begin with a time.
fn above_the_history(shown: &str) -> String {
    let is_of_it = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    shown.lines().filter(|line| !is_of_it(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_operator_drops_one_line_settles_another_and_resubmits_the_third() {
    let shop = Shop::start();
    let id = shop.held("sale", 18, 3);
    let shown = shop.served.run(&["get", &id]).with_status(0);
    shown.shows(&[
        "15 of 18 done, 3 failed",
        "ship/heavy-0",
        "ship/heavy-2",
        "more than 30 kg",
        "settle it as dropped",
    ]);
    assert_eq!(above_the_history(&shown.stdout).matches("ship/mug-").count(), 0, "{shown:?}");

    shop.settle(&id, "ship/heavy-0", "dropped").with_status(0);
    shop.is_settled(&id, "ship/heavy-0");
    shop.settle(&id, "ship/heavy-0", "dropped").with_status(4).says(&["no such step is in Error in that direction"]);
    shop.settle(&id, "ship/heavy-1", "done").with_status(0);
    shop.is_settled(&id, "ship/heavy-1");
    assert_eq!(shop.get(&id)["ProcessState"], "Error", "the third waits still");

    shop.is_mended.store(true, Ordering::Relaxed);
    let resubmitted = shop.served.run(&["resubmit", &id, "--reason", "two men carry it", "--wait"]).with_status(0);
    resubmitted.shows(&["Processed", "17 of 18 done, 1 dropped", "two men carry it"]);
    let lines = &shop.get(&id)["Lines"];
    assert_eq!((lines["Carried"].as_array().unwrap().len(), &lines["Dropped"]), (17, &json!(["heavy-0"])));
}

#[test]
fn the_only_line_of_an_order_is_not_dropped() {
    let shop = Shop::start();
    let id = shop.held("sale", 1, 1);
    shop.settle(&id, "ship/heavy-0", "dropped").with_status(4).says(&["the last line"]);
    let shown = shop.served.run(&["get", &id]).with_status(0);
    shown.shows(&["0 of 1 done, 1 failed"]);
    assert!(!shown.stdout.contains("settle it as dropped"), "{}", shown.stdout);
    shop.settle(&id, "ship/heavy-0", "done").with_status(0);
    shop.served.reach(&id, "Processed");
}

#[test]
fn two_hundred_lines_are_a_row_and_the_failed_ones() {
    let shop = Shop::start();
    let id = shop.held("pick", 200, 7);
    let shown = shop.served.run(&["get", &id]).with_status(0);
    shown.shows(&["193 of 200 done, 7 failed"]);
    let above = above_the_history(&shown.stdout);
    assert!(above.lines().count() < 40 && !above.contains("ship/mug-"), "{above}");
    for place in 0..7 {
        let step = format!("ship/heavy-{place}");
        shop.settle(&id, &step, "dropped").with_status(0);
        shop.is_settled(&id, &step);
    }
    shop.served.reach(&id, "Processed");
    let lines = &shop.get(&id)["Lines"];
    let count = |kind: &str| lines[kind].as_array().unwrap().len();
    assert_eq!((count("Carried"), count("Dropped")), (193, 7));
}
