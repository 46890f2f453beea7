//! Orders with lines (rule 50): how they vary, how their lines fail, and folders with one fault in them.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use domain::workflow::DropMax;
use rehearsal::description::Description;
use rehearsal::setup::{LineEnds, Which};
use verdict::day::{self, Assume, Day};
use verdict::doubts::doubts;
use verdict::folder::{Folder, Given};
use verdict::judge::Kind;
use verdict::search::{Finding, Search};
use verdict::story::sentence;
use verdict::worlds::{Seen, run_all};

/// A folder of the shipped example.
fn example() -> Folder {
    let files = [
        ("stepwarden.toml", include_str!("../../examples/lines/stepwarden.toml")),
        ("workflows/sale-1.toml", include_str!("../../examples/lines/workflows/sale-1.toml")),
    ];
    Given {
        files: files.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        description: Description::default(),
        orders: vec![serde_json::from_str(include_str!("../../examples/lines/order.json")).unwrap()],
    }
    .ready()
    .unwrap()
}

fn seen(folder: &Folder, seeds: std::ops::Range<u64>) -> Seen {
    run_all(folder, seeds, Assume::All, 2, &AtomicBool::new(false), &|_| {})
}

/// A shop that charges an order, and picks and ships each line: what a case says of a step or table is put in.
#[derive(Default)]
struct Shop {
    stock: &'static str,
    parcels: &'static str,
    head: &'static str,
    charge: &'static str,
    pick: Option<&'static str>,
    ship: &'static str,
    rehearsal: &'static str,
}

/// An undo by the name of the line.
const UNDO: &str = "undo = { send = { order = \"/OrderID\", sku = \"/Item/SKU\" } }";

const PICK_DROPS: &str = "on_rejected = \"drop\"\nundo = { send = { order = \"/OrderID\", sku = \"/Item/SKU\" } }";

impl Shop {
    fn ready(&self) -> Folder {
        let agent = |name: &str, more: &str| format!("[agents.{name}]\nurl = \"https://{name}.example\"\n{more}\n");
        let agents = agent("bank", "") + &agent("stock", self.stock) + &agent("parcels", self.parcels);
        let line = |name: &str, agent: &str, after: &str, more: &str| {
            format!(
                "[[step]]\nname = \"{name}\"\nagent = \"{agent}\"\nafter = [\"{after}\"]\nfor_each = \"/Order/Lines\"\n\
                 item_id = \"/SKU\"\nsend = {{ sku = \"/Item/SKU\" }}\n{more}\n"
            )
        };
        let undo = "undo = { send = { order = \"/OrderID\" } }";
        let workflow = format!("name = \"shop\"\nversion = 1\n{}\n", self.head)
            + &format!(
                "[[step]]\nname = \"charge\"\nagent = \"bank\"\nsend = {{ order = \"/OrderID\" }}\n{undo}\n{}\n",
                self.charge
            )
            + &line("pick", "stock", "charge", self.pick.unwrap_or(UNDO))
            + &line("ship", "parcels", "pick", &format!("{UNDO}\n{}", self.ship));
        let files = [("stepwarden.toml", format!("default = \"shop\"\n{agents}")), ("workflows/shop-1.toml", workflow)];
        Given {
            files: files.map(|(name, text)| (name.to_owned(), text)).into(),
            description: Description::parse(self.rehearsal).unwrap(),
            orders: vec![serde_json::json!({"Lines": [{"SKU": "mug"}, {"SKU": "rug"}, {"SKU": "lamp"}]})],
        }
        .ready()
        .unwrap()
    }

    /// What is found in the worlds of these seeds is of this kind alone, and this change ends it.
    fn has_only(&self, seeds: std::ops::Range<u64>, kind: Kind, change: &str) -> Vec<String> {
        let folder = self.ready();
        let stop = AtomicBool::new(false);
        let search = Search { folder: &folder, assume: Assume::All, others: 8, threads: 2, stop: &stop };
        let findings = search.findings(&seen(&folder, seeds));
        let found = |finding: &Finding| {
            let edits = finding.edits().map(ToString::to_string).collect::<Vec<_>>();
            (finding.violation.kind, edits.join("; "), sentence(&folder, finding))
        };
        let found: Vec<_> = findings.all.iter().map(found).collect();
        assert!(found.iter().any(|(of, edit, _)| *of == kind && edit == change), "{found:#?}");
        assert!(found.iter().all(|(_, edit, _)| edit == change), "{found:#?}");
        assert_eq!(findings.confirmed.map(|(_, bad)| bad), Some(0), "with the change: {found:#?}");
        found.into_iter().filter(|(of, ..)| *of == kind).map(|(.., words)| words).collect()
    }
}

#[test]
fn a_time_to_settle_that_is_too_short_leaves_a_line() {
    let rehearsal = "[services.stock]\neffect_after_caller_left = \"43s\"\nrefuses_forward_after_undo = false";
    let shop = Shop { rehearsal, ..Shop::default() };
    let words = shop.has_only(40..50, Kind::StillCharged, "stepwarden.toml: agents.stock.settles_within = \"45s\"");
    assert!(words[0].contains("stock carried pick of line ") && words[0].contains(" of "), "{words:?}");
}

#[test]
fn a_dropped_line_is_taken_back_in_each_step_that_was_carried_out() {
    let shop = Shop {
        charge: "pivot = true",
        pick: Some("undo = \"none\"\non_rejected = \"drop\""),
        ship: "on_rejected = \"drop\"",
        ..Shop::default()
    };
    let change = "workflows/shop-1.toml: step pick: drop = { send = { item = \"/Item/SKU\", order = \"/OrderID\" } }";
    shop.has_only(20..40, Kind::DroppedStillCharged, change);
}

#[test]
fn a_step_for_the_whole_order_that_keeps_the_part_of_a_dropped_line_is_noted() {
    let shop = Shop { ship: "on_rejected = \"drop\"", ..Shop::default() };
    let doubts =
        |folder: &Folder| doubts(folder).into_iter().filter(|doubt| doubt.contains("drop")).collect::<Vec<_>>();
    let noted = "charge is carried out for the whole order before ship may drop a line, and no [step.drop] gives a part of it back";
    assert_eq!(doubts(&shop.ready()), [noted]);
    assert!(doubts(&example()).is_empty() && doubts(&Shop::default().ready()).is_empty());
}

#[test]
fn a_share_of_the_lines_that_is_none_lets_one_line_stop_all() {
    let shop = Shop { ship: "on_rejected = \"drop\"\ndrop_max = \"10%\"", ..Shop::default() };
    let change = "workflows/shop-1.toml: leave step ship: drop_max out";
    let words = shop.has_only(20..40, Kind::StoppedByLine, change);
    assert!(words[0].starts_with("parcels said no to ship of line ") && words[0].contains("10% of "), "{words:?}");
}

#[test]
fn a_line_that_is_rejected_past_a_pivot_stops_the_others_unless_it_is_dropped() {
    let shop = Shop { charge: "pivot = true", pick: Some(PICK_DROPS), ..Shop::default() };
    let change = "workflows/shop-1.toml: step ship: on_rejected = \"drop\"";
    shop.has_only(20..40, Kind::StoppedByLine, change);
}

#[test]
fn a_conflict_is_no_rejection_of_a_line() {
    let shop = Shop {
        parcels: "forward = { operation = \"ship\", status = { 409 = \"no\" } }",
        ship: "on_rejected = \"drop\"",
        ..Shop::default()
    };
    let change = "stepwarden.toml: leave agents.parcels.forward.status.409 out";
    shop.has_only(40..60, Kind::TurnedForNothing, change);
}

#[test]
fn a_forgetful_service_needs_a_memo_for_its_lines() {
    let shop = Shop { rehearsal: "[services.stock]\nforgets_keys_after = \"1ms\"", ..Shop::default() };
    shop.has_only(8..28, Kind::ChargedTwice, "stepwarden.toml: agents.stock.memo = true");
}

#[test]
fn a_deadline_is_longer_than_many_lines_take() {
    let shop =
        Shop { head: "complete_within = \"20s\"", parcels: "rate = { calls = 2, per = \"5s\" }", ..Shop::default() };
    shop.has_only(20..25, Kind::Late, "workflows/shop-1.toml: complete_within = \"7m30s\"");
}

#[test]
fn the_example_is_clean() {
    let seen = seen(&example(), 0..60);
    assert!(seen.found.is_empty(), "{:?}", seen.found);
    let counts = &seen.counts;
    let of = |step: &str| counts.steps[&("sale".into(), step.into())];
    let [carried, _, undone, dropped] = of("reserve");
    assert!(carried > 50 && undone > 20 && dropped > 5, "{counts:?}");
    assert!(of("cover")[2] >= dropped && counts.ends["Compensated"] > 10, "{counts:?}");
    assert!(counts.steps.keys().all(|(_, step)| !step.contains('/')), "lines are counted together: {counts:?}");
}

#[test]
fn orders_have_none_to_as_many_lines_as_there_can_be_and_lines_fail_alone_and_together() {
    let folder = example();
    let (mut counts, mut failing) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..1_200 {
        let (_, day, setup) = day::setup(&folder, seed, Assume::All);
        for document in &setup.documents {
            let document: serde_json::Value = serde_json::from_str(document).unwrap();
            counts.insert(document["Lines"].as_array().unwrap().len());
        }
        if let Some(lines) = setup.failing_lines {
            assert!(day == Day::Mishap && setup.mishap.is_none());
            failing.insert(format!("{:?} {:?}", lines.which, lines.ends));
        }
    }
    // A charge, a message, and three for each line.
    assert!(counts.iter().eq(&[0, 1, 2, 3, 7, 66]), "{counts:?}");
    for ends in [LineEnds::Rejected, LineEnds::Unanswered] {
        for which in [Which::One(0), Which::One(2), Which::AllButOne, Which::All, Which::Beyond(DropMax::Percent(50))] {
            assert!(failing.contains(&format!("{which:?} {ends:?}")), "{which:?} {ends:?}: {failing:?}");
        }
    }
}

#[test]
fn lines_fail_on_purpose_though_no_service_says_no_by_itself() {
    let never = "rejects.share = \"0%\"";
    let drops = "on_rejected = \"drop\"\non_exhausted = \"drop\"";
    let shop = Shop {
        ship: drops,
        rehearsal: Box::leak(format!("[services]\nbank.{never}\nstock.{never}\nparcels.{never}").into_boxed_str()),
        ..Shop::default()
    };
    let folder = shop.ready();
    for ends in [LineEnds::Rejected, LineEnds::Unanswered] {
        let fails_so = |seed: &u64| {
            let lines = day::setup(&folder, *seed, Assume::All).2.failing_lines;
            lines.is_some_and(|lines| lines.ends == ends)
        };
        let mut all = Seen::default();
        for seed in (0..160).filter(fails_so) {
            let seen = seen(&folder, seed..seed + 1);
            assert!(seen.found.is_empty(), "{seed}: {:?}", seen.found);
            all.counts.merge(&seen.counts);
        }
        let [carried, _, undone, dropped] = all.counts.steps[&("shop".into(), "ship".into())];
        assert!(carried > 2 && undone > 2 && dropped > 2, "{ends:?}: {:?}", all.counts);
        assert!(all.counts.ends["Compensated"] > 0, "{ends:?}: {:?}", all.counts);
    }
}
