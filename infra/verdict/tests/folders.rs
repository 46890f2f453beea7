//! Folders with one fault each: what goes wrong is found, and the key to change. With it, the same worlds are clean.

use std::sync::atomic::AtomicBool;

use rehearsal::description::Description;
use verdict::day::Assume;
use verdict::folder::{Folder, Given};
use verdict::judge::Kind;
use verdict::search::Search;
use verdict::worlds::{Keep, Seen, run, run_all};

/// A shop of three steps. What a case says of a table or step is put into it.
#[derive(Default)]
struct Shop {
    stock: &'static str,
    payment: &'static str,
    parcels: &'static str,
    head: &'static str,
    charge: Option<&'static str>,
    rehearsal: &'static str,
}

const UNDO: &str = "[step.undo]\nsend = { order = \"/OrderID\" }";

impl Shop {
    fn given(&self) -> Given {
        let agent = |name: &str, forward: &str, undo: &str, more: &str| {
            let more =
                if more.contains("forward") { more.to_owned() } else { format!("forward = \"{forward}\"\n{more}") };
            format!("[agents.{name}]\nurl = \"https://{name}.example\"\nundo = \"{undo}\"\n{more}\n")
        };
        let agents = agent("stock", "reserve", "release", self.stock)
            + &agent("payment", "charge", "refund", self.payment)
            + &agent("parcels", "ship", "cancel", self.parcels);
        let step = |name: &str, agent: &str, after: &str, send: &str, more: &str| {
            format!(
                "[[step]]\nname = \"{name}\"\nagent = \"{agent}\"\n{after}send = {{ order = \"/OrderID\", {send} }}\n{more}\n"
            )
        };
        let workflow = format!("name = \"shop\"\nversion = 1\n{}\n", self.head)
            + &step("reserve", "stock", "", "sku = \"/Order/SKU\"", UNDO)
            + &step(
                "charge",
                "payment",
                "after = [\"reserve\"]\n",
                "amount = \"/Order/Total\"",
                self.charge.unwrap_or(UNDO),
            )
            + &step("ship", "parcels", "after = [\"charge\"]\n", "to = \"/Order/Address\"", UNDO);
        let files = [("stepwarden.toml", format!("default = \"shop\"\n{agents}")), ("workflows/shop-1.toml", workflow)];
        Given {
            files: files.map(|(name, text)| (name.to_owned(), text)).into(),
            description: Description::parse(self.rehearsal).unwrap(),
            orders: vec![serde_json::json!({"SKU": "MUG", "Total": 25.50, "Address": "London"})],
        }
    }
}

/// What is found in the worlds of these seeds: the kinds, and the changes.
fn found(shop: &Shop, seeds: std::ops::Range<u64>) -> Vec<(Kind, String)> {
    let folder = shop.given().ready().unwrap();
    let stop = AtomicBool::new(false);
    let seen = run_all(&folder, seeds, Assume::All, 2, &stop, &|_| {});
    let search = Search { folder: &folder, assume: Assume::All, others: 20, threads: 2, stop: &stop };
    let findings = search.findings(&seen);
    if !findings.all.is_empty() {
        assert_eq!(findings.confirmed.map(|(_, bad)| bad), Some(0), "with the changes: {:?}", findings.all);
    }
    let change =
        |edit: &Option<verdict::edit::Edit>| edit.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    findings.all.iter().map(|finding| (finding.violation.kind, change(&finding.edit))).collect()
}

/// The one thing that is wrong with a shop, and the change.
fn only(shop: &Shop, seeds: std::ops::Range<u64>, kind: Kind, change: &str) {
    let found = found(shop, seeds);
    assert!(found.contains(&(kind, change.to_owned())), "{found:?}");
    assert!(found.iter().all(|(_, of)| of == change), "{found:?}");
}

#[test]
fn a_time_to_settle_that_is_too_short_leaves_a_charge() {
    let rehearsal = "[services.payment]\neffect_after_caller_left = \"43s\"\nrefuses_forward_after_undo = false";
    let shop = Shop { rehearsal, ..Shop::default() };
    only(&shop, 370..390, Kind::StillCharged, "stepwarden.toml: agents.payment.settles_within = \"45s\"");
}

#[test]
fn a_forgetful_service_needs_a_memo() {
    let shop = Shop { rehearsal: "[services.payment]\nforgets_keys_after = \"1ms\"", ..Shop::default() };
    only(&shop, 8..40, Kind::ChargedTwice, "stepwarden.toml: agents.payment.memo = true");
}

#[test]
fn a_horizon_ends_before_keys_are_forgotten() {
    let shop = Shop { rehearsal: "[services.payment]\nforgets_keys_after = \"1h\"", ..Shop::default() };
    only(&shop, 40..50, Kind::ChargedTwice, "workflows/shop-1.toml: step charge: horizon = \"45m\"");
}

#[test]
fn a_result_is_awaited_for_as_long_as_it_may_take() {
    let rehearsal = "[services.payment]\nlater = { share = \"80%\", within = \"2h\" }";
    let shop = Shop {
        charge: Some("wait_within = \"10m\"\n[step.undo]\nsend = { order = \"/OrderID\" }"),
        rehearsal,
        ..Shop::default()
    };
    only(&shop, 0..4, Kind::GivenUp, "workflows/shop-1.toml: step charge: wait_within = \"2h30m\"");
}

#[test]
fn a_deadline_is_longer_than_the_chain() {
    let rehearsal = "[services.parcels]\nlatency = { p50 = \"2s\", p99 = \"8s\", max = \"9s\" }";
    let shop = Shop { head: "complete_within = \"20s\"", rehearsal, ..Shop::default() };
    let found = found(&shop, 0..24);
    assert!(
        found.iter().all(|(kind, change)| *kind == Kind::Late && change.contains(": complete_within = ")),
        "{found:?}"
    );
    assert!(!found.is_empty());
}

#[test]
fn a_conflict_is_no_rejection() {
    let shop = Shop { payment: "forward = { operation = \"charge\", status = { 409 = \"no\" } }", ..Shop::default() };
    only(&shop, 8..60, Kind::TurnedForNothing, "stepwarden.toml: leave agents.payment.forward.status.409 out");
}

#[test]
fn a_service_is_called_no_more_often_than_it_takes() {
    let shop = Shop { parcels: "rate = 50", rehearsal: "[services.parcels]\nlimit = 5", ..Shop::default() };
    only(&shop, 4..5, Kind::TooFast, "stepwarden.toml: agents.parcels.rate = 5");
}

#[test]
fn a_step_before_one_that_may_be_rejected_has_an_undo() {
    let shop = Shop { charge: Some("undo = \"none\""), ..Shop::default() };
    let change = "workflows/shop-1.toml: step charge: undo = { send = { order = \"/OrderID\" } }";
    only(&shop, 8..40, Kind::StillCharged, change);
}

#[test]
fn a_rejection_within_a_success_needs_a_condition() {
    let rehearsal = "[services.payment]\nrejects = { share = \"10%\", status = 200, code = \"declined\" }";
    let shop = Shop { rehearsal, ..Shop::default() };
    let change = "stepwarden.toml: agents.payment.forward.answers = \
                  [{ means = \"no\", status = 200, when = '/code == \"declined\"' }]";
    only(&shop, 0..20, Kind::NotShipped, change);
}

#[test]
fn a_breaker_opens_in_an_outage() {
    let shop = Shop {
        payment: "breaker = { failures = 1000000 }",
        rehearsal: "[services.payment]\noutage = { lasts = \"1h\" }",
        ..Shop::default()
    };
    only(&shop, 5..8, Kind::GivenUpInOutage, "stepwarden.toml: agents.payment.breaker.failures = 5");
}

#[test]
fn an_undo_of_nothing_that_is_not_found_is_done() {
    let shop =
        Shop { rehearsal: "[services.payment]\nundo_of_nothing = 404\nrejects.share = \"20%\"", ..Shop::default() };
    only(&shop, 0..20, Kind::Stuck, "stepwarden.toml: agents.payment.undo.status.404 = \"done\"");
}

#[test]
fn a_sound_shop_is_clean_and_a_seed_is_one_world() {
    let folder: Folder = Shop::default().given().ready().unwrap();
    let stop = AtomicBool::new(false);
    let seen: Seen = run_all(&folder, 0..120, Assume::All, 2, &stop, &|_| {});
    assert!(seen.found.is_empty(), "{:?}", seen.found);
    let [first, again] = [0, 1].map(|_| run(&folder, 17, Assume::All, Keep::Trace));
    let lines = |over: &verdict::worlds::Over| over.lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&first), lines(&again));
    assert!(first.lines.len() > 20);
}

/// A folder of these workflows at one agent, with an order.
fn workflows(texts: &[&str], order: serde_json::Value) -> Folder {
    let agents = "default = \"w0\"\n[agents.desk]\nurl = \"https://desk.example\"\n".to_owned();
    let mut files = vec![("stepwarden.toml".to_owned(), agents)];
    let named = texts.iter().enumerate().map(|(number, text)| {
        (format!("workflows/w{number}.toml"), format!("name = \"w{number}\"\nversion = 1\n{text}"))
    });
    files.extend(named);
    Given { files, description: Description::default(), orders: vec![order] }.ready().unwrap()
}

fn seen(folder: &Folder, seeds: std::ops::Range<u64>) -> Seen {
    run_all(folder, seeds, Assume::All, 2, &AtomicBool::new(false), &|_| {})
}

#[test]
fn people_who_did_not_post_an_order_decide_on_it() {
    let approval = "[[step]]\nname = \"ask\"\nkind = \"approval\"\non_exhausted = \"compensate\"\n\
                    [[step]]\nname = \"act\"\nagent = \"desk\"\nafter = [\"ask\"]\n";
    let seen = seen(&workflows(&[approval], serde_json::json!({"A": 1})), 0..20);
    assert!(seen.found.is_empty(), "{:?}", seen.found);
    let ends = &seen.counts.ends;
    assert!(ends["Processed"] > 5 && ends["Compensated"] > 2, "{ends:?}");
}

#[test]
fn a_child_order_is_awaited_for_as_long_as_it_takes() {
    let parent = "[[step]]\nname = \"child\"\nkind = \"order\"\nworkflow = \"w1\"\nsend = { A = \"/Order/A\" }\n\
                  wait_within = \"2h\"\nundo = \"none\"\n";
    let child = "[[step]]\nname = \"act\"\nagent = \"desk\"\nwait = \"1d\"\nundo = \"none\"\n";
    let folder = workflows(&[parent, child], serde_json::json!({"A": 1}));
    let seen = seen(&folder, 0..2);
    let stop = AtomicBool::new(false);
    let findings = Search { folder: &folder, assume: Assume::All, others: 4, threads: 2, stop: &stop }.findings(&seen);
    let first = findings.all.first().unwrap();
    assert_eq!(first.violation.kind, Kind::GivenUp);
    let change = first.edit.as_ref().unwrap().to_string();
    assert_eq!(change, "workflows/w0.toml: step child: wait_within = \"8h\"", "three times as long as a day");
}

#[test]
fn an_order_that_begins_later_is_not_stuck_and_each_workflow_finds_what_it_names() {
    let one = "[[step]]\nname = \"act\"\nagent = \"desk\"\nkeep = { ID = \"/id\" }\nundo = \"none\"\n";
    let other = "[[step]]\nname = \"act\"\nagent = \"desk\"\nkeep = { Number = \"/number\" }\nundo = \"none\"\n";
    for order in [serde_json::json!({"NotBefore": "2027-01-20T00:00:00Z"}), serde_json::json!({"Workflow": "w1"})] {
        let seen = seen(&workflows(&[one, other], order), 0..20);
        assert!(seen.found.is_empty() && seen.counts.ends["Processed"] > 10, "{:?}", seen.found);
    }
}
